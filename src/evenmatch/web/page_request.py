"""The request for a page: visitor, parameters, forms, cookies, templates, assets, and the stream of changes.

Over HTTPS the names of cookies begin with __Host-. Browsers accept such cookies only from this exact host and over
HTTPS, so neither another host of the domain nor an attacker on the network can set them. A load balancer that
terminates TLS must be a trusted proxy.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from email import message_from_bytes
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path, PurePath
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

import jinja2
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from evenmatch.accounts.access import ANYONE, Caller
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.accounts.sessions import LASTS, LOGIN_LASTS, Session
from evenmatch.errors import (
    AccessError,
    BusyError,
    EvenmatchError,
    ForbiddenError,
    StoreError,
    UnknownNameError,
    UsageError,
)
from evenmatch.http.access import allow, check_own
from evenmatch.http.hosts import as_meant, is_text
from evenmatch.http.logs import log
from evenmatch.http.options import LOGO_TYPES
from evenmatch.http.problems import within
from evenmatch.http.request_context import context_of
from evenmatch.http.site import Site
from evenmatch.http.waiting_requests import Waiter
from evenmatch.lab.display_names import plain, visible
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.standings.board import Snapshot, Standing
from evenmatch.web.forms import CONFIRM, FieldError, Fields, Form, refused
from evenmatch.web.identity_providers import IdentityProvider, providers_of
from evenmatch.web.lab_cache import LabCache
from evenmatch.web.regions import HEADER, changed_regions
from evenmatch.web.texts import Languages, Texts, direction, moment, number, percent, sentence, signed, use_separators
from evenmatch.web.view_models import seen_of

SESSION, ME, NOTICE, ONCE = "evenmatch-session", "evenmatch-me", "evenmatch-notice", "evenmatch-once"
FRIENDS, LANGUAGE = "evenmatch-friends", "evenmatch-language"
THEME, THEMES = "evenmatch-theme", ("light", "dark")  # without the cookie: as the system
NUMBERS = "evenmatch-numbers"  # the group and decimal separators of the visitor; evenmatch.js writes it
LOGIN = "evenmatch-login"  # the state of a login while the visitor is at an identity provider
PREFIX = "__Host-"
YEAR = 365 * 86_400
LASTING = {
    SESSION: LASTS,
    ME: YEAR,
    FRIENDS: YEAR,
    LANGUAGE: YEAR,
    THEME: YEAR,
    NOTICE: 60,
    ONCE: 60,
    LOGIN: LOGIN_LASTS,
}  # seconds
SAME_SITE: dict[str, Literal["lax", "strict"]] = {ONCE: "strict"}  # the others: lax


class Cookies:
    """The cookies of a request, and those of its response."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._is_secure = request.url.scheme == "https"

    def read(self, name: str) -> str | None:
        """Return the value of a cookie; None if there is none."""
        return self._request.cookies.get(self._full(name))

    def text(self, name: str) -> str:
        """Return the text of a cookie set by `write_text`; empty if there is none or it is not valid UTF-8."""
        cookie = self.read(name)
        text = "" if cookie is None else as_meant(cookie)
        return text if is_text(text) else ""

    def write(self, response: Response, name: str, value: str) -> None:
        """Set a cookie."""
        self._write(response, name, value, LASTING[name])

    def write_text(self, response: Response, name: str, text: str) -> None:
        """Set a cookie to any text."""
        self.write(response, name, quote(text, safe=""))

    def delete(self, response: Response, name: str) -> None:
        """Delete a cookie, if the browser sent it."""
        if self.read(name) is not None:
            self._write(response, name, "", 0)

    def _write(self, response: Response, name: str, value: str, lasts: int) -> None:
        response.set_cookie(
            self._full(name),
            value,
            lasts,
            path="/",
            httponly=True,
            samesite=SAME_SITE.get(name, "lax"),
            secure=self._is_secure,
        )

    def _full(self, name: str) -> str:
        return f"{PREFIX}{name}" if self._is_secure else name


OWN = {
    "evenmatch.css": "text/css",
    "evenmatch.js": "text/javascript",
    "lab.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "crests.svg": "image/svg+xml",
}
PLOTLY = "plotly.min.js"
LOGO = "logo"
FOREVER = "public, max-age=31536000, immutable"  # the URL contains a version of the content


