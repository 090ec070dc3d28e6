"""The web site as an application: every page's address, who may see it, and what all answers have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.errors import AccessError, EvenmatchError, ForbiddenError, UnknownNameError
from evenmatch.http import text
from evenmatch.http.asked import asked_of
from evenmatch.http.logs import log
from evenmatch.http.problems import kind_of
from evenmatch.http.site import Site
from evenmatch.service.callers.sessions import Session
from evenmatch.web.assets import send_asset
from evenmatch.web.forms import FieldError, refused
from evenmatch.web.page import Page
from evenmatch.web.pages import PAGES
from evenmatch.web.shared import Shared
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import SESSION, Visit, address

STYLES = "style-src 'self' 'unsafe-inline'"  # the chart library writes its own style; scripts are ours alone
POLICY = (
    "default-src 'none'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    f"{STYLES}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
CACHES = (b"cache-control", b"private, no-cache")
PASSING = (429, 500, 502, 503, 504)  # statuses of what may be done in a moment
FORMS = {page.path: page for page in PAGES if "GET" in page.methods}


def pages(site: Site) -> ASGIApp:
    """The web site over these use cases."""
    shared = Shared.over(site)
    routes = [Route("/assets/{version}/{name}", send_asset), *(_route(shared, one) for one in PAGES)]
    return _Answers(Router(routes, redirect_slashes=False, default=_Nowhere(shared, routes)))


def _route(shared: Shared, page: Page) -> Route:
    """A page over these use cases."""

    async def answer(request: Request) -> Response:
        request.scope["route"] = made
        return await _answered(shared, request, page)

    made = Route(page.path, answer, methods=list(page.methods))
    return made


async def _answered(shared: Shared, request: Request, page: Page) -> Response:
    """What a page answers; errors are told on a page of their own."""
    visit = Visit(request, shared)
    try:
        visit = Visit(request, shared, await _session(shared.site, request))
        asked_of(request.scope).actor = None if visit.session is None else visit.session.caller.actor
        visit.allow()
        _check(visit, page)
        return await page.handler(visit)
    except EvenmatchError as error:
        return await _refused(visit, page, error)
    except Exception as error:
        log.error("bug", request=visit.request_id, method=request.method, path=request.url.path, exc_info=error)
        said = f"This is a bug of ours. The log has it under {visit.request_id}."
        shown = {
            "title": "Something went wrong on our side",
            "told": said,
            "meant": None,
            "typed": visit.sent,
            "is_passing": True,
        }
        return await visit.show("error", shown, 500)


def _check(visit: Visit, page: Page) -> None:
    """Raise AccessError or ForbiddenError where the visitor may not see a page."""
    if page.scope is not None:
        visit.check(page.scope, visit.ladder if "ladder" in visit.request.path_params else None)


async def _session(site: Site, request: Request) -> Session | None:
    kept = request.cookies.get(SESSION)
    return None if kept is None else await site.work(site.sessions.find, kept)


async def _refused(visit: Visit, page: Page, error: EvenmatchError) -> Response:
    """The page of a refused form again, with what was typed and what is wrong; without a form, the error's own page."""
    status = kind_of(error.error if isinstance(error, FieldError) else error).status
    is_kept = page.form is not None and (status == 401 or status in PASSING)  # shown on the error's page
    if is_kept and visit.sent is None:  # refused before it was read
        with suppress(EvenmatchError):
            await visit.fields(proved=False)
    if page.form is not None and visit.sent is not None and not is_kept:
        visit.refused = refused(visit.request.scope["path"], visit.sent, error)
        visit.here = _filled(visit, page.form)
        try:
            _check(visit, FORMS[page.form])
            answer = await FORMS[page.form].handler(visit)
        except EvenmatchError:  # the page itself cannot be shown, as where its ladder is not there
            visit.refused = None
        else:
            answer.status_code = status
            return answer
    return await told(visit, error, page)


def _filled(visit: Visit, path: str) -> str:
    """The address of a page at this path, with the parts that the present address has."""
    parts = path.strip("/").split("/")
    return address(*(visit.part(one[1:-1].partition(":")[0]) if one.startswith("{") else one for one in parts))


