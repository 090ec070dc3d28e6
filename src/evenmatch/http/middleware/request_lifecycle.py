"""The outermost middleware: request id, raw path, body limit, log and metrics."""

from __future__ import annotations

import asyncio
import re
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.http.connections import Connection
from evenmatch.http.limited_body import LimitedBody
from evenmatch.http.logs import log
from evenmatch.http.middleware.error_boundary import ErrorBoundary
from evenmatch.http.repeated_log import repeated
from evenmatch.http.request_context import RequestContext, logged_path
from evenmatch.http.site import Site

REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
TOO_MANY = 429  # refused with this status, requests are counted in the log, and not listed
QUIET = {"/healthz", "/readyz", "/metrics"}  # requested very often, so logged only at level debug


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with content type JSON, whatever was sent: curl labels every body as a form by default."""
    return [(name, b"application/json" if name == b"content-type" else value) for name, value in headers]


class _ResponseHeaders:
    """Adds the headers that all responses have."""

    def __init__(self, site: Site, scope: Scope, send: Send, context: RequestContext) -> None:
        self._connection: Connection | None = scope.get("evenmatch.connection")
        self._site, self._send, self._context = site, send, context

    async def __call__(self, message: Message) -> None:
        """Send the next message, as ASGI `send`."""
        if message["type"] == "http.response.start":
            self._context.status = message["status"]
            extra = [(b"x-request-id", self._context.id.encode())]
            if self._context.allowance is not None:
                extra += self._context.allowance.headers()
            is_receiving = self._connection is not None and self._connection.is_receiving
            if is_receiving or self._site.retiring.is_set():  # the rest of the body is not read; or another takes over
                extra.append((b"connection", b"close"))
            message["headers"] = [*message.get("headers", []), *extra]
        await self._send(message)


class RequestLifecycle:
    """The outermost middleware of the application."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site, self._metrics = ErrorBoundary(app), site, site.metrics
        self._log = log.bind()  # bound once, which is faster than for each request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        headers = dict(scope["headers"])
        request_id = headers.get(b"x-request-id", b"")
        context = RequestContext(request_id.decode() if REQUEST_ID.fullmatch(request_id) else secrets.token_hex(8))
        scope["evenmatch.asked"] = context
        # names may contain an encoded slash, so routing splits the raw path and decodes each segment
        scope["path"] = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        scope["headers"] = _as_json(scope["headers"])
        length = headers.get(b"content-length", b"")
        body = LimitedBody(self._site, scope, receive, int(length) if length.isdigit() else 0)
        self._metrics.running += 1
        try:
            await self._app(scope, body, _ResponseHeaders(self._site, scope, send, context))
        except asyncio.CancelledError:  # by the server, when it stops and the connection is already closed
            self._log.warning("request cut off", request=context.id, method=scope["method"], path=logged_path(scope))
        finally:
            self._metrics.running -= 1
            body.release()
            self._record(scope, context, time.perf_counter() - begin)

    def _record(self, scope: Scope, context: RequestContext, seconds: float) -> None:
        """Count and log the request."""
        route = getattr(scope.get("route"), "path_format", "(none)")
        method = scope["method"] if route != "(none)" else ""
        self._metrics.answered(method, route, context.status, None if context.waits else seconds)
        if context.status == TOO_MANY:
            repeated.warning("too many requests", method=scope["method"], path=logged_path(scope), actor=context.actor)
            return
        write = self._log.debug if scope["path"] in QUIET else self._log.info
        write(
            "request",
            request=context.id,
            method=scope["method"],
            path=logged_path(scope),
            status=context.status,
            ms=round(seconds * 1000, 2),
            actor=context.actor,
        )