class Asset(NamedTuple):
    """A file to send: its content, its media type and version."""

    body: bytes
    kind: str
    version: str


@lru_cache(8)
def asset(name: str) -> Asset:
    """Return the file of this name. Raises KeyError if there is none."""
    if name == PLOTLY:
        body, kind = _plotly().read_bytes(), "text/javascript"
    else:
        kind = OWN[name]
        body = resources.files("evenmatch.web").joinpath("static", name).read_bytes()
    return _asset(body, f"{kind}; charset=utf-8")


def _asset(body: bytes, kind: str) -> Asset:
    return Asset(body, kind, hashlib.blake2b(body, digest_size=6).hexdigest())


@lru_cache(8)
def logo(path: str) -> Asset:
    """Return the file with the logo of the site; see the setting EVENMATCH_LOGO."""
    return _asset(Path(path).read_bytes(), LOGO_TYPES[Path(path).suffix.lower()])


@lru_cache(1)
def addresses() -> dict[str, str]:
    """Return the URL of each file by its name in templates, such as `plotly`, `icon` and `evenmatch_css`."""
    versions = {name: asset(name).version for name in OWN} | {PLOTLY: _plotly_version()}
    return {name.partition(".")[0] + _suffix(name): f"/assets/{version}/{name}" for name, version in versions.items()}


def _suffix(name: str) -> str:
    return "" if name == PLOTLY or name.endswith(".svg") else "_" + name.rpartition(".")[2]


async def send_asset(request: Request, logo_path: str) -> Response:
    """Send a file, which browsers may cache for a year; logo_path: the file that is named LOGO; empty: none."""
    name = request.path_params["name"]
    if name not in (*OWN, PLOTLY) and not (name == LOGO and logo_path):
        return PlainTextResponse("no such file", 404)
    # the first call reads the file
    file = await (run_in_threadpool(logo, logo_path) if name == LOGO else run_in_threadpool(asset, name))
    headers = {"Cache-Control": FOREVER, "X-Content-Type-Options": "nosniff"}
    return Response(file.body, headers=headers, media_type=file.kind)


@lru_cache(1)
def _plotly() -> Path:
    """Return the path of the chart library's script, without importing the package."""
    spec = importlib.util.find_spec("plotly")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "package_data" / PLOTLY


def _plotly_version() -> str:
    """Return a version derived from the file size, to avoid reading four megabytes before the first chart is opened."""
    return f"{_plotly().stat().st_size:x}"


Values = Mapping[str, object]
LONGEST = 60  # characters of a name


def render(template: str, values: Values, texts: Texts) -> str:
    """Render a template in a language. template: its name without `.html.jinja`; for pictures, without `.jinja`."""
    file = template if template.endswith(".svg") else f"{template}.html"
    return _environment(texts).get_template(f"{file}.jinja").render({**values, "texts": texts})


@lru_cache(16)
def _environment(texts: Texts) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True
    environment.install_gettext_translations(texts.translations, newstyle=True)  # type: ignore[attr-defined]
    environment.filters |= {
        "plain": plain,
        "name": name,
        "number": number,
        "signed": signed,
        "direction": direction,
        "count": texts.count,
        "percent": percent,
        "seconds": texts.seconds,
        "moment": moment,
        "sentence": sentence,
        "translated": texts.translated,
        "said": texts.said,
        "ago": texts.ago,
        "ordinal": texts.ordinal,
    }
    return environment


def _source(path: str) -> str | None:
    try:
        return resources.files("evenmatch.web").joinpath("templates", path).read_text("utf-8")
    except FileNotFoundError:
        return None


def name(text: str, longest: int = LONGEST) -> Markup:
    """A user-supplied name, bidi-isolated and shortened; the title attribute holds the full name if it is longer."""
    shown = visible(text, longest)
    title = Markup(' title="{}"').format(plain(text)) if len(text) > longest else Markup()
    return Markup("<bdi{}>{}</bdi>").format(title, shown)


POLL_EVERY = 1.0  # seconds between two polls of a ladder with open streams
STREAMS, STREAMS_OF_CLIENT = 2000, 60  # most open streams of a process, and of a client address
RETRY = 30.0  # seconds before a page that was refused a stream may try again
KEEP_ALIVE = 15.0  # seconds of silence before a comment is sent, so that proxies do not close the stream


