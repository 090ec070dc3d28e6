"""The request for a page: the visitor, the parameters, forms, cookies and responses."""

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
from evenmatch.http.access import allow, check_own
from evenmatch.http.path_text import is_text
from evenmatch.http.problems import within
from evenmatch.http.request_context import context_of
from evenmatch.http.site import Site
from evenmatch.service.callers.access import ANYONE, Caller
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.callers.credential_checks import Credential
from evenmatch.service.callers.sessions import Session
from evenmatch.service.queries.ladder_queries import LadderQueries
from evenmatch.web import assets
from evenmatch.web.cookies import ME, NOTICE, ONCE, SESSION, Cookies
from evenmatch.web.forms import CONFIRM, FieldError, Fields, Form, refused
from evenmatch.web.shared_state import SharedState
from evenmatch.web.templates import Values, render

LONGEST_NAME = 200
MOST_FIELDS = 2_000  # of a form


class Notice(NamedTuple):
    """The result of a form, shown once on the next page."""

    text: str
    is_good: bool


FOLDED = (".", "..")  # browsers remove these path segments, even if they are percent-encoded
KEEPS = "~"  # the prefix that protects such a segment


def address(*parts: object, **query: object) -> str:
    """Return a URL path of these segments, encoded for `PageRequest.part`, and its query; None is left out."""
    texts = [str(part) for part in parts]
    segments = [f"{KEEPS}{text}" if text.lstrip(KEEPS) in FOLDED else text for text in texts]
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _decoded(path: str) -> list[str]:
    return [unquote(part) for part in path.split("/")]


