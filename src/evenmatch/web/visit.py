"""A request for a page: who looks, at which ladder, and how they are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from evenmatch.errors import AccessError, EvenmatchError, ForbiddenError, StoreError, UsageError
from evenmatch.http.access import allow
from evenmatch.http.asked import asked_of
from evenmatch.http.site import Site
from evenmatch.http.text import as_meant, is_text
from evenmatch.service.callers.access import ANYONE, Caller
from evenmatch.service.callers.deeds import Deed
from evenmatch.service.callers.sessions import LASTS, Session
from evenmatch.service.reading import Reading
from evenmatch.web.forms import CONFIRM, Fields, Form, refused
from evenmatch.web.shared import Shared
from evenmatch.web.templates import Values, render

SESSION, ME, NOTICE, ONCE = "evenmatch-session", "evenmatch-me", "evenmatch-notice", "evenmatch-once"  # cookies
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


def _decoded(path: str) -> list[str]:
    return [unquote(part) for part in path.split("/")]


@dataclass
class Visit:
    """A request for a page. Made for each request, by `app`.

    sent     the fields of a form that this request sends, once they were read
    refused  the form that this request sent, where it was refused: its page is shown again
    here     the address of the page that is shown
    """

    request: Request
    shared: Shared
    session: Session | None = None
    sent: Fields | None = None
    refused: Form | None = None
    here: str = ""

    def __post_init__(self) -> None:
        query = self.request.url.query
        path: str = self.request.scope["path"]
        self.here = self.here or (f"{path}?{query}" if query else path)

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
            raise UsageError("the form holds bytes that are not UTF-8; expected text")
        self.sent = tuple(one for one in sent if one[0] != "proof")
        if proved and self.session is not None and not self.session.is_proved_by(dict(sent).get("proof", "")):
            raise ForbiddenError("your session has changed since this form was opened; check it and send it again")
        return list(self.sent)

    def form_at(self, *parts: object) -> Form:
        """The form of this page that is sent to an address: as it was refused, or as it is at first."""
        action = address(*parts)
        return self.refused if self._was_refused(action) and self.refused is not None else Form(action)

    def form_here(self) -> Form:
        """The form that a page sends to its own address."""
        path = self.here.partition("?")[0]
        if self.refused is not None and self._was_refused(path):
            return self.refused
        typed = tuple(item for item in self.request.query_params.items() if item[0] != CONFIRM)
        return Form(path, typed or None)

    def _was_refused(self, action: str) -> bool:
        """Whether the form that this request sent to an address was refused, however the address is encoded."""
        return self.refused is not None and _decoded(self.refused.action) == _decoded(action)

    @contextmanager
    def previewing(self) -> Iterator[None]:
        """Let an error in what a form asks for be shown in the form, whose page is shown nevertheless."""
        try:
            yield
        except EvenmatchError as error:
            if isinstance(error, StoreError):
                raise
            self.refused = self.refused or refused(self.here.partition("?")[0], tuple(self.typed.items()), error)

    @property
    def typed(self) -> Mapping[str, str]:
        """What a visitor typed into this page's form: sent and refused, or behind the address."""
        if self.refused is not None and self.refused.sent is not None:
            return dict(self.refused.sent)
        return {name: self.asked(name) for name in self.request.query_params}

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

    def show_once(self, answer: Response, text: str, path: str) -> None:
        """Keep a text for the next page at this path, which shows it once: a reload does neither repeat nor show it."""
        kept = quote(text, safe="")
        answer.set_cookie(ONCE, kept, 60, path=path, httponly=True, samesite="strict", secure=self.is_secure)

    def taken(self, answer: Response, path: str) -> None:
        """Forget the text that was kept for this page."""
        if ONCE in self.request.cookies:
            answer.delete_cookie(ONCE, path=path, httponly=True, samesite="strict")

    @property
    def once(self) -> str | None:
        """The text that was kept for this page."""
        kept = self.request.cookies.get(ONCE)
        text = "" if kept is None else as_meant(kept)
        return text if text and is_text(text) else None

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
