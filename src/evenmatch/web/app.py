"""The web site as an ASGI application: routes, access checks, error pages and security headers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.accounts.sessions import Session
from evenmatch.errors import (
    AccessError,
    BusyError,
    EvenmatchError,
    ForbiddenError,
    HostError,
    RateLimitError,
    StoreError,
    UnknownNameError,
)
from evenmatch.http import hosts
from evenmatch.http.access import check_host
from evenmatch.http.logs import log
from evenmatch.http.problems import kind_of
from evenmatch.http.request_context import BodyRefusedError, context_of, logged_path
from evenmatch.http.site import Site
from evenmatch.lab.display_names import plain
from evenmatch.ladders.visibility import Visibility
from evenmatch.web.forms import FieldError, refused
from evenmatch.web.page_request import SESSION, Cookies, PageRequest, SharedState, address, send_asset
from evenmatch.web.page_route import PageRoute
from evenmatch.web.pages import PAGES
from evenmatch.web.view_models import LadderShown

STYLES = "style-src 'self' 'unsafe-inline'"  # the chart library inserts styles; scripts come from this site only
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
PASSING = (429, 500, 502, 503, 504)  # statuses of temporary failures
FORMS = {page.path: page for page in PAGES if "GET" in page.methods}


def pages(site: Site, *, is_demo: bool = False) -> ASGIApp:
    """Return the web site as an ASGI application. The front page of a demo says what is worth a click."""
    shared = SharedState.over(site, is_demo=is_demo)

    async def assets(request: Request) -> Response:
        return await send_asset(request, site.options.logo)

    routes = [Route("/assets/{version}/{name}", assets), *(_route(shared, page) for page in PAGES)]
    return _SecurityHeaders(Router(routes, redirect_slashes=False, default=_NotFound(shared, routes)))


def _route(shared: SharedState, page: PageRoute) -> Route:
    async def respond(request: Request) -> Response:
        request.scope["route"] = route
        return await _respond(shared, request, page)

    route = Route(page.path, respond, methods=list(page.methods))
    return route


async def _respond(shared: SharedState, request: Request, page: PageRoute) -> Response:
    """Call the handler of a page, and turn every exception into an error page or the refused form."""
    visit = PageRequest(request, shared)
    try:
        check_host(shared.site, request.scope)
        visit = PageRequest(request, shared, await _session(shared.site, request))
        context_of(request.scope).actor = None if visit.session is None else visit.session.caller.actor
        visit.allow()
        await _check(visit, page)
        return await page.handler(visit)
    except EvenmatchError as error:
        return await _error_response(visit, page, error)
    except BodyRefusedError as error:
        refused_body = {
            "title": visit.texts.translated(error.problem.title),
            "told": f"{error.problem.detail}.",
            "meant": None,
        }
        return await visit.show("error", refused_body, error.problem.status)
    except ClientDisconnect:
        raise  # the client has hung up
    except Exception as error:
        path = logged_path(request.scope)
        log.error("bug", request=visit.request_id, method=request.method, path=path, exc_info=error)
        message = visit.text(
            "This is a bug in evenmatch. The server log has the details under request %(id)s.", id=visit.request_id
        )
        values = {
            "title": visit.text("Something went wrong on our side"),
            "told": message,
            "meant": None,
            "typed": visit.sent,
            "is_passing": True,
        }
        return await visit.show("error", values, 500)


async def _check(visit: PageRequest, page: PageRoute) -> None:
    """Raise AccessError or ForbiddenError if the visitor may not see the page."""
    if page.scope is not None:
        visit.check(page.scope, visit.ladder if "ladder" in visit.request.path_params else None)
    if page.whole:
        await visit.site.work(_check_whole, visit)


def _check_whole(visit: PageRequest) -> None:
    """Raise AccessError or ForbiddenError if the ladder does not show the visitor all ratings."""
    visibility = Visibility(visit.reading.view(visit.ladder).snapshot.show)
    if visit.session is None and not visibility.is_all:
        raise AccessError("this page requires a login with a key")
    visibility.check("its lab", visit.ladder)


async def _session(site: Site, request: Request) -> Session | None:
    cookie = Cookies(request).read(SESSION)
    is_worth_a_query = cookie is not None and not site.sessions.is_invalid(cookie)
    return await site.identify(site.sessions.find, cookie) if is_worth_a_query else None


async def _error_response(visit: PageRequest, page: PageRoute, error: EvenmatchError) -> Response:
    """Show the refused form again with its values and the error, or the error page for other requests."""
    error = visit.as_seen(error)
    status = kind_of(error.error if isinstance(error, FieldError) else error).status
    if _is_refused_stranger(visit, error):
        return await error_page(visit, error, page)
    can_resend = page.form is not None and (status == 401 or status in PASSING)  # from the error page
    if can_resend and visit.sent is None:  # refused before reading the body
        with suppress(EvenmatchError):
            await visit.fields(proved=False)
    if page.form is not None and visit.sent is not None and not can_resend:
        visit.refused = refused(visit.request.scope["path"], visit.sent, error)
        visit.here = _fill_path(visit, page.form)
        try:
            await _check(visit, FORMS[page.form])
            response = await FORMS[page.form].handler(visit)
        except EvenmatchError:  # the page of the form fails too, for example if the ladder is unknown
            visit.refused = None
        else:
            response.status_code = status
            return response
    return await error_page(visit, error, page)


def _fill_path(visit: PageRequest, path: str) -> str:
    """Replace the placeholders of a route path by the path parameters of this request."""
    parts = path.strip("/").split("/")
    return address(*(visit.part(part[1:-1].partition(":")[0]) if part.startswith("{") else part for part in parts))


async def error_page(visit: PageRequest, error: EvenmatchError, page: PageRoute | None = None) -> Response:
    """Return the error page; redirect a GET that requires a login to the login page."""
    error = error.error if isinstance(error, FieldError) else error
    kind = kind_of(error)
    is_overloaded = isinstance(error, BusyError | StoreError)
    if _is_refused_stranger(visit, error):  # show nothing about the site, and nothing that was sent
        return await visit.show(
            "error", {"title": visit.texts.translated(kind.title), "told": str(error), "meant": None}, kind.status
        )
    meant = _suggestion(visit, error)
    after_login = visit.here if page is None or page.form is None else _fill_path(visit, page.form)
    if isinstance(error, AccessError) and kind.status == 401:
        if visit.request.method == "GET" and visit.session is None:
            return visit.go(address("login", to=visit.here))
        kind = kind_of(ForbiddenError())
        meant = (visit.text("Log in again"), address("login", to=after_login)) if visit.session is None else None
    title = visit.text("That is not allowed") if kind.status == 403 else visit.texts.translated(kind.title)
    message = str(error)
    if isinstance(error, UnknownNameError) and error.kind.startswith("player"):
        title = visit.text("No player called %(name)s", name=plain(error.name, 60))
        message = visit.text("Check the spelling, or search above.")
    if kind.status >= 500 and not isinstance(error, BusyError):
        log.error("page", request=visit.request_id, error=message)
        message = f"{title}. " + visit.text("Nothing was changed; try again.")
    values = {
        "title": title,
        "told": message,
        "meant": meant,
        "typed": visit.sent if page is not None and page.form is not None and kind.status != 404 else None,
        "is_passing": kind.status in PASSING,
        **({} if is_overloaded else await visit.site.work(_ladder_of, visit)),
    }
    return await visit.show("error", values, kind.status)


def _is_refused_stranger(visit: PageRequest, error: EvenmatchError) -> bool:
    """Whether the error may be part of a flood: a foreign host name, or a request beyond the rate limit."""
    return isinstance(error, HostError) or (isinstance(error, RateLimitError) and visit.session is None)


def _ladder_of(visit: PageRequest) -> dict[str, object]:
    """The template values for the ladder of the URL; empty if it does not exist or may not be read."""
    try:
        if "ladder" in visit.request.path_params and visit.may("read", visit.ladder):
            return {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "tab": ""}
    except EvenmatchError:
        pass
    return {}


def _suggestion(visit: PageRequest, error: EvenmatchError) -> tuple[str, str] | None:
    """The text and URL of a link to the same page with the known name that is closest to the unknown one."""
    if not isinstance(error, UnknownNameError) or error.close is None or visit.request.method != "GET":
        return None
    path, query = visit.request.path_params, dict(visit.request.query_params)
    route = visit.request.scope.get("route")
    if route is None or error.name not in (*path.values(), *query.values()):
        return None
    parts = [path.get(part[1:-1].partition(":")[0], part) for part in route.path.strip("/").split("/")]
    replaced = [error.close if part == error.name else part for part in parts]
    new_query = {name: error.close if value == error.name else value for name, value in query.items()}
    words = visit.text("Did you mean “%(name)s”?", name=error.close)
    return words, address(*replaced) + (f"?{urlencode(new_query)}" if new_query else "")


class _NotFound:
    """The response to paths without a route."""

    def __init__(self, shared: SharedState, routes: Sequence[Route]) -> None:
        self._shared, self._routes = shared, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond 404; redirect if the path without its trailing slash is a page."""
        request = Request(scope, receive)
        visit = PageRequest(request, self._shared)
        bare = {**scope, "path": scope["path"].rstrip("/")}
        if bare["path"] != scope["path"] and any(route.matches(bare)[0] is Match.FULL for route in self._routes):
            query = request.url.query
            await RedirectResponse(bare["path"] + (f"?{query}" if query else ""), 308)(scope, receive, send)
            return
        message = visit.text("There is no page at %(path)s.", path=repr(hosts.as_meant(scope["path"])[:200]))
        try:
            check_host(self._shared.site, scope)
            visit.allow()
            response = await visit.show(
                "error", {"title": visit.text("Nothing is here"), "told": message, "meant": None}, 404
            )
        except EvenmatchError as error:
            response = await error_page(visit, error)
        await response(scope, receive, send)


class _SecurityHeaders:
    """Middleware that adds the content security policy and related headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", []))
                names = {name for name, _ in own}
                message["headers"] = [*own, *(header for header in (*HEADERS, CACHES) if header[0] not in names)]
            await send(message)

        await self._app(scope, receive, with_headers)
