"""ASGI middleware: errors, followers, Idempotency-Key, the request log, and fast answers.

FastPath (reports, joins, accepted offers) and FastReads (a ticket, a player) answer the most frequent requests without
the framework's routing, which takes up to ten times as long as the rest. ResponseCache answers reads of standings. All
three give the same answer as the endpoint. They pass on a request that may be invalid, or whose caller is unknown or
not allowed.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.accounts.access import ANYONE, Caller
from evenmatch.accounts.idempotent_requests import LEASE, Answer, Attempt
from evenmatch.durations import SECOND
from evenmatch.errors import EvenmatchError, FollowerError, ForbiddenError, StoreError, UsageError
from evenmatch.http import fast_json, report_recording
from evenmatch.http.access import READS, authenticated, header, identified, is_allowed, read_before, recalled
from evenmatch.http.hosts import as_meant, is_api, is_text
from evenmatch.http.logs import log, repeated
from evenmatch.http.problems import OTHERS, make_problem, refusal, respond
from evenmatch.http.request_bodies import QUICK
from evenmatch.http.request_context import BodyRefusedError, RequestContext, context_of, logged_path
from evenmatch.http.responses import PRIVATE, encoded, holds, send_at_once
from evenmatch.http.routes.players import PLAYER, get_player
from evenmatch.http.routes.tickets import LONGEST_WAIT, done, permitted, player_of, ticket
from evenmatch.http.site import Site
from evenmatch.http.views import CachedResponse
from evenmatch.queues.requests import Accept, QueueRequest


class ErrorBoundary:
    """Turn exceptions into error responses. If the response has already begun, raise again, which aborts it."""

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


READING = re.compile(r"/v1/ladders/[^/]+/odds")  # paths of requests with a body that change nothing
WRITING = re.compile(r"/v1/ladders/[^/]+/tickets(/.*)?")  # reading a ticket is a heartbeat, which is a write


class RefusedRoute:
    """The route of a refused write in the metrics."""

    path_format = "(follower)"


class Follower:
    """Refuse writes, and name the place that accepts them."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._error = app, FollowerError(site.options.writes_at)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a write to the API. Pages refuse their own."""
        if scope["type"] == "http" and is_api(scope["path"]) and _is_write(scope["method"], scope["path"]):
            scope["route"] = RefusedRoute()
            response = refusal(self._error, context_of(scope))
            response.headers["Allow"] = ", ".join(READS)
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_write(method: str, path: str) -> bool:
    return WRITING.fullmatch(path) is not None or (method not in READS and READING.fullmatch(path) is None)


HEADER, IN_SCOPE = "Idempotency-Key", b"idempotency-key"
REPEATED = "Idempotent-Replayed"  # header of a repeated answer
LONGEST = 256  # characters
OF_API = "/v1/"
REFUSED = 400  # lowest status of answers that are not kept, since the request has changed nothing
EXTEND_EVERY = LEASE / SECOND / 3


def takes_key(method: str, path: str) -> bool:
    """Whether a request of this path, or of paths with this format, is a write, which may have an Idempotency-Key."""
    return path.startswith(OF_API) and method not in READS and READING.fullmatch(path) is None


class RepeatedRoute(NamedTuple):
    """The route of a repeated answer in the metrics."""

    path_format: str = "(repeated)"


class Idempotency:
    """Carry out a write with an Idempotency-Key once, and repeat its answer to the same caller for a day."""

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
        """The stored answer, or an attempt to carry out the request; None if the application refuses or ignores it.

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
        request = caller, key, _digest(scope, content), context_of(scope).id
        return await self._site.work(self._site.idempotent_requests.begin, *request)

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
    """SHA-256 of the method, the address and the body of a request."""
    head = b"\n".join(
        (scope["method"].encode(), scope["path"].encode("utf-8", "surrogatepass"), scope["query_string"], b"")
    )
    return hashlib.sha256(head + content).digest()


REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
TOO_MANY = 429  # requests refused with this status are counted in the log, not listed
QUIET = {"/healthz", "/readyz", "/metrics"}  # requested very often, so logged at level debug


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with the content type JSON, whatever was sent, since curl labels every body as a form by default."""
    return [(name, b"application/json" if name == b"content-type" else value) for name, value in headers]


LARGE = re.compile(r"/v1/ladders/[^/]+/(matches|matches/batch|start-ratings)")  # paths of bodies up to the body limit
SMALL_BODY = 128 * 1024  # bytes of all other bodies


