"""The ASGI application: endpoints, middleware, error handlers and the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from threading import Lock
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch import __version__
from evenmatch.accounts.access import ANYONE
from evenmatch.errors import EvenmatchError, RateLimitError
from evenmatch.http import reference_page
from evenmatch.http.access import allow, count, recalled
from evenmatch.http.docs_site import add_docs
from evenmatch.http.hosts import is_api
from evenmatch.http.hot_routes import HotRoutes
from evenmatch.http.middleware import (
    HEADER,
    REPEATED,
    CompressedReads,
    ErrorBoundary,
    Follower,
    Idempotency,
    RequestLifecycle,
    ResponseCache,
)
from evenmatch.http.openapi import complete
from evenmatch.http.problems import OTHERS, ProblemKind, invalid, make_problem, refusal, respond
from evenmatch.http.request_context import BodyRefusedError, context_of
from evenmatch.http.routes import ROUTERS
from evenmatch.http.site import Site, site_of

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
Pages = Callable[[Site], ASGIApp]  # creates the web site
REFERENCE = "/v1/docs"
DESCRIPTION = """Ratings, standings and even matches for competitive games.

Send your key as `Authorization: Bearer em_…`. Times are ISO 8601 in UTC. Lists come in pages: send `next` back as
`cursor`. Errors are `application/problem+json`. Reads have an `ETag`, writes take an `Idempotency-Key`. Names in an
address are percent-encoded."""


def application(site: Site, lifespan: Lifespan | None = None, pages: Pages | None = None) -> ASGIApp:
    """Create the application with its middleware; `lifespan` runs the background workers."""
    api: ASGIApp = ErrorBoundary(HotRoutes(endpoints(site, lifespan)))
    whole = api if pages is None else _with_pages(api, pages(site))
    app: ASGIApp
    if site.options.follower:
        app = CompressedReads(ResponseCache(Follower(whole, site), site))
    else:
        app = CompressedReads(ResponseCache(Idempotency(whole, site), site))
    if site.options.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(site.options.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", HEADER, "If-None-Match", "X-Request-Id"],
            expose_headers=[
                *("ETag", REPEATED, "Retry-After", "X-Request-Id"),
                *("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"),
            ],
        )
    return RequestLifecycle(app, site)


def _with_pages(api: ASGIApp, pages: ASGIApp) -> ASGIApp:
    """Serve the API at its own paths and the web site at all others."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and not is_api(scope["path"])
        await (pages if is_page else api)(scope, receive, send)

    return app


def endpoints(site: Site, lifespan: Lifespan | None = None) -> FastAPI:
    """Create the API with its OpenAPI document, without the outer middleware."""
    app = FastAPI(
        title="evenmatch",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # `_describe` serves it
        strict_content_type=False,
        redirect_slashes=False,
    )
    app.state.site = site
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(EvenmatchError, _evenmatch_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RecursionError, _nested_too_deep)
    app.add_middleware(ErrorBoundary)  # inside the middleware that FastAPI adds around its endpoints
    _describe(app, site)
    add_docs(app, site, REFERENCE)
    return app


def _describe(app: FastAPI, site: Site) -> None:
    """Serve the OpenAPI document, also as a page. A worker thread generates it once, which takes a second."""
    generate, making = app.openapi, Lock()

    def document() -> dict[str, Any]:
        return complete(generate())

    @cache
    def encoded() -> tuple[bytes, bytes]:
        made = app.openapi()
        return json.dumps(made, ensure_ascii=False).encode(), reference_page.page(made).encode()

    def made_once() -> tuple[bytes, bytes]:
        with making:
            return encoded()

    async def openapi(request: Request) -> Response:
        allow(site, request.scope, recalled(site, request.scope) or ANYONE)
        return Response((await site.work(made_once))[0], media_type="application/json")

    async def reference(request: Request) -> Response:
        allow(site, request.scope, recalled(site, request.scope) or ANYONE)
        headers = {"Content-Security-Policy": reference_page.POLICY, "X-Content-Type-Options": "nosniff"}
        return Response((await site.work(made_once))[1], headers=headers, media_type="text/html")

    app.openapi = cache(document)  # type: ignore[method-assign]
    app.add_route("/v1/openapi.json", openapi, include_in_schema=False)
    app.add_route(REFERENCE, reference, include_in_schema=False)


async def _evenmatch_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, EvenmatchError)
    return refusal(error, context_of(request.scope))


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return invalid(error, context_of(request.scope))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, BodyRefusedError):
        return respond(error.problem)
    context = context_of(request.scope)
    if context.allowance is None:  # not counted yet, since no endpoint was reached
        try:
            await count(site_of(request), request.scope)
        except RateLimitError as exceeded:
            return refusal(exceeded, context)
    kind = OTHERS.get(error.status_code, ProblemKind(error.status_code, "http", str(error.detail)))
    detail = f"{request.method} {request.url.path[:200]}: {error.detail}"
    if error.status_code == 404 and not is_api(request.url.path) and not site_of(request).options.pages:
        detail += "; EVENMATCH_PAGES is false, so there is no web site"
    response = respond(make_problem(kind, detail, context.id))
    response.headers.update(error.headers or {})
    return response


async def _nested_too_deep(request: Request, _: Exception) -> Response:
    return respond(make_problem(OTHERS[400], "the body is nested too deeply", context_of(request.scope).id))
