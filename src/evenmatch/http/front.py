"""What every request goes through first and last: its id, its address, how large it may be, the log and the figures."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.http.limits import Allowance
from evenmatch.http.logs import log
from evenmatch.http.metrics import Metrics
from evenmatch.http.problems import OTHERS, respond, told

REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
QUIET = {"/healthz", "/readyz", "/metrics"}  # asked all the time: logged at debug alone


@dataclass
class Asked:
    """What is known of a request; the rest of the application writes into it.

    waits  it is answered when something happens, and so is not among those whose time is measured
    """

    id: str
    actor: str | None = None
    allowance: Allowance | None = None
    waits: bool = False


class _BodyTooLargeError(HTTPException):  # of another kind it would be taken for a body that cannot be read
    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the body has more than {limit:,} bytes; accepted are so many, or several requests")


def asked_of(scope: Scope) -> Asked:
    """What is known of a request."""
    asked: Asked = scope["evenmatch.asked"]
    return asked


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of a body that is JSON, whatever it calls itself: curl calls all that it sends a form."""
    return [(name, b"application/json" if name == b"content-type" else value) for name, value in headers]


class _Body:
    """The body of a request as it comes, up to a limit."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit, self._size = receive, limit, 0

    def check(self, size: int) -> None:
        """Raise _BodyTooLargeError for more bytes than the limit."""
        if size > self._limit:
            raise _BodyTooLargeError(self._limit)

    async def __call__(self) -> Message:
        """The next piece."""
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self.check(self._size)
        return message


class _Answer:
    """The answer as it goes, with the headers that all answers have. status: 0 until it begins."""

    def __init__(self, send: Send, asked: Asked) -> None:
        self._send, self._asked, self.status = send, asked, 0

    async def __call__(self, message: Message) -> None:
        """Send the next piece."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            more = [(b"x-request-id", self._asked.id.encode())]
            if self._asked.allowance is not None:
                more += self._asked.allowance.headers()
            message["headers"] = [*message.get("headers", []), *more]
        await self._send(message)


class Front:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, metrics: Metrics, body_limit: int) -> None:
        self._app, self._metrics, self._limit = app, metrics, body_limit

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
        answer = _Answer(send, asked)
        self._metrics.running.inc()
        try:
            await self._guard(scope, _Body(receive, self._limit), answer, headers.get(b"content-length", b"0"))
        finally:
            self._metrics.running.dec()
            self._tell(scope, asked, answer.status, time.perf_counter() - begin)

    async def _guard(self, scope: Scope, body: _Body, answer: _Answer, declared: bytes) -> None:
        """Let the application answer; what it did not foresee is told as a problem, too."""
        asked = asked_of(scope)
        try:
            body.check(int(declared) if declared.isdigit() else 0)
            await self._app(scope, body, answer)
        except _BodyTooLargeError as error:
            if answer.status:
                raise
            await respond(told(OTHERS[413], error.detail, asked.id))(scope, body, answer)
        except Exception as error:
            log.error("bug", request=asked.id, method=scope["method"], path=scope["path"], exc_info=error)
            if answer.status:
                raise
            detail = "this is a bug of ours; the log has it under this request_id"
            await respond(told(OTHERS[500], detail, asked.id))(scope, body, answer)

    def _tell(self, scope: Scope, asked: Asked, status: int, seconds: float) -> None:
        """Count the request, and log it."""
        route = getattr(scope.get("route"), "path_format", "(none)")
        self._metrics.requests.labels(scope["method"] if route != "(none)" else "", route, str(status)).inc()
        if not asked.waits:
            self._metrics.seconds.labels(route).observe(seconds)
        tell = log.debug if scope["path"] in QUIET else log.info
        tell(
            "request",
            request=asked.id,
            method=scope["method"],
            path=scope["path"],
            status=status,
            ms=round(seconds * 1000, 2),
            actor=asked.actor,
        )