class Changes(NamedTuple):
    """The values that polls compare: the ledger state of the standings, and the last change of the queues."""

    standings: str
    queue: int

    def since(self, before: Changes | None) -> list[str]:
        """The names of the parts that have changed: `ladder`, `queue`."""
        if before is None:
            return []
        return [what for what in ("ladder", "queue") if getattr(self, _FIELD[what]) != getattr(before, _FIELD[what])]


_FIELD = {"ladder": "standings", "queue": "queue"}


class _Listener:
    """An open stream and its unsent events."""

    def __init__(self, waiter: Waiter) -> None:
        self.waiter = waiter
        self.unread: list[str] = []


class ChangeStream:
    """The open streams by ladder, with one polling task per ladder. Use it in the event loop only."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._listeners: dict[str, set[_Listener]] = {}
        self._by_client: Counter[str] = Counter()  # streams by client address
        self._pollers: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._listeners.values()))

    @contextmanager
    def place(self, who: str) -> Iterator[None]:
        """Count an open stream of a client address. Raises BusyError if there are too many."""
        if self._by_client.total() >= STREAMS or self._by_client[who] >= STREAMS_OF_CLIENT:
            raise BusyError("too many pages are open; reload this page manually", RETRY)
        self._by_client[who] += 1
        try:
            yield
        finally:
            self._by_client[who] -= 1
            if not self._by_client[who]:
                del self._by_client[who]

    async def of(self, ladder: str, seen: str, waiter: Waiter) -> AsyncIterator[str]:
        """Yield `ladder` or `queue` after each change, and "" to keep the stream alive. seen: the state shown."""
        listener = _Listener(waiter)
        self._listeners.setdefault(ladder, set()).add(listener)
        if ladder not in self._pollers:
            self._pollers[ladder] = asyncio.create_task(self._poll(ladder))
        try:
            if await self._site.work(lambda: seen_of(self._site.service.shown_view(ladder))) != seen:
                yield "ladder"
            while not waiter.is_over and not self._site.stopping.is_set():
                if not await waiter.news(KEEP_ALIVE):
                    yield ""
                while listener.unread:
                    yield listener.unread.pop(0)
        finally:
            self._remove(ladder, listener)

    def _remove(self, ladder: str, listener: _Listener) -> None:
        listeners = self._listeners[ladder]
        listeners.discard(listener)
        if not listeners:
            del self._listeners[ladder]
            self._pollers.pop(ladder).cancel()

    async def _poll(self, ladder: str) -> None:
        before: Changes | None = None
        while not self._site.stopping.is_set():
            try:
                now = await self._site.work(self._read_changes, ladder)
            except EvenmatchError as error:
                log.warning("a watched ladder cannot be read", ladder=ladder, error=str(error))
            else:
                for event in now.since(before):
                    self._send(ladder, event)
                before = now
            try:
                await asyncio.wait_for(self._site.stopping.wait(), POLL_EVERY)
            except TimeoutError:
                continue

    def _send(self, ladder: str, event: str) -> None:
        for listener in self._listeners.get(ladder, ()):
            if event not in listener.unread:
                listener.unread.append(event)
                listener.waiter.wake()

    def _read_changes(self, ladder: str) -> Changes:
        view = self._site.service.shown_view(ladder)
        return Changes(seen_of(view), self._site.queue_service.last_change(ladder))


class Brand(NamedTuple):
    """Name and accent colour of the site, the address of its logo, and its imprint; empty: evenmatch's own, or none."""

    name: str
    accent: str
    logo: str
    imprint: str
    imprint_name: str


@dataclass(frozen=True)
class SharedState:
    """What all page requests share: services, open change streams, queries, the lab cache and the brand."""

    site: Site
    change_stream: ChangeStream
    reading: LadderQueries
    brand: Brand
    languages: Languages
    providers: Mapping[str, IdentityProvider]
    is_demo: bool = False
    lab_cache: LabCache = field(default_factory=LabCache)

    @classmethod
    def over(cls, site: Site, *, is_demo: bool = False) -> SharedState:
        """Create the shared state of a site."""
        options = site.options
        address_of_logo = f"/assets/{logo(options.logo).version}/{LOGO}" if options.logo else ""
        imprint = options.imprint, options.imprint_name
        brand = Brand(options.site_name, options.accent, address_of_logo, *imprint)
        return cls(
            site,
            ChangeStream(site),
            LadderQueries(site.service, site.service.shown_view),
            brand,
            Languages(options.texts),
            providers_of(options),
            is_demo,
        )