@dataclass
class PageRequest:
    """A request for a page, created by `app` for each HTTP request.

    sent     the fields of the submitted form; None: none, or not read yet
    refused  the submitted form if it was refused: its page is shown again
    here     the URL of the page that is shown
    """

    request: Request
    shared: SharedState
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
        """The services of this process."""
        return self.shared.site

    @property
    def reading(self) -> LadderQueries:
        """Queries that never wait for a rebuild: standings may be old, and the change stream announces new ones.

        They contain what the visitor may see.
        """
        return self.shared.reading.seen_by(self.caller or ANYONE)

    @property
    def caller(self) -> Caller | None:
        """The identity of the visitor; None: not logged in, and the site requires it."""
        if self.session is not None:
            return self.session.caller
        return ANYONE if self.site.options.open_reads else None

    @property
    def credential(self) -> Credential | None:
        """The credential of the visitor; None: not logged in."""
        session = self.session
        if session is None:
            return None
        return Credential(session.caller.issuer, session.until, session.caller.signer, session.name)

    @cached_property
    def cookies(self) -> Cookies:
        """The cookies of this request, and of its response."""
        return Cookies(self.request)

    @cached_property
    def ladder(self) -> str:
        """The ladder name in the URL. Raises UsageError if it is not valid UTF-8."""
        return self.part("ladder")

    @cached_property
    def me(self) -> str | None:
        """The player who is logged in with a token; else the name that this visitor gave, which proves nothing."""
        if self.session is not None and self.session.caller.player is not None:
            return self.session.caller.player
        name = self.cookies.text(ME)
        return name if 0 < len(name) <= LONGEST_NAME else None

    @property
    def is_player(self) -> bool:
        """Whether the visitor is logged in with a player's token."""
        return self.session is not None and self.session.caller.player is not None

    def part(self, name: str) -> str:
        """A path parameter. Raises UsageError if it is not valid UTF-8."""
        value: str = self.request.path_params[name]
        if not is_text(value):
            raise UsageError(f"the address contains {ascii(value)[:80]}, which is not valid UTF-8")
        has_prefix = value.startswith(KEEPS) and value.lstrip(KEEPS) in FOLDED
        return value[1:] if has_prefix else value

    def asked(self, name: str, default: str = "") -> str:
        """A query parameter. Raises UsageError if it is not valid UTF-8."""
        value = self.request.query_params.get(name, default)
        if not is_text(value):
            raise UsageError(f"{name} is {ascii(value)[:80]}, which is not valid UTF-8")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A query parameter as a whole number from `low` to `high`. Raises UsageError."""
        text = self.asked(name) or str(default)
        number = int(text) if len(text) <= 20 and text.removeprefix("-").isdecimal() else None
        if number is None or not low <= number <= high:
            raise UsageError(f"{name} is {text[:40]!r}; it must be a whole number from {low:,} to {high:,}")
        return number

    # access

    def allow(self) -> None:
        """Count this request towards the rate limit of its sender. Raises RateLimitError."""
        allow(self.site, self.request.scope, self.caller or ANYONE)

    def check(self, scope: str, ladder: str | None = None) -> Caller:
        """Return the caller if it has this scope. Raises AccessError if not logged in, else ForbiddenError."""
        caller = self.caller
        if caller is None or (self.session is None and scope != "read"):
            raise AccessError("this page requires a login with a key")
        caller.check(scope, ladder)
        return caller

    def may(self, scope: str, ladder: str | None = None) -> bool:
        """Whether the visitor has this scope on this ladder; None: on all ladders."""
        caller = self.caller
        return caller is not None and caller.may(scope, ladder) and (self.session is not None or scope == "read")

    def check_own(self, player: str) -> None:
        """Raise ForbiddenError if the visitor is logged in as another player, unless reads are open to all."""
        check_own(self.site, self.caller or ANYONE, player)

    def may_see(self, player: str) -> bool:
        """Whether `check_own` would pass."""
        return self.site.options.open_reads or not self.is_player or self.me == player

    @property
    def is_operator(self) -> bool:
        """Whether the visitor is logged in with the scope admin on any ladder."""
        return self.session is not None and "admin" in self.session.caller.scopes

    def as_seen(self, error: EvenmatchError) -> EvenmatchError:
        """The error as this visitor may see it: without names of ladders that they may not read."""
        ladders = frozenset() if self.caller is None else self.caller.ladders
        if isinstance(error, FieldError):
            return FieldError(error.field, within(ladders, error.error))
        return within(ladders, error)

    def audit_entry(
        self,
        action: str,
        ladder: str | None = None,
        target: str | None = None,
        body: Mapping[str, object] | None = None,
    ) -> AuditEntry:
        """Return the audit entry of an action that the logged-in visitor is about to take."""
        assert self.session is not None
        return AuditEntry(self.session.caller, action, ladder, target, body or {}, self.request_id)

    @property
    def request_id(self) -> str:
        """The id of this request in the log."""
        return context_of(self.request.scope).id

    # forms

    async def form(self) -> Mapping[str, str]:
        """Read the submitted form, the last value of each name. Raises ForbiddenError and UsageError like `fields`."""
        return dict(await self.fields())

    async def fields(self, *, proved: bool = True) -> list[tuple[str, str]]:
        """Read all submitted fields in order; `proved`: require the CSRF token of the session, if there is one.

        Raises ForbiddenError for a form of another site or session, UsageError for invalid UTF-8 or too many fields.
        """
        self._check_origin()
        body = (await self.request.body()).decode("utf-8", errors="surrogateescape")
        if body.count("&") >= MOST_FIELDS:
            raise UsageError(f"the form has more than {MOST_FIELDS:,} fields")
        sent = parse_qsl(body, keep_blank_values=True, errors="surrogateescape")
        if any(not is_text(value) for _, value in sent):
            raise UsageError("the form contains bytes that are not valid UTF-8")
        self.sent = tuple(field for field in sent if field[0] != "proof")
        if proved and self.session is not None and not self.session.is_proved_by(dict(sent).get("proof", "")):
            raise ForbiddenError("your session has changed since this form was opened; check it and send it again")
        return list(self.sent)

    def form_at(self, *parts: object) -> Form:
        """Return the form of this page submitted to this URL: as it was refused, or empty."""
        action = address(*parts)
        return self.refused if self._was_refused(action) and self.refused is not None else Form(action)

    def form_here(self) -> Form:
        """Return the form that this page submits to its own URL: as it was refused, or filled from the query."""
        path = self.here.partition("?")[0]
        if self.refused is not None and self._was_refused(path):
            return self.refused
        typed = tuple(item for item in self.request.query_params.items() if item[0] != CONFIRM)
        return Form(path, typed or None)

    def _was_refused(self, action: str) -> bool:
        """Whether the refused form was submitted to this URL, compared after percent-decoding."""
        return self.refused is not None and _decoded(self.refused.action) == _decoded(action)

    @contextmanager
    def previewing(self) -> Iterator[None]:
        """Show an error of the block in the form, so that the page is rendered anyway. StoreError passes."""
        try:
            yield
        except EvenmatchError as error:
            if isinstance(error, StoreError):
                raise
            form = refused(self.here.partition("?")[0], tuple(self.typed.items()), self.as_seen(error))
            self.refused = self.refused or form

    @property
    def typed(self) -> Mapping[str, str]:
        """The values of this page's form: of the refused submission, or from the query."""
        if self.refused is not None and self.refused.sent is not None:
            return dict(self.refused.sent)
        return {name: self.asked(name) for name in self.request.query_params}

    def _check_origin(self) -> None:
        """Raise ForbiddenError for a form that another site submitted."""
        headers = self.request.headers
        origin, fetch_site = headers.get("origin"), headers.get("sec-fetch-site")
        host = headers.get("host", "")
        is_own = origin is None or origin.partition("://")[2] == host
        if fetch_site not in (None, "same-origin", "none") or not is_own:
            raise ForbiddenError("the form was sent by another site; open the page here and send it again")

    # responses

    async def show(
        self, template: str, make: Callable[[], Values] | Values, status: int = 200, *, kept: bool = True
    ) -> Response:
        """Render a page in a worker thread; `make` returns its values. kept: the browser may cache it."""

        def page() -> str:
            values = {
                "visit": self,
                "address": address,
                "assets": assets.addresses(),
                "now": self.site.service.clock(),
                "proof_of_session": "" if self.session is None else self.session.proof,
                **(make() if callable(make) else make),
            }
            return render(template, values)

        response = HTMLResponse(await self.site.work(page, within=None), status)
        if not kept:
            response.headers["Cache-Control"] = "no-store"
        self.cookies.delete(response, NOTICE)
        return response

    def go(self, to: str, notice: str | None = None, *, is_good: bool = True) -> Response:
        """Redirect to another page, which shows this notice."""
        response = RedirectResponse(to, 303)
        if notice is not None:
            self.cookies.write_text(response, NOTICE, f"{'+' if is_good else '-'}{notice[:1000]}")
        return response

    @property
    def notice(self) -> Notice | None:
        """The notice that the previous request left for this page."""
        text = self.cookies.text(NOTICE)
        return Notice(text[1:], text[0] == "+") if len(text) > 1 else None

    def show_once(self, answer: Response, text: str, path: str) -> None:
        """Store a secret in a cookie for the next page at this path, which shows it once: a reload does not."""
        self.cookies.write_text(answer, ONCE, f"{path}\n{text}")

    def taken(self, answer: Response) -> None:
        """Delete the cookie that `show_once` has set for this page."""
        if self.once is not None:
            self.cookies.delete(answer, ONCE)

    @property
    def once(self) -> str | None:
        """The text that `show_once` has stored for this page."""
        path, _, text = self.cookies.text(ONCE).partition("\n")
        return text if text and path == self.request.scope["path"] else None

    def remember(self, answer: Response, name: str) -> None:
        """Store the visitor's player name in a cookie for a year."""
        self.cookies.write_text(answer, ME, name)

    def log_in(self, answer: Response, session: str) -> None:
        """Set the session cookie."""
        self.cookies.write(answer, SESSION, session)
