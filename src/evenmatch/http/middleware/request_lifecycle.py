"""The outermost middleware: request id, raw path, body limit, log and metrics."""

from __future__ import annotations

import re
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.http.logs import log
from evenmatch.http.metrics import HttpMetrics
from evenmatch.http.middleware.error_boundary import ErrorBoundary
from evenmatch.http.request_context import BodyTooLargeError, RequestContext

REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
QUIET = {"/healthz", "/readyz", "/metrics"}  # requested very often, so logged only at level debug


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with content type JSON, whatever was sent: curl labels every body as a form by default."""
    return [(name, b"application/json" if name == b"content-type" else value) for name, value in headers]


class _LimitedBody:
    """The body of a request up to a size limit; nothing is read if its declared length exceeds the limit."""

    def __init__(self, receive: Receive, limit: int, declared: int) -> None:
        self._receive, self._limit, self._size = receive, limit, 0
        self._too_long = declared > limit

    async def __call__(self) -> Message:
        """The next message, as ASGI `receive`. Raises BodyTooLargeError."""
        if self._too_long:
            raise BodyTooLargeError(self._limit)
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise BodyTooLargeError(self._limit)
        return message


class _ResponseHeaders:
    """Adds the headers that all responses have."""

    def __init__(self, send: Send, context: RequestContext) -> None:
        self._send, self._context = send, context

    async def __call__(self, message: Message) -> None:
        """Send the next message, as ASGI `send`."""
        if message["type"] == "http.response.start":
            self._context.status = message["status"]
            extra = [(b"x-request-id", self._context.id.encode())]
            if self._context.allowance is not None:
                extra += self._context.allowance.headers()
            message["headers"] = [*message.get("headers", []), *extra]
        await self._send(message)


class RequestLifecycle:
    """The outermost middleware of the application."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics, body_limit: int) -> None:
        self._app, self._metrics, self._limit = ErrorBoundary(app), metrics, body_limit
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
        declared = headers.get(b"content-length", b"0")
        body = _LimitedBody(receive, self._limit, int(declared) if declared.isdigit() else 0)
        self._metrics.running += 1
        try:
            await self._app(scope, body, _ResponseHeaders(send, context))
        finally:
            self._metrics.running -= 1
            self._record(scope, context, time.perf_counter() - begin)

    def _record(self, scope: Scope, context: RequestContext, seconds: float) -> None:
        """Count and log the request."""
        route = getattr(scope.get("route"), "path_format", "(none)")
        method = scope["method"] if route != "(none)" else ""
        self._metrics.answered(method, route, context.status, None if context.waits else seconds)
        write = self._log.debug if scope["path"] in QUIET else self._log.info
        write(
            "request",
            request=context.id,
            method=scope["method"],
            path=scope["path"],
            status=context.status,
            ms=round(seconds * 1000, 2),
            actor=context.actor,
        )