LONGEST_NAME = 200  # characters of a player name
BETWEEN = "\x1f"  # the unit separator, between two names in a cookie
LONGEST_COOKIE = 3_800  # characters; browsers store 4,096 with the name
MOST_FIELDS = 2_000  # fields of a form


class UploadedFile(NamedTuple):
    """A file sent with a form: its name on the sender's computer, and its content."""

    name: str
    content: bytes


def _read_multipart(kind: str, body: bytes) -> tuple[list[tuple[str, str]], UploadedFile | None]:
    """Return the fields of a form sent as multipart/form-data, and its file. kind: the header Content-Type."""
    sent: list[tuple[str, str]] = []
    upload: UploadedFile | None = None
    message = message_from_bytes(b"Content-Type: " + kind.encode("latin-1", "replace") + b"\r\n\r\n" + body)
    parts = [part for part in message.walk() if not part.is_multipart()]
    for part in parts:
        name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(content, bytes):
            raise UsageError("the form could not be read; send it again")
        if (file := part.get_filename()) is not None:
            upload = UploadedFile(PurePath(str(file)).name[:LONGEST_NAME] or "file", content)
        else:
            sent.append((name, content.decode("utf-8", errors="surrogateescape")))
    return sent, upload


class Notice(NamedTuple):
    """The result of a form, shown once on the next page."""

    text: str
    is_good: bool


FOLDED = (".", "..")  # browsers remove these path segments, even if they are percent-encoded
KEEPS = "~"  # a prefix that protects such a segment