class LimitedBody:
    """ASGI `receive` of a request whose body has a largest size.

    declared  the value of Content-Length; empty: the head does not say it
    limit     bytes of the largest body of match reports and starting ratings
    """

    def __init__(self, scope: Scope, receive: Receive, declared: bytes, limit: int) -> None:
        self._scope, self._receive = scope, receive
        self._limit = limit if LARGE.fullmatch(scope["path"]) else min(limit, SMALL_BODY)
        self._setting = ", EVENMATCH_BODY_LIMIT" if self._limit == limit else ""
        self._size = int(declared) if declared.isdigit() else 0
        self._received = 0

    async def __call__(self) -> Message:
        """The next message. Raises BodyRefusedError."""
        if self._size > self._limit:
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
    """The messages of a body, which can be received again from the first one."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []

    async def whole(self) -> bytes | None:
        """Read the whole body; None if the client disconnected. Raises BodyRefusedError."""
        parts = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._read = [message]  # nothing is done with the part that came
                return None
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                body = b"".join(parts)
                self._read = [{"type": "http.request", "body": body, "more_body": False}]
                return body

    async def __call__(self) -> Message:
        """The next message, as ASGI `receive`."""
        if self._read:
            return self._read.pop(0)
        return await self._receive()


class _ResponseHeaders:
    """Add the headers that all responses have."""

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
        body = LimitedBody(scope, receive, headers.get(b"content-length", b""), self._site.options.body_limit)
        self._metrics.running.inc()
        try:
            await self._app(scope, body, _ResponseHeaders(send, context))
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


class ResponseCache:
    """Send cached responses."""

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


FAST_READS_ADDRESS = re.compile(r"/v1/ladders/([^/]+)/(tickets|players)/([^/]+)")
NUMBER = re.compile(r"[1-9][0-9]{0,17}")
QUERY = re.compile(rb"(?:after=([0-9]{1,18})&)?wait=([0-9]{1,2}(?:\.[0-9]{1,17})?)")  # other valid queries are routed
FastReadsAnswer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class FastRead:
    """An endpoint that is called here.

    path_format  route label in the metrics
    needed       scope that the caller must have
    read         (ladder, last part of the path as sent, query string, caller) -> a function that answers;
                 None: route it
    """

    path_format: str
    needed: str
    read: Callable[[str, str, bytes, Caller], FastReadsAnswer | None]


def _ticket(ladder: str, number: str, query: bytes, caller: Caller) -> FastReadsAnswer | None:
    asked = QUERY.fullmatch(query)
    if NUMBER.fullmatch(number) is None or (query and asked is None):
        return None
    after = None if asked is None or asked[1] is None else int(asked[1])
    wait = 0.0 if asked is None else float(asked[2])
    return None if wait > LONGEST_WAIT else lambda request: ticket(ladder, int(number), request, caller, after, wait)


def _player(ladder: str, part: str, query: bytes, caller: Caller) -> FastReadsAnswer | None:
    player = as_meant(part)
    return None if query or not is_text(player) else lambda request: get_player(ladder, player, request, caller)


FAST_READS = {
    "tickets": FastRead("/v1/ladders/{ladder}/tickets/{ticket}", "queue", _ticket),
    "players": FastRead(f"/v1{PLAYER.replace(':text', '')}", "read", _player),
}


class FastReads:
    """Call the endpoints of the most frequent reads directly."""

    def __init__(self, api: FastAPI, site: Site) -> None:
        self._api, self._site = api, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request here, or pass it on to the API."""
        address = (
            FAST_READS_ADDRESS.fullmatch(scope["path"])
            if scope["type"] == "http" and scope["method"] == "GET"
            else None
        )
        answer = (
            None if address is None else self._answer(scope, FAST_READS[address[2]], as_meant(address[1]), address[3])
        )
        if answer is None:
            await self._api(scope, receive, send)
            return
        scope["app"] = self._api
        try:
            response = await answer(Request(scope, receive))
        except EvenmatchError as error:
            response = refusal(error, context_of(scope))
        await response(scope, receive, send)

    def _answer(self, scope: Scope, route: FastRead, ladder: str, part: str) -> FastReadsAnswer | None:
        """A function that answers the request, which is counted for its caller; None if it must be routed."""
        caller = recalled(self._site, scope) if is_text(ladder) and not _has_body(scope) else None
        if caller is None or caller is ANYONE or not caller.may(route.needed, ladder):
            return None
        answer = route.read(ladder, part, scope["query_string"], caller)
        if answer is None or not is_allowed(self._site, scope, caller):
            return None
        scope["route"] = route
        return answer


