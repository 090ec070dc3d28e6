"""ASGI middleware: errors, followers, Idempotency-Key, the request log, and cached responses."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.accounts.access import ANYONE
from evenmatch.accounts.idempotent_requests import LEASE, Answer, Attempt
from evenmatch.durations import SECOND
from evenmatch.errors import EvenmatchError, FollowerError, StoreError, UsageError
from evenmatch.http.access import READS, authenticated, header, is_allowed, read_before, recalled
from evenmatch.http.cached_standings import CachedResponse
from evenmatch.http.hosts import is_api
from evenmatch.http.logs import log, repeated
from evenmatch.http.problems import OTHERS, make_problem, refusal, respond
from evenmatch.http.request_context import BodyRefusedError, RequestContext, context_of, logged_path
from evenmatch.http.responses import PRIVATE, holds, send_at_once
from evenmatch.http.site import Site


class ErrorBoundary:
    """Turns exceptions into error responses. Once the response has begun, they are raised again, which aborts it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = context_of(scope)
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            return  # the client has hung up
        except BodyRefusedError as error:
            if context.status:
                raise
            await respond(error.problem)(scope, receive, send)
        except Exception as error:
            log.error("bug", request=context.id, method=scope["method"], path=logged_path(scope), exc_info=error)
            if context.status:
                raise
            detail = "this is a bug in evenmatch; the server log has the details under this request_id"
            await respond(make_problem(OTHERS[500], detail, context.id))(scope, receive, send)


READING = re.compile(r"/v1/ladders/[^/]+/odds")  # a POST that changes nothing
WRITING = re.compile(r"/v1/ladders/[^/]+/tickets(/.*)?")  # a GET of a ticket is a heartbeat, which is a write


class NamedRoute(NamedTuple):
    """The label in the metrics of requests that reach no endpoint."""

    path_format: str


class Follower:
    """Refuses writes, and names the address that accepts them."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._error = app, FollowerError(site.options.writes_at)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a write to the API. Pages refuse their own writes."""
        if scope["type"] == "http" and is_api(scope["path"]) and _is_write(scope["method"], scope["path"]):
            scope["route"] = NamedRoute("(follower)")
            response = refusal(self._error, context_of(scope))
            response.headers["Allow"] = ", ".join(READS)
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_write(method: str, path: str) -> bool:
    return WRITING.fullmatch(path) is not None or (method not in READS and READING.fullmatch(path) is None)


HEADER, IN_SCOPE = "Idempotency-Key", b"idempotency-key"
REPEATED = "Idempotent-Replayed"  # header of a repeated answer
LONGEST = 256  # characters of a key
OF_API = "/v1/"
REFUSED = 400  # answers with this status or a higher one are not stored, since the request changed nothing
COMPRESSED_FROM = 1000  # bytes of a body; shorter ones fit into a packet
COMPRESSION = 5  # zlib's level: 9 takes three times as long on a long list, for a tenth less
EXTEND_EVERY = LEASE / SECOND / 3


def takes_key(method: str, path: str) -> bool:
    """Whether a request to this path or path format is a write, which may have an Idempotency-Key."""
    return path.startswith(OF_API) and method not in READS and READING.fullmatch(path) is None