def address(*parts: object, **query: object) -> str:
    """Return a URL with this path, encoded for `PageRequest.part`, and query; values of None are omitted."""
    texts = [str(part) for part in parts]
    segments = [f"{KEEPS}{text}" if text.lstrip(KEEPS) in FOLDED else text for text in texts]
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def local(to: str) -> str:
    """Return the path if it is on this site, else an empty string, which prevents redirects to other sites."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) and "\n" not in to else ""


def _decoded(path: str) -> list[str]:
    return [unquote(part) for part in path.split("/")]


@dataclass
class PageRequest:
    """A request for a page, created by `app` for each HTTP request.

    sent     the fields of the submitted form; None: none, or not read yet
    refused  the submitted form if it was refused, for showing its page again
    upload   the file sent with the form
    here     the URL of the page
    """

    request: Request
    shared: SharedState
    session: Session | None = None
    sent: Fields | None = None
    refused: Form | None = None
    upload: UploadedFile | None = None
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
        """Queries limited to what the visitor may see, which never wait for a rebuild.

        Standings may be outdated; the change stream announces new ones.
        """
        return self.shared.reading.seen_by(self.caller or ANYONE, self.texts.translated)

    @property
    def caller(self) -> Caller | None:
        """The identity of the visitor; None: not logged in, and the site requires it."""
        if self.session is not None:
            return self.session.caller
        return ANYONE if self.site.options.open_reads else None

    @cached_property
    def cookies(self) -> Cookies:
        """The cookies of this request, and of its response."""
        return Cookies(self.request)

    @cached_property
    def texts(self) -> Texts:
        """The texts in the language that the visitor chose, otherwise in the one that their browser prefers."""
        accepted = self.request.headers.get("accept-language", "")
        return self.shared.languages.chosen(self.cookies.text(LANGUAGE), accepted)

    def text(self, message: str, **values: object) -> str:
        """Return a text in the visitor's language, see `Texts.text`."""
        return self.texts.text(message, **values)

    @cached_property
    def ladder(self) -> str:
        """The ladder name in the URL. Raises UsageError if it is not valid UTF-8."""
        return self.part("ladder")

    @cached_property
    def me(self) -> str | None:
        """The player who is logged in; otherwise the name that the visitor entered, which is not verified."""
        if self.session is not None and self.session.caller.player is not None:
            return self.session.caller.player
        name = self.cookies.text(ME)
        return name if 0 < len(name) <= LONGEST_NAME else None

    def my_standing(self, snapshot: Snapshot) -> Standing | None:
        """The visitor's standing on a ladder; None if they gave no name or it is unknown there."""
        return None if self._my_id is None else snapshot.standing(self._my_id)

    @cached_property
    def _my_id(self) -> int | None:
        if self.me is None:
            return None
        try:
            return self.site.service.player(self.me)
        except UnknownNameError:
            return None

    @cached_property
    def friends(self) -> list[str]:
        """The names of players in the visitor's list of friends, which only their browser stores."""
        return [name for name in self.cookies.text(FRIENDS).split(BETWEEN) if 0 < len(name) <= LONGEST_NAME]

    @property
    def theme(self) -> str | None:
        """The theme that the visitor chose; None: as the system."""
        theme = self.cookies.read(THEME)
        return theme if theme in THEMES else None

    @property
    def is_player(self) -> bool:
        """Whether the visitor is logged in as a player."""
        return self.session is not None and self.session.caller.player is not None

    def part(self, name: str) -> str:
        """Return a path parameter. Raises UsageError if it is not valid UTF-8."""
        value: str = self.request.path_params[name]
        if not is_text(value):
            raise UsageError(f"the address contains {ascii(value)[:80]}, which is not valid UTF-8")
        has_prefix = value.startswith(KEEPS) and value.lstrip(KEEPS) in FOLDED
        return value[1:] if has_prefix else value

    def asked(self, name: str, default: str = "") -> str:
        """Return a query parameter. Raises UsageError if it is not valid UTF-8."""
        value = self.request.query_params.get(name, default)
        if not is_text(value):
            raise UsageError(f"{name} is {ascii(value)[:80]}, which is not valid UTF-8")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a query parameter as a whole number from `low` to `high`. Raises UsageError."""
        text = self.asked(name) or str(default)
        number = int(text) if len(text) <= 20 and text.removeprefix("-").isdecimal() else None
        if number is None or not low <= number <= high:
            raise UsageError(f"{name} is {text[:40]!r}; it must be a whole number from {low:,} to {high:,}")
        return number

    def same_page(self, **changes: object) -> str:
        """Return the URL of this page with other query parameters."""
        query = {**self.request.query_params, **changes}
        return f"{self.here.partition('?')[0]}?{urlencode(query)}"

    # access

    def allow(self) -> None:
        """Count this request against the rate limit of its sender. Raises RateLimitError."""
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

    def readable(self) -> list[str]:
        """The ladders that the visitor may read."""
        caller = self.caller
        assert caller is not None
        return [name for name in self.site.service.names() if caller.may("read", name)]

    @property
    def is_operator(self) -> bool:
        """Whether the visitor is logged in with the scope admin on any ladder."""
        return self.session is not None and "admin" in self.session.caller.scopes

    def as_seen(self, error: EvenmatchError) -> EvenmatchError:
        """Return the error without names of ladders that this visitor may not read."""
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

        Raises ForbiddenError for a form from another site or session, UsageError for invalid UTF-8 or too many fields.
        """
        self._check_origin()
        body, kind = await self.request.body(), self.request.headers.get("content-type", "")
        if kind.startswith("multipart/form-data"):
            sent, self.upload = await self.site.work(_read_multipart, kind, body)
        elif body.count(b"&") >= MOST_FIELDS:
            raise UsageError(f"the form has more than {MOST_FIELDS:,} fields")
        else:
            text = body.decode("utf-8", errors="surrogateescape")
            sent = parse_qsl(text, keep_blank_values=True, errors="surrogateescape")
        if any(not is_text(value) for _, value in sent):
            raise UsageError("the form contains bytes that are not valid UTF-8")
        self.sent = tuple(field for field in sent if field[0] != "proof")
        if proved and self.session is not None and not self.session.is_proved_by(dict(sent).get("proof", "")):
            raise ForbiddenError("your session has changed since you opened this form; check it and send it again")
        return list(self.sent)

    def form_at(self, *parts: object) -> Form:
        """Return the form that this page submits to this URL: as refused, or empty."""
        action = address(*parts)
        return self.refused if self._was_refused(action) and self.refused is not None else Form(action)

    def form_here(self) -> Form:
        """Return the form that this page submits to its own URL: as refused, or filled from the query."""
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
        """Show an error of the block in the form, so that the page still renders. Does not catch StoreError."""
        try:
            yield
        except EvenmatchError as error:
            if isinstance(error, StoreError):
                raise
            form = refused(self.here.partition("?")[0], tuple(self.typed.items()), self.as_seen(error))
            self.refused = self.refused or form

    @property
    def typed(self) -> Mapping[str, str]:
        """The values of this page's form, from the refused submission or the query."""
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
            raise ForbiddenError("the form was sent from another site; open the page here and send it again")

    # responses

    async def show(
        self, template: str, make: Callable[[], Values] | Values, status: int = 200, *, kept: bool = True
    ) -> Response:
        """Render a page in a worker thread; `make` returns its values. kept: the browser may cache it."""

        def page() -> str:
            use_separators(self.cookies.text(NUMBERS), self.texts)
            values = {
                "visit": self,
                "address": address,
                "assets": addresses(),
                "brand": self.shared.brand,
                "now": self.site.service.clock(),
                "proof_of_session": "" if self.session is None else self.session.masked_proof(),
                **(make() if callable(make) else make),
            }
            return render(template, values, self.texts)

        rendered = await self.site.work(copy_context().run, page, is_limited=False)
        asked = self.request.headers.get(HEADER)
        if asked is not None and status == 200:
            return self.in_language(_only_changed(rendered, asked))
        response = self.in_language(HTMLResponse(rendered, status))
        if not kept:
            response.headers["Cache-Control"] = "no-store"
        self.cookies.delete(response, NOTICE)
        return response

    def in_language(self, response: Response) -> Response:
        """Return the response with its language, and what caches must distinguish because of it."""
        response.headers["Content-Language"] = self.texts.language
        response.headers["Vary"] = "Accept-Language, Cookie"
        return response

    def go(self, to: str, notice: str | None = None, *, is_good: bool = True) -> Response:
        """Redirect to another page, which shows this notice."""
        response = RedirectResponse(to, 303)
        if notice is not None:
            self.cookies.write_text(response, NOTICE, f"{'+' if is_good else '-'}{notice[:1000]}")
        return response

    @property
    def notice(self) -> Notice | None:
        """The notice from the previous request for this page."""
        text = self.cookies.text(NOTICE)
        return Notice(text[1:], text[0] == "+") if len(text) > 1 else None

    def show_once(self, answer: Response, text: str, path: str) -> None:
        """Store a secret in a cookie for the next page at this path, which shows it once, but not after a reload."""
        self.cookies.write_text(answer, ONCE, f"{path}\n{text}")

    def taken(self, answer: Response) -> None:
        """Delete the cookie that `show_once` set for this page."""
        if self.once is not None:
            self.cookies.delete(answer, ONCE)

    @property
    def once(self) -> str | None:
        """The text that `show_once` stored for this page."""
        path, _, text = self.cookies.text(ONCE).partition("\n")
        return text if text and path == self.request.scope["path"] else None

    def remember(self, answer: Response, name: str) -> None:
        """Store the visitor's player name in a cookie for a year."""
        self.cookies.write_text(answer, ME, name)

    def remember_friends(self, answer: Response, names: Sequence[str]) -> None:
        """Store the visitor's list of friends in a cookie for a year. Raises UsageError if it is too long for one."""
        text = BETWEEN.join(name for name in names if BETWEEN not in name)
        if len(quote(text)) > LONGEST_COOKIE:
            raise UsageError("the list of friends is too long for a browser; remove a friend first")
        self.cookies.write_text(answer, FRIENDS, text)

    def log_in(self, answer: Response, session: str) -> None:
        """Set the session cookie."""
        self.cookies.write(answer, SESSION, session)


def _only_changed(page: str, asked: str) -> Response:
    """Return the regions of a page that have changed; 204 if none has. Browsers must not keep them as the page."""
    found = changed_regions(page, asked)
    headers = {"Cache-Control": "no-store", HEADER: " ".join(f"{name}={tag}" for name, (tag, _) in found.items())}
    if not found:
        return Response(status_code=204, headers=headers)
    return HTMLResponse("".join(region for _, region in found.values()), headers=headers)
