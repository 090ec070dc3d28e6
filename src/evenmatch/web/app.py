"""The web site as an application: every page's address, who may see it, and what all answers have."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.errors import AccessError, EvenmatchError, ForbiddenError
from evenmatch.http import text
from evenmatch.http.asked import asked_of
from evenmatch.http.logs import log
from evenmatch.http.problems import kind_of
from evenmatch.http.site import Site
from evenmatch.service.callers.sessions import Session
from evenmatch.web.assets import send_asset
from evenmatch.web.page import Page
from evenmatch.web.pages import PAGES
from evenmatch.web.shared import Shared
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


def pages(site: Site) -> ASGIApp:
    """The web site over these use cases."""
    shared = Shared.over(site)
    routes = [Route("/assets/{version}/{name}", send_asset), *(_route(shared, one) for one in PAGES)]
    return _Answers(Router(routes, redirect_slashes=False, default=_Nowhere(shared)))


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
        if page.scope is not None:
            visit.check(page.scope, visit.ladder if "ladder" in request.path_params else None)
        return await page.handler(visit)
    except EvenmatchError as error:
        return await told(visit, error)
    except Exception as error:
        log.error("bug", request=visit.request_id, method=request.method, path=request.url.path, exc_info=error)
        said = f"This is a bug of ours. The log has it under {visit.request_id}."
        return await visit.show("error", {"title": "Something went wrong on our side", "told": said}, 500)


async def _session(site: Site, request: Request) -> Session | None:
    kept = request.cookies.get(SESSION)
    return None if kept is None else await site.work(site.sessions.find, kept)


async def told(visit: Visit, error: EvenmatchError) -> Response:
    """The page that tells an error of ours; who is not logged in, and would have to be, is asked to."""
    kind = kind_of(error)
    if isinstance(error, AccessError) and kind.status == 401:
        if visit.request.method == "GET" and visit.session is None:
            return visit.go(address("login", to=_here(visit)))
        kind = kind_of(ForbiddenError())
    title = "That is not allowed" if kind.status == 403 else kind.title
    said = str(error)
    if kind.status >= 500:
        log.error("page", request=visit.request_id, error=said)
        said = f"{kind.title}. Nothing was half done: try again."
    return await visit.show("error", {"title": title, "told": said}, kind.status)


def _here(visit: Visit) -> str:
    """The address of this page, with what was asked."""
    query = visit.request.url.query
    path: str = visit.request.scope["path"]
    return f"{path}?{query}" if query else path


class _Nowhere:
    """Answers at addresses where there is no page."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell that there is nothing."""
        request = Request(scope, receive)
        visit = Visit(request, self._shared)
        said = f"There is no page at {text.as_meant(scope['path'])[:200]!r}."
        try:
            visit.allow()
            answer = await visit.show("error", {"title": "Nothing is here", "told": said}, 404)
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