async def told(visit: Visit, error: EvenmatchError, page: Page | None = None) -> Response:
    """The page that tells an error of ours; who is not logged in, and would have to be, is asked to."""
    error = error.error if isinstance(error, FieldError) else error
    kind = kind_of(error)
    meant = _meant(visit, error)
    if isinstance(error, UnknownNameError) and error.kind == "ladder" and visit.request.method == "GET":
        other = await visit.site.work(_spelled, visit, error.name)
        if other is not None:
            return RedirectResponse(other, 302)
    again = visit.here if page is None or page.form is None else _filled(visit, page.form)
    if isinstance(error, AccessError) and kind.status == 401:
        if visit.request.method == "GET" and visit.session is None:
            return visit.go(address("login", to=visit.here))
        kind = kind_of(ForbiddenError())
        meant = ("Log in again", address("login", to=again)) if visit.session is None else None
    title = "That is not allowed" if kind.status == 403 else kind.title
    said = str(error)
    if kind.status >= 500:
        log.error("page", request=visit.request_id, error=said)
        said = f"{kind.title}. Nothing was half done: try again."
    shown = {
        "title": title,
        "told": said,
        "meant": meant,
        "typed": visit.sent if page is not None and page.form is not None and kind.status != 404 else None,
        "is_passing": kind.status in PASSING,
        **await visit.site.work(_ladder_of, visit),
    }
    return await visit.show("error", shown, kind.status)


def _ladder_of(visit: Visit) -> dict[str, object]:
    """The ladder of the address for the head of the page, where it is there and may be read."""
    try:
        if "ladder" in visit.request.path_params and visit.may("read", visit.ladder):
            return {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "tab": ""}
    except EvenmatchError:
        pass
    return {}


def _meant(visit: Visit, error: EvenmatchError) -> tuple[str, str] | None:
    """The words and the address of a link to what was probably meant: the same page with the name that is known."""
    if not isinstance(error, UnknownNameError) or error.close is None or visit.request.method != "GET":
        return None
    path, query = visit.request.path_params, dict(visit.request.query_params)
    route = visit.request.scope.get("route")
    if route is None or error.name not in (*path.values(), *query.values()):
        return None
    parts = [path.get(one[1:-1].partition(":")[0], one) for one in route.path.strip("/").split("/")]
    replaced = [error.close if one == error.name else one for one in parts]
    asked = {name: error.close if value == error.name else value for name, value in query.items()}
    return f"Did you mean “{error.close}”?", address(*replaced) + (f"?{urlencode(asked)}" if asked else "")


def _spelled(visit: Visit, name: str) -> str | None:
    """The same address on the one ladder whose name differs in nothing but the case of its letters."""
    caller = visit.caller
    names = [] if caller is None else [one for one in visit.site.service.names() if caller.may("read", one)]
    found = [one for one in names if one.casefold() == name.casefold()]
    if len(found) != 1:
        return None
    path, query = visit.request.scope["path"], visit.request.url.query
    rest = path.split("/", 3)[3:]
    return "/".join((address("ladders", found[0]), *rest)) + (f"?{query}" if query else "")


class _Nowhere:
    """Answers at addresses where there is no page."""

    def __init__(self, shared: Shared, routes: Sequence[Route]) -> None:
        self._shared, self._routes = shared, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell that there is nothing; or lead on, where there is a page but for the slash behind its address."""
        request = Request(scope, receive)
        visit = Visit(request, self._shared)
        bare = {**scope, "path": scope["path"].rstrip("/")}
        if bare["path"] != scope["path"] and any(one.matches(bare)[0] is Match.FULL for one in self._routes):
            query = request.url.query
            await RedirectResponse(bare["path"] + (f"?{query}" if query else ""), 308)(scope, receive, send)
            return
        said = f"There is no page at {text.as_meant(scope['path'])[:200]!r}."
        try:
            visit.allow()
            answer = await visit.show("error", {"title": "Nothing is here", "told": said, "meant": None}, 404)
        except EvenmatchError as error:
            answer = await told(visit, error)
        await answer(scope, receive, send)


class _Answers:
    """The layer that gives every page the headers by which browsers keep strangers' texts harmless."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = list(message.get("headers", []))
                more = [] if any(name == b"cache-control" for name, _ in sent) else [CACHES]
                message["headers"] = [*sent, *HEADERS, *more]
            await send(message)

        await self._app(scope, receive, with_headers)