class Idempotency:
    """Carries out a write with an Idempotency-Key once, and repeats its answer to the same caller for a day."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site
        self._ending: set[asyncio.Task[None]] = set()  # asyncio itself keeps only weak references

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
            scope["route"] = NamedRoute("(repeated)")
            await _send(begun, send, repeated=True)
        else:
            await self._carry_out(begun, scope, body, send)

    async def _begin(self, scope: Scope, key: str, body: ReplayableBody) -> Answer | Attempt | None:
        """Return the stored answer, or an attempt to carry out the request; None if the application refuses it.

        Raises the error that refuses the request.
        """
        if not 1 <= len(key) <= LONGEST:
            raise UsageError(f"the header {HEADER} has {len(key):,} characters; expected 1 to {LONGEST}")
        if header(scope, b"authorization") is None:  # refused without reading the body
            return None
        content = await body.whole()
        if content is None:
            return None
        caller = await authenticated(self._site, scope, read_before(content))
        if caller is ANYONE:
            return None
        request = caller, key, _digest(scope, content), context_of(scope).id
        return await self._site.work(self._site.idempotent_requests.begin, *request)

    async def _carry_out(self, attempt: Attempt, scope: Scope, body: Receive, send: Send) -> None:
        """Carry out a request, store its answer, then send it.

        If the work still runs when the answer is sent, the lease is kept until it has ended.
        """
        response, answer, work_ended = _Response(), None, asyncio.Event()
        extending = asyncio.create_task(self._extend(attempt, work_ended))
        try:
            await self._app(scope, body, response)
            answer = response.answer
        finally:
            unfinished = context_of(scope).unfinished
            if unfinished is None:
                work_ended.set()
                await extending  # an extension after the end would undo it
                await self._end(attempt, answer)
            else:
                ending = asyncio.create_task(self._end_after(unfinished, work_ended, extending, attempt))
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)
        if answer is not None:
            await _send(answer, send)

    async def _end_after(
        self, work: Future[Any], work_ended: asyncio.Event, extending: asyncio.Task[None], attempt: Attempt
    ) -> None:
        """End an attempt once its work has ended. Whether it was carried out is in the audit trail."""
        await asyncio.gather(asyncio.wrap_future(work), return_exceptions=True)
        work_ended.set()
        await extending
        await self._end(attempt, None)

    async def _end(self, attempt: Attempt, answer: Answer | None) -> None:
        """Store the answer of an attempt. If the attempt failed or has no answer, the request may be sent again.

        If storing fails, the attempt ends with its lease.
        """
        try:
            if answer is None or answer.status >= 500:
                await self._site.work(self._site.idempotent_requests.release, attempt)
            else:
                kept = None if answer.status >= REFUSED else answer
                await self._site.work(self._site.idempotent_requests.end, attempt, kept)
        except StoreError as error:
            log.error("database", request=attempt.request, error=str(error))

    async def _extend(self, attempt: Attempt, work_ended: asyncio.Event) -> None:
        """Extend the lease of an attempt until its work has ended."""
        while True:
            try:
                await asyncio.wait_for(work_ended.wait(), EXTEND_EVERY)
            except TimeoutError:
                with suppress(StoreError):
                    await self._site.work(self._site.idempotent_requests.extend, attempt)
            else:
                return


class _Response:
    """ASGI `send` that collects a response. answer: the response once it is complete."""

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
    """SHA-256 of the method, the address and the body of a request."""
    head = b"\n".join(
        (scope["method"].encode(), scope["path"].encode("utf-8", "surrogatepass"), scope["query_string"], b"")
    )
    return hashlib.sha256(head + content).digest()


REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
TOO_MANY = 429  # the log counts requests with this status instead of listing them
QUIET = {"/healthz", "/readyz", "/metrics"}  # frequent requests, logged at level debug


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Replace any content type by JSON, since curl labels every body as a form by default."""
    return [(name, b"application/json" if name == b"content-type" else value) for name, value in headers]


LARGE = re.compile(  # bodies up to the setting `body_limit`
    r"/v1/ladders/[^/]+/(matches|matches/batch|start-ratings)|/ladders/[^/]+/operate/files"
)
SMALL_BODY = 128 * 1024  # largest body of all other requests, in bytes


class LimitedBody:
    """ASGI `receive` that limits the size of the body.

    declared  the value of Content-Length; empty: it was not sent
    limit     largest body of match reports, imports and starting ratings, in bytes
    """

    def __init__(self, scope: Scope, receive: Receive, declared: bytes, limit: int) -> None:
        self._scope, self._receive = scope, receive
        self._limit = limit if LARGE.fullmatch(scope["path"]) else min(limit, SMALL_BODY)
        self._setting = ", EVENMATCH_BODY_LIMIT" if self._limit == limit else ""
        self._size = int(declared) if declared.isdigit() else 0
        self._received = 0

    async def __call__(self) -> Message:
        """Return the next message. Raises BodyRefusedError, again if the body was refused before."""
        if max(self._size, self._received) > self._limit:
            raise self._refused()
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > self._limit:
            raise self._refused()
        return message

    def _refused(self) -> BodyRefusedError:
        detail = f"the body is larger than the limit of {self._limit:,} bytes{self._setting}; split it into several"
        return BodyRefusedError(make_problem(OTHERS[413], f"{detail} requests", context_of(self._scope).id))


