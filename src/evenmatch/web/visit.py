"""A request for a page: who looks, at which ladder, and how they are answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from evenmatch.errors import AccessError, ForbiddenError, UsageError
from evenmatch.http.access import allow
from evenmatch.http.asked import asked_of
from evenmatch.http.site import Site
from evenmatch.http.text import as_meant, is_text
from evenmatch.service.callers.access import ANYONE, Caller
from evenmatch.service.callers.deeds import Deed
from evenmatch.service.callers.sessions import LASTS, Session
from evenmatch.service.reading import Reading
from evenmatch.web.shared import Shared
from evenmatch.web.templates import Values, render

SESSION, ME, NOTICE = "evenmatch-session", "evenmatch-me", "evenmatch-notice"  # cookies
YEAR = 365 * 86_400
LONGEST_NAME = 200


class Notice(NamedTuple):
    """What became of a form, told once on the next page."""

    text: str
    is_good: bool


FOLDED = (".", "..")  # browsers take them out of an address, encoded or not
KEEPS = "~"  # so a mark stands before them


def address(*parts: object, **query: object) -> str:
    """An address of the site: its parts encoded, and what is asked; None is left out. `Visit.part` reads them."""
    texts = [str(part) for part in parts]
    kept = [f"{KEEPS}{one}" if one.lstrip(KEEPS) in FOLDED else one for one in texts]
    path = "/" + "/".join(quote(one, safe="") for one in kept)
    asked = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(asked)}" if asked else path


@dataclass
class Visit:
    """A request for a page. Made for each request, by `app`."""

    request: Request
    shared: Shared
    session: Session | None = None

    @property
    def site(self) -> Site:
        """The use cases."""
        return self.shared.site

    @property
    def reading(self) -> Reading:
        """Questions that nobody waits long for: standings may be old, and the page is told once they are made anew."""
        return self.shared.reading

    @property
    def caller(self) -> Caller | None:
        """Who looks; None: nobody who may see anything."""
        if self.session is not None:
            return self.session.caller
        return ANYONE if self.site.options.open_reads else None

    @cached_property
    def ladder(self) -> str:
        """The ladder of the address. Raises UsageError for what no database can look for."""
        return self.part("ladder")

    @cached_property
    def me(self) -> str | None:
        """The player whom this visitor called themselves; it proves nothing."""
        kept = self.request.cookies.get(ME)
        name = None if kept is None else as_meant(kept)
        return name if name and is_text(name) and len(name) <= LONGEST_NAME else None

    def part(self, name: str) -> str:
        """A part of the address."""
        value: str = self.request.path_params[name]
        if not is_text(value):
            raise UsageError(f"the address holds {ascii(value)[:80]}; accepted is text that UTF-8 can hold")
        is_kept = value.startswith(KEEPS) and value.lstrip(KEEPS) in FOLDED
        return value[1:] if is_kept else value

    def asked(self, name: str, default: str = "") -> str:
        """What stands behind the address under this name."""
        value = self.request.query_params.get(name, default)
        if not is_text(value):
            raise UsageError(f"{name} is {ascii(value)[:80]}; accepted is text that UTF-8 can hold")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """The same as a whole number within bounds. Raises UsageError."""
        text = self.asked(name) or str(default)
        number = int(text) if len(text) <= 20 and text.removeprefix("-").isdecimal() else None
        if number is None or not low <= number <= high:
            raise UsageError(f"{name} is {text[:40]!r}; accepted is a whole number from {low:,} to {high:,}")
        return number

    # who may

    def allow(self) -> None:
        """Count this request as its sender's. Raises RateLimitError."""
        allow(self.site, self.request.scope, self.caller or ANYONE)

    def check(self, scope: str, ladder: str | None = None) -> Caller:
        """Who looks, if they may do this. Raises AccessError where nobody is logged in, else ForbiddenError."""
        caller = self.caller
        if caller is None or (self.session is None and scope != "read"):
            raise AccessError("this page is for those who log in with a key")
        caller.check(scope, ladder)
        return caller

    def may(self, scope: str, ladder: str | None = None) -> bool:
        """Whether who looks may do this."""
        caller = self.caller
        return caller is not None and caller.may(scope, ladder) and (self.session is not None or scope == "read")

    @property
    def is_operator(self) -> bool:
        """Whether who is logged in operates any ladder."""
        return self.session is not None and "admin" in self.session.caller.scopes

    def deed(
        self,
        action: str,
        ladder: str | None = None,
        target: str | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Deed:
        """What who is logged in is about to do, for the audit trail."""
        assert self.session is not None
        return Deed(self.session.caller, action, ladder, target, body or {}, self.request_id)

    @property
    def request_id(self) -> str:
        """By which the log knows this request."""
        return asked_of(self.request.scope).id

    # forms

    async def form(self) -> Mapping[str, str]:
        """What a form sent, the last value of each name. Raises ForbiddenError where another site sent it."""
        return dict(await self.fields())

    async def fields(self, *, proved: bool = True) -> list[tuple[str, str]]:
        """All that a form sent, in order. proved: it is of this session, if there is one."""
        self._check_origin()
        body = (await self.request.body()).decode("utf-8", errors="surrogateescape")
        sent = parse_qsl(body, keep_blank_values=True, errors="surrogateescape", max_num_fields=2000)
        if any(not is_text(value) for _, value in sent):
            raise UsageError("the form holds what is no text; accepted is text that UTF-8 can hold")
        if proved and self.session is not None and not self.session.is_proved_by(dict(sent).get("proof", "")):
            raise ForbiddenError("the form is not of this session; open the page again and send it from there")
        return [one for one in sent if one[0] != "proof"]

    def _check_origin(self) -> None:
        """Raise ForbiddenError for a form of another site."""
        headers = self.request.headers
        origin, where = headers.get("origin"), headers.get("sec-fetch-site")
        own = headers.get("host", "")
        if where not in (None, "same-origin", "none") or (origin is not None and origin.partition("://")[2] != own):
            raise ForbiddenError("the form was sent by another site; accepted are those of this one")

    # answers

    async def show(
        self, template: str, make: Callable[[], Values] | Values, status: int = 200, *, kept: bool = True
    ) -> Response:
        """A page; its values are read, and it is written, in a thread. kept: the browser may keep it."""

        def page() -> str:
            return render(self, template, make() if callable(make) else make)

        answer = HTMLResponse(await self.site.work(page), status)
        if not kept:
            answer.headers["Cache-Control"] = "no-store"
        if NOTICE in self.request.cookies:
            answer.delete_cookie(NOTICE, httponly=True, samesite="lax")
        return answer

    def go(self, to: str, notice: str | None = None, *, is_good: bool = True) -> Response:
        """On to another page, with a word on what was done."""
        answer = RedirectResponse(to, 303)
        if notice is not None:
            text = quote(f"{'+' if is_good else '-'}{notice[:1000]}", safe="")
            answer.set_cookie(NOTICE, text, max_age=60, httponly=True, samesite="lax", secure=self.is_secure)
        return answer

    @property
    def notice(self) -> Notice | None:
        """What the page before left to be told."""
        kept = self.request.cookies.get(NOTICE)
        text = "" if kept is None else as_meant(kept)
        return Notice(text[1:], text[0] == "+") if len(text) > 1 and is_text(text) else None

    @property
    def is_secure(self) -> bool:
        """Whether cookies go over https alone."""
        return self.request.url.scheme == "https"

    def remember(self, answer: Response, name: str) -> None:
        """Let the visitor be called so from now on."""
        kept = quote(name, safe="")
        answer.set_cookie(ME, kept, max_age=YEAR, httponly=True, samesite="lax", secure=self.is_secure)

    def log_in(self, answer: Response, session: str) -> None:
        """Let the visitor be known by a session."""
        answer.set_cookie(SESSION, session, max_age=LASTS, httponly=True, samesite="lax", secure=self.is_secure)