def _has_body(scope: Scope) -> bool:
    return header(scope, b"content-length") not in (None, "0") or header(scope, b"transfer-encoding") is not None


FAST_PATH_ADDRESS = re.compile(
    r"/v1/ladders/([^/]+)/(matches|matches/batch|tickets|tickets/([1-9][0-9]{0,17})/(accept))"
)
FastPathAnswer = Callable[[], Awaitable[bytes]]
NOT_KEPT = [(b"cache-control", b"no-store")]


@dataclass(frozen=True)
class FastRoute:
    """An endpoint that the fast path can answer.

    path_format  route label in the metrics
    needed       scope that the caller must have
    status       HTTP status of a successful response
    read         (site, ladder, number of the ticket in the path, caller, body) -> a function that answers;
                 None: leave it to the endpoint
    """

    path_format: str
    needed: str
    status: int
    read: Callable[[Site, str, int, Caller, bytes], FastPathAnswer | None]


def _match(site: Site, ladder: str, _: int, __: Caller, body: bytes) -> FastPathAnswer | None:
    batch = fast_json.read_match(body)
    return None if batch is None else lambda: report_recording.report(site, ladder, batch)


def _batch(site: Site, ladder: str, _: int, __: Caller, body: bytes) -> FastPathAnswer | None:
    batch = fast_json.read_batch(body)
    return None if batch is None else lambda: report_recording.report_all(site, ladder, batch)


def _party(site: Site, ladder: str, _: int, caller: Caller, body: bytes) -> FastPathAnswer | None:
    read = fast_json.read_party(body)
    if read is None:
        return None
    try:
        join = permitted(caller, read)
    except ForbiddenError:
        return None
    return _requested(site, ladder, join)


def _accept(site: Site, ladder: str, ticket: int, caller: Caller, body: bytes) -> FastPathAnswer | None:
    said = fast_json.read_offer_answer(body)
    if said is None:
        return None
    try:
        player = player_of(caller, said.player)
    except ForbiddenError:
        return None
    return _requested(site, ladder, Accept(ticket, player, said.offer, caller.player is not None))


def _requested(site: Site, ladder: str, request: QueueRequest) -> FastPathAnswer:
    async def answer() -> bytes:
        return encoded(done(ladder, await site.wishes.one(ladder, request)))

    return answer


ROUTES = {
    "matches": FastRoute("/v1/ladders/{ladder}/matches", "report", 200, _match),
    "matches/batch": FastRoute("/v1/ladders/{ladder}/matches/batch", "report", 200, _batch),
    "accept": FastRoute("/v1/ladders/{ladder}/tickets/{ticket}/accept", "queue", 200, _accept),
    "tickets": FastRoute("/v1/ladders/{ladder}/tickets", "queue", 201, _party),
}


class FastPath:
    """Answer the most frequent writes without routing them."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request here, or pass it on to the application."""
        address = (
            FAST_PATH_ADDRESS.fullmatch(scope["path"])
            if scope["type"] == "http" and scope["method"] == "POST"
            else None
        )
        if address is None or scope["query_string"]:
            await self._app(scope, receive, send)
            return
        ladder, route, ticket = as_meant(address[1]), ROUTES[address[4] or address[2]], int(address[3] or 0)
        body = ReplayableBody(receive)
        try:
            answer = await self._read(scope, route, ladder, ticket, await body.whole())
            payload = None if answer is None else await answer()
        except EvenmatchError as error:
            scope["route"] = route
            await refusal(error, context_of(scope))(scope, receive, send)
            return
        if payload is None:
            await self._app(scope, body, send)
            return
        scope["route"] = route
        await send_at_once(send, route.status, NOT_KEPT, payload)

    async def _read(
        self, scope: Scope, route: FastRoute, ladder: str, ticket: int, body: bytes | None
    ) -> FastPathAnswer | None:
        """A function that answers the request, which is counted for its caller; None if the endpoint must answer.

        The caller is authenticated when the whole body has arrived, since a key may be revoked during a slow upload.
        Raises AccessError or StoreError for a refused signed request.
        """
        caller = None if body is None or not is_text(ladder) else await identified(self._site, scope, body)
        if body is None or caller is None or not caller.may(route.needed, ladder):
            return None
        if len(body) <= QUICK:
            answer = route.read(self._site, ladder, ticket, caller, body)
        else:
            answer = await self._site.convert(ladder, route.read, self._site, ladder, ticket, caller, body)
        return answer if answer is not None and is_allowed(self._site, scope, caller) else None
