"""The application, put together: its endpoints, its errors, its document."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch import __version__
from evenmatch.errors import EvenmatchError
from evenmatch.http.asked import asked_of
from evenmatch.http.express import Express
from evenmatch.http.front import Front
from evenmatch.http.guard import Guard
from evenmatch.http.models.policies import PolicyOptions, QueuePolicy
from evenmatch.http.models.problems import Fault, Problem
from evenmatch.http.problems import MEDIA_TYPE, OTHERS, Kind, refusal, respond, told
from evenmatch.http.routes import ROUTERS
from evenmatch.http.shortcut import Shortcut
from evenmatch.http.site import Site
from evenmatch.matchmaking.policy import OTHER_OPTIONS, options

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
Pages = Callable[[Site], ASGIApp]  # the web site over the use cases
OURS = ("/v1/", "/healthz", "/readyz", "/metrics")  # addresses of the endpoints; the others are of pages
TOLD = """Ratings, standings and even matches for competitive games.

Send your key as `Authorization: Bearer em_…`. Times are ISO 8601 in UTC. Lists come in pages: send `next` back as
`cursor`. Errors are `application/problem+json`. Reads have an `ETag`. Names in an address are percent-encoded."""
ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"description": title, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status, title in (
        (400, "The request cannot be read"),
        (401, "A valid key or token is needed"),
        (403, "The key does not allow this"),
        (404, "There is nothing of that name"),
        (409, "This contradicts what is there"),
        (413, "The body is too large"),
        (422, "A value is not accepted"),
        (429, "Too many requests"),
        (503, "The database does not answer"),
    )
}


def application(site: Site, lifespan: Lifespan | None = None, pages: Pages | None = None) -> ASGIApp:
    """The application over these use cases, in its layers; `lifespan` runs what goes on beside the requests."""
    asked: ASGIApp = endpoints(site, lifespan)
    app: ASGIApp = Shortcut(Express(asked if pages is None else _both(asked, pages(site)), site), site)
    if site.options.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(site.options.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "If-None-Match", "X-Request-Id"],
            expose_headers=["ETag", "X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
        )
    return Front(app, site.metrics, site.options.body_limit)


def _both(endpoints: ASGIApp, pages: ASGIApp) -> ASGIApp:
    """The endpoints, and pages at all other addresses."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and not scope["path"].startswith(OURS)
        await (pages if is_page else endpoints)(scope, receive, send)

    return app


def endpoints(site: Site, lifespan: Lifespan | None = None) -> FastAPI:
    """All that can be asked, with its document."""
    app = FastAPI(
        title="evenmatch",
        version=__version__,
        description=TOLD,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses=ANSWERS,
        strict_content_type=False,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.site = site
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(EvenmatchError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _theirs)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_middleware(Guard)  # inside what the framework puts around its endpoints
    _document(app)
    return app


def _document(app: FastAPI) -> None:
    """Put what the handlers raise into the OpenAPI document."""
    make = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = make()
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schema.pop("$defs", {}))
            schemas["Problem"] = schema
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            for model in (PolicyOptions, QueuePolicy):
                _describe_options(schemas[model.__name__]["properties"])
        return app.openapi_schema or made

    app.openapi = document  # type: ignore[method-assign]


def _describe_options(properties: dict[str, dict[str, Any]]) -> None:
    """Put what each option of a policy does and accepts into its schema."""
    for name, effect in OTHER_OPTIONS.items():
        properties[name]["description"] = effect
    for name, option in options().items():
        schema = properties[name]
        schema["description"] = option.effect
        of_number = next((one for one in schema.get("anyOf", ()) if one["type"] != "null"), schema)
        of_number["minimum"] = option.low
        if math.isfinite(option.high):
            of_number["maximum"] = option.high


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, EvenmatchError)
    return refusal(error, asked_of(request.scope).id)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        detail = f"the body is no JSON: {found[0].get('ctx', {}).get('error', found[0]['msg'])}"
        return _respond(request, OTHERS[400], detail)
    faults = [Fault(where=_where(one["loc"]), reason=_reason(one)) for one in found[:100]]
    first = f"{faults[0].where}: {faults[0].reason}"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return _respond(request, OTHERS[422], first + more, faults)


def _where(place: tuple[str | int, ...]) -> str:
    """teams.0.place, of the body; the name of what stands in the address."""
    parts = place[1:] if place and place[0] in {"body", "query", "path", "header"} else place
    return ".".join(map(str, parts)) or str(place[0] if place else "")


def _reason(error: dict[str, Any]) -> str:
    value = error.get("input")
    is_told = error["type"] != "missing" and not isinstance(value, dict | list | bytes)
    shown = f" (sent: {str(value)[:80]!r})" if is_told else ""
    return f"{error['msg'].removeprefix('Value error, ')}{shown}"


async def _theirs(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = OTHERS.get(error.status_code, Kind(error.status_code, "http", str(error.detail)))
    answer = _respond(request, kind, f"{request.method} {request.url.path[:200]}: {error.detail}")
    answer.headers.update(error.headers or {})
    return answer


async def _too_deep(request: Request, _: Exception) -> Response:
    return _respond(request, OTHERS[400], "the body is nested too deeply")


def _respond(request: Request, kind: Kind, detail: str, faults: list[Fault] | None = None) -> Response:
    clean = detail.encode(errors="backslashreplace").decode()
    return respond(told(kind, clean, asked_of(request.scope).id, problems=faults))
