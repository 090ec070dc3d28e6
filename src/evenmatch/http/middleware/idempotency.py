"""Middleware for the header Idempotency-Key: a write that is sent again is not carried out again."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.durations import SECOND
from evenmatch.errors import EvenmatchError, StoreError, UsageError
from evenmatch.http.access import READS, authenticated, header, read_before
from evenmatch.http.logs import log
from evenmatch.http.middleware.follower import READING
from evenmatch.http.problems import refusal
from evenmatch.http.replayable_body import ReplayableBody
from evenmatch.http.request_context import context_of
from evenmatch.http.site import ALL, Site
from evenmatch.service.callers.access import ANYONE
from evenmatch.service.callers.idempotent_requests import LEASE, Answer, Attempt, IdempotentRequest

HEADER, IN_SCOPE = "Idempotency-Key", b"idempotency-key"
REPEATED = "Idempotent-Replayed"  # header of an answer that was repeated
LONGEST = 256  # characters
OF_API = "/v1/"
REFUSED = 400  # least status of an answer that is not kept: the request was refused and has changed nothing
EXTEND_EVERY = LEASE / SECOND / 3


def takes_key(method: str, path: str) -> bool:
    """Whether a request of this path, or of paths with this format, is a write, which may have an Idempotency-Key."""
    return path.startswith(OF_API) and method not in READS and READING.fullmatch(path) is None


class RepeatedRoute(NamedTuple):
    """The route of a repeated answer in the metrics."""

    path_format: str = "(repeated)"


class Idempotency:
    """Carries out a write with an Idempotency-Key once, and repeats its answer to the same caller for a day."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        key = header(scope, IN_SCOPE) if scope["type"] == "http" else None
        if key is None or not takes_key(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        body = ReplayableBody(receive)
        try:
            begun = await self._begin(scope, key, body)
        except EvenmatchError as error:
            await refusal(error, context_of(scope))(scope, receive, send)
            return
        if begun is None:
            await self._app(scope, body, send)
        elif isinstance(begun, Answer):
            scope["route"] = RepeatedRoute()
            await _send(begun, send, repeated=True)
        else:
            await self._carry_out(begun, scope, body, send)

    async def _begin(self, scope: Scope, key: str, body: ReplayableBody) -> Answer | Attempt | None:
        """The answer to the request, or an attempt to carry out; None: the application refuses or ignores it.

        Raises the error that refuses the request.
        """
        if not 1 <= len(key) <= LONGEST:
            raise UsageError(f"the header {HEADER} has {len(key):,} characters; expected 1 to {LONGEST}")
        content = await body.whole()
        if content is None:
            return None

        caller = await authenticated(self._site, scope, read_before(content))
        if caller is ANYONE:
            return None
        context = context_of(scope)
        request = IdempotentRequest(caller, key, _digest(scope, content), context.id)
        return await self._site.begun_requests.one(ALL, request)

    async def _carry_out(self, attempt: Attempt, scope: Scope, body: Receive, send: Send) -> None:
        """Carry out a request, store its answer, then send it."""
        response = _Response()
        extending = asyncio.create_task(self._extend(attempt))
        try:
            await self._app(scope, body, response)
        except Exception:
            await self._end(attempt, None)
            raise
        finally:
            extending.cancel()
        await self._end(attempt, response.answer)
        if response.answer is not None:
            await _send(response.answer, send)

    async def _end(self, attempt: Attempt, answer: Answer | None) -> None:
        """Store the answer of an attempt. If it failed or is unknown, the request may be sent again.

        If this fails, the attempt ends with its lease.
        """
        try:
            if answer is None or answer.status >= 500:
                await self._site.work(self._site.idempotent_requests.release, attempt)
            else:
                kept = None if answer.status >= REFUSED else answer
                await self._site.ended_requests.one(ALL, (attempt, kept))
        except StoreError as error:
            log.error("database", request=attempt.request, error=str(error))

    async def _extend(self, attempt: Attempt) -> None:
        """Extend the lease of an attempt until cancelled."""
        while True:
            await asyncio.sleep(EXTEND_EVERY)
            with suppress(StoreError):
                await self._site.work(self._site.idempotent_requests.extend, attempt)


class _Response:
    """Collects a response, as ASGI `send`. answer: the response once it is complete."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self._start: Message | None = None
        self._body: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        """Collect the next message."""
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body":
            self._body.append(message.get("body", b""))
            if self._start is not None and not message.get("more_body", False):
                headers = tuple(
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in self._start["headers"]
                )
                self.answer = Answer(self._start["status"], headers, b"".join(self._body))


async def _send(answer: Answer, send: Send, *, repeated: bool = False) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    if repeated:
        headers.append((REPEATED.lower().encode(), b"true"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _digest(scope: Scope, content: bytes) -> bytes:
    """SHA-256 of what is requested: method, address and body."""
    head = b"\n".join(
        (scope["method"].encode(), scope["path"].encode("utf-8", "surrogatepass"), scope["query_string"], b"")
    )
    return hashlib.sha256(head + content).digest()
