"""What every request goes through first and last: its id, its address, how large it may be, the log and the figures."""

from __future__ import annotations

import re
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.http.asked import Asked, BodyTooLargeError
from evenmatch.http.guard import Guard
from evenmatch.http.logs import log
from evenmatch.http.metrics import Metrics

REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
QUIET = {"/healthz", "/readyz", "/metrics"}  # asked all the time: logged at debug alone


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of a body that is JSON, whatever it calls itself: curl calls all that it sends a form."""
    return [(name, b"application/json" if name == b"content-type" else value) for name, value in headers]


class _Body:
    """The body of a request as it comes, up to a limit; of one that is declared too long nothing is read."""

    def __init__(self, receive: Receive, limit: int, declared: int) -> None:
        self._receive, self._limit, self._size = receive, limit, 0
        self._too_long = declared > limit

    async def __call__(self) -> Message:
        """The next piece. Raises BodyTooLargeError."""
        if self._too_long:
            raise BodyTooLargeError(self._limit)
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise BodyTooLargeError(self._limit)
        return message


class _Answer:
    """The answer as it goes, with the headers that all answers have."""

    def __init__(self, send: Send, asked: Asked) -> None:
        self._send, self._asked = send, asked

    async def __call__(self, message: Message) -> None:
        """Send the next piece."""
        if message["type"] == "http.response.start":
            self._asked.status = message["status"]
            more = [(b"x-request-id", self._asked.id.encode())]
            if self._asked.allowance is not None:
                more += self._asked.allowance.headers()
            message["headers"] = [*message.get("headers", []), *more]
        await self._send(message)


class Front:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, metrics: Metrics, body_limit: int) -> None:
        self._app, self._metrics, self._limit = Guard(app), metrics, body_limit
        self._log = log.bind()  # found once, not for each request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        headers = dict(scope["headers"])
        sent = headers.get(b"x-request-id", b"")
        asked = Asked(sent.decode() if REQUEST_ID.fullmatch(sent) else secrets.token_hex(8))
        scope["evenmatch.asked"] = asked
        # names may hold a slash: the address stays as it was sent until it is cut into its parts
        scope["path"] = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        scope["headers"] = _as_json(scope["headers"])
        declared = headers.get(b"content-length", b"0")
        body = _Body(receive, self._limit, int(declared) if declared.isdigit() else 0)
        self._metrics.running += 1
        try:
            await self._app(scope, body, _Answer(send, asked))
        finally:
            self._metrics.running -= 1
            self._tell(scope, asked, time.perf_counter() - begin)

    def _tell(self, scope: Scope, asked: Asked, seconds: float) -> None:
        """Count the request, and log it."""
        route = getattr(scope.get("route"), "path_format", "(none)")
        method = scope["method"] if route != "(none)" else ""
        self._metrics.answered(method, route, asked.status, None if asked.waits else seconds)
        tell = self._log.debug if scope["path"] in QUIET else self._log.info
        tell(
            "request",
            request=asked.id,
            method=scope["method"],
            path=scope["path"],
            status=asked.status,
            ms=round(seconds * 1000, 2),
            actor=asked.actor,
        )