class ReplayableBody:
    """ASGI `receive` whose body can be read in advance."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []

    async def whole(self) -> bytes | None:
        """Read the whole body; None if the client disconnected. Raises BodyRefusedError."""
        parts = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._read = [message]
                return None
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                body = b"".join(parts)
                self._read = [{"type": "http.request", "body": body, "more_body": False}]
                return body

    async def __call__(self) -> Message:
        """Return the next message."""
        if self._read:
            return self._read.pop(0)
        return await self._receive()


class _ResponseHeaders:
    """ASGI `send` that adds the headers common to all responses."""

    def __init__(self, send: Send, context: RequestContext, site: Site) -> None:
        self._send, self._context, self._site = send, context, site

    async def __call__(self, message: Message) -> None:
        """Send the next message."""
        if message["type"] == "http.response.start":
            self._context.status = message["status"]
            extra = [(b"x-request-id", self._context.id.encode())]
            if self._context.allowance is not None:
                extra += self._context.allowance.headers()
            if self._site.stopping.is_set():
                extra.append((b"connection", b"close"))
            message["headers"] = [*message.get("headers", []), *extra]
        await self._send(message)


class RequestLifecycle:
    """The outermost middleware of the application."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site, self._metrics = ErrorBoundary(app), site, site.metrics
        self._log = log.bind()  # binding once is faster than for each request

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
        # Names may contain an encoded slash, so routing splits the raw path and decodes each segment.
        scope["path"] = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        if scope["path"].startswith("/v1/"):  # a page may receive a file, which has a content type of its own
            scope["headers"] = _as_json(scope["headers"])
        body = LimitedBody(scope, receive, headers.get(b"content-length", b""), self._site.options.body_limit)
        self._metrics.running.inc()
        try:
            await self._app(scope, body, _ResponseHeaders(send, context, self._site))
        except asyncio.CancelledError:  # the server is stopping, and the connection is already closed
            self._log.warning("request cut off", request=context.id, method=scope["method"], path=logged_path(scope))
        finally:
            self._metrics.running.dec()
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


class CompressedReads:
    """Compresses the responses to reads, except streams of events, whose every event must leave at once.

    Responses to writes are not compressed: most are short, and the receipts of large batches would take longer to
    compress than to send. Pages that refuse a form repeat what was sent, and are such responses, too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, minimum_size=COMPRESSED_FROM, compresslevel=COMPRESSION)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        is_read = scope["type"] == "http" and scope["method"] in READS
        await (self._compressed if is_read else self._app)(scope, receive, send)


class ResponseCache:
    """Sends cached responses."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the cache, or pass the request on to the application."""
        cached = None
        if scope["type"] == "http" and scope["method"] == "GET":
            cached = self._find(scope)
        if cached is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = cached.route
        if_none_match = header(scope, b"if-none-match")
        is_known = if_none_match is not None and holds(if_none_match, cached.etag)
        body = b"" if is_known else cached.body
        headers = [(b"etag", cached.etag.encode()), (b"cache-control", PRIVATE.encode())]
        await send_at_once(send, 304 if is_known else 200, headers, body)

    def _find(self, scope: Scope) -> CachedResponse | None:
        """The cached response if the caller is known without a query and may read it; None if the endpoint decides."""
        answers = self._site.answers
        ladder = answers.ladder_of(scope)
        caller = None if ladder is None else recalled(self._site, scope)
        if ladder is None or caller is None or not caller.may("read", ladder):
            return None
        cached = answers.find(scope, self._site.service.young_view, whole=caller.may("ratings", ladder))
        return cached if cached is not None and is_allowed(self._site, scope, caller) else None
