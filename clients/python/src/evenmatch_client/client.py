"""The two clients: `Client` blocks until the answer has arrived, `AsyncClient` is awaited."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import random
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx
import msgspec

from evenmatch_client import calls
from evenmatch_client.calls import Call, Json
from evenmatch_client.errors import ListMovedError, ProblemError, UnreachableError
from evenmatch_client.models import Job, Problem, Stage, StandingRow, StandingsPage, Ticket

T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before a retry: doubled each time
LONG_POLL = 20.0  # seconds; shorter than the default heartbeat limit of a queue, 30 s
KEY = re.compile(r"(em_[0-9A-Za-z]{10})_[0-9A-Za-z_-]+")
Outcome = httpx.Response | httpx.RequestError | None
# A conversation yields requests and pauses (seconds), is sent the outcome of each, and returns its result.
Conversation = Generator[Call[Any] | float, Outcome, T]


class Bearer(httpx.Auth):
    """Sends an API key or a player's token with each request."""

    def __init__(self, key: str) -> None:
        self._header = f"Bearer {key}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header Authorization."""
        request.headers["Authorization"] = self._header
        yield request


class Signature(httpx.Auth):
    """Signs each request with an API key, which is not sent."""

    requires_request_body = True

    def __init__(self, key: str) -> None:
        parts = KEY.fullmatch(key)
        if parts is None:
            raise ValueError("signed=True needs an API key, em_…; a player's token cannot sign")
        self._id, self._secret = parts[1], hashlib.sha256(key.encode()).digest()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add a signature over timestamp (seconds), nonce, method, path with query, and body."""
        timestamp, nonce = int(time.time()), secrets.token_hex(16)
        head = f"{timestamp}.{nonce}\n{request.method}\n".encode() + request.url.raw_path + b"\n"
        signature = hmac.new(self._secret, head + request.content, hashlib.sha256).hexdigest()
        parts = {"key": self._id, "timestamp": timestamp, "nonce": nonce, "signature": signature}
        signed = ", ".join(f"{name}={part}" for name, part in parts.items())
        request.headers["Authorization"] = f"Evenmatch-HMAC-SHA256 {signed}"
        yield request


class _Settings:
    """What both clients are made from.

    url       address of `evenmatch serve`, or of the load balancer in front of it
    key       API key or player's token; None: only reads that the operator opened to everybody
    signed    sign requests with the key instead of sending it
    patience  seconds during which a failed request is sent again
    timeout   seconds without data after which an attempt fails; a long poll adds its `wait`
    """

    def __init__(
        self, url: str, key: str | None = None, *, signed: bool = False, patience: float = 30.0, timeout: float = 10.0
    ) -> None:
        parts = httpx.URL(url)
        if parts.scheme not in {"http", "https"} or not parts.host or parts.query or parts.fragment:
            raise ValueError(f"url {url!r}: expected the address of a service, such as https://ranks.example")
        if key is not None and (not key.isascii() or not key.strip() or key != key.strip()):
            raise ValueError("the key is empty or has characters that no key has; expected a key as it was shown")
        if signed and key is None:
            raise ValueError("signed=True needs an API key to sign with")
        self.patience, self._timeout, self._url = patience, timeout, url
        self._auth = None if key is None else Signature(key) if signed else Bearer(key)

    @classmethod
    def from_env(cls, *, signed: bool = False) -> Self:
        """A client from EVENMATCH_URL and EVENMATCH_KEY. Raises ValueError if EVENMATCH_URL is not set."""
        url = os.environ.get("EVENMATCH_URL")
        if not url:
            raise ValueError("EVENMATCH_URL is not set; expected the address of a service")
        return cls(url, os.environ.get("EVENMATCH_KEY") or None, signed=signed)

    def _request(self, http: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
        headers = {"Content-Type": "application/json"} if call.body is not None else {}
        if call.idempotency_key is not None:
            headers["Idempotency-Key"] = call.idempotency_key
        timeout = httpx.Timeout(self._timeout, read=self._timeout + call.wait)
        return http.build_request(
            call.method, call.path, params=call.parameters, content=call.content, headers=headers, timeout=timeout
        )

    def _ask(self, call: Call[T]) -> Conversation[T]:
        """Send a request until it is answered, for `patience` seconds."""
        until, pause = time.monotonic() + self.patience + call.wait, FIRST_PAUSE
        while True:
            outcome = yield call
            if isinstance(outcome, httpx.Response) and outcome.is_success:
                try:
                    return msgspec.json.decode(outcome.content or b"{}", type=call.answer)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    reason = f"the answer is not from evenmatch ({error}); is this `evenmatch serve`?"
                    raise UnreachableError(f"{call.method} {call.path}: {reason}") from error
            failure, wait = self._failure(call, outcome), pause * random.uniform(0.5, 1.0)  # so that clients spread out
            if isinstance(failure, ProblemError):
                if not failure.is_temporary:
                    raise failure
                wait = max(wait, failure.problem.retry_after or 0.0)
            if time.monotonic() + wait > until:
                raise failure
            yield wait
            pause = min(LONGEST_PAUSE, 2 * pause)

    @staticmethod
    def _failure(call: Call[Any], outcome: Outcome) -> ProblemError | UnreachableError:
        if isinstance(outcome, httpx.Response):
            return ProblemError.of(outcome)
        return UnreachableError(f"{call.method} {call.path}: {str(outcome) or type(outcome).__name__}")

    def _match(
        self, ladder: str, ticket: int, *, accept: bool, timeout: float | None, stage: Stage
    ) -> Conversation[Ticket]:
        until = None if timeout is None else time.monotonic() + timeout
        current = yield from self._ask(calls.ticket(ladder, ticket))
        while not current.has_reached(stage):
            while current.follow is not None:
                current = yield from self._ask(calls.ticket(current.follow.ladder, current.follow.ticket))
            wait = LONG_POLL if until is None else min(LONG_POLL, until - time.monotonic())
            if wait <= 0.0 or current.has_reached(stage):
                break
            if accept and current.offer is not None and not all(current.offer.own.values()):
                yield from self._ask(calls.accept_offer(current.ladder, current.ticket, offer=current.offer.offer))
            current = yield from self._ask(
                calls.ticket(current.ladder, current.ticket, after=current.change, wait=wait)
            )
        return current

    def _finish(self, call: Call[dict[str, Any]], shown: Callable[[Job], None] | None) -> Conversation[dict[str, Any]]:
        answer = yield from self._ask(call)
        if "job" not in answer:
            return answer
        ended = yield from self._job(answer["job"], shown)
        if ended.result is None:
            detail = f"{ended.job} is {ended.state}: {ended.told}"
            problem = Problem("urn:evenmatch:problem:job", "The job has no result", 409, detail)
            problem.problems = ended.problems or None
            raise ProblemError(problem)
        return ended.result

    def _job(self, job: str, shown: Callable[[Job], None] | None) -> Conversation[Job]:
        while True:
            current = yield from self._ask(calls.job(job, wait=LONG_POLL if shown is None else 2.0))
            if shown is not None:
                shown(current)
            if current.state != "running":
                return current


def _next_page(call: Call[T], page: StandingsPage | Json) -> Call[T] | None:
    """The request for the page after this one; None after the last."""
    cursor = page["next"] if isinstance(page, dict) else page.next
    return None if cursor is None else replace(call, query={**(call.query or {}), "cursor": cursor})


def _items(page: StandingsPage | Json, *, is_first: bool) -> Sequence[StandingRow | Json]:
    """The items of a page. Raises ListMovedError if the standings moved on since the first page."""
    if isinstance(page, dict):
        items: list[Json] = page["items"]
        return items
    if page.moved and not is_first:
        raise ListMovedError("the standings moved on between two pages; start again, with `limit` up to 500")
    return page.items


class Client(_Settings):
    """Blocking client. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        signed: bool = False,
        patience: float = 30.0,
        timeout: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, signed=signed, patience=patience, timeout=timeout)
        self._http = httpx.Client(base_url=self._url, auth=self._auth, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a request and return its answer. Raises ProblemError or UnreachableError."""
        return self._run(self._ask(call))

    @overload
    def all(self, call: Call[StandingsPage]) -> Iterator[StandingRow]: ...

    @overload
    def all(self, call: Call[Json]) -> Iterator[Json]: ...

    def all(self, call: Call[StandingsPage | Json]) -> Iterator[StandingRow | Json]:
        """The items of all pages of a list; each page is requested when it is needed. Raises ListMovedError."""
        next_call: Call[StandingsPage | Json] | None = call
        while next_call is not None:
            page = self.send(next_call)
            yield from _items(page, is_first=next_call is call)
            next_call = _next_page(next_call, page)

    def wait_for_match(
        self, ladder: str, ticket: int, *, accept: bool = False, timeout: float | None = None, stage: Stage = "matched"
    ) -> Ticket:
        """Wait until a ticket is matched or gone, for `timeout` seconds at most, and return it.

        accept  accept each offer for the whole party
        stage   announced: wait until the match has a connection;  rated: wait for its receipt
        Of a playlist, the ticket that gets the match is returned.
        """
        return self._run(self._match(ladder, ticket, accept=accept, timeout=timeout, stage=stage))

    def finish(self, call: Call[dict[str, Any]], shown: Callable[[Job], None] | None = None) -> dict[str, Any]:
        """Send a request that may take long, such as a correction, and return its result, also if it became a job."""
        return self._run(self._finish(call, shown))

    def wait_for_job(self, job: str, shown: Callable[[Job], None] | None = None) -> Job:
        """Wait until a job has ended. shown: called with it every two seconds."""
        return self._run(self._job(job, shown))

    def _run(self, conversation: Conversation[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = conversation.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, float):
                time.sleep(step)
                outcome = None
                continue
            try:
                outcome = self._http.send(self._request(self._http, step))
            except httpx.RequestError as error:
                outcome = error


class AsyncClient(_Settings):
    """The same client for asyncio: its methods are awaited."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        signed: bool = False,
        patience: float = 30.0,
        timeout: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, signed=signed, patience=patience, timeout=timeout)
        self._http = httpx.AsyncClient(base_url=self._url, auth=self._auth, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a request and return its answer. Raises ProblemError or UnreachableError."""
        return await self._run(self._ask(call))

    @overload
    def all(self, call: Call[StandingsPage]) -> AsyncIterator[StandingRow]: ...

    @overload
    def all(self, call: Call[Json]) -> AsyncIterator[Json]: ...

    async def all(self, call: Call[StandingsPage | Json]) -> AsyncIterator[StandingRow | Json]:
        """The items of all pages of a list; each page is requested when it is needed. Raises ListMovedError."""
        next_call: Call[StandingsPage | Json] | None = call
        while next_call is not None:
            page = await self.send(next_call)
            for item in _items(page, is_first=next_call is call):
                yield item
            next_call = _next_page(next_call, page)

    async def wait_for_match(
        self, ladder: str, ticket: int, *, accept: bool = False, timeout: float | None = None, stage: Stage = "matched"
    ) -> Ticket:
        """Wait until a ticket is matched or gone; arguments as for `Client`."""
        return await self._run(self._match(ladder, ticket, accept=accept, timeout=timeout, stage=stage))

    async def finish(self, call: Call[dict[str, Any]], shown: Callable[[Job], None] | None = None) -> dict[str, Any]:
        """Send a request that may take long, and return its result, also if it became a job."""
        return await self._run(self._finish(call, shown))

    async def wait_for_job(self, job: str, shown: Callable[[Job], None] | None = None) -> Job:
        """Wait until a job has ended. shown: called with it every two seconds."""
        return await self._run(self._job(job, shown))

    async def _run(self, conversation: Conversation[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = conversation.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, float):
                await asyncio.sleep(step)
                outcome = None
                continue
            try:
                outcome = await self._http.send(self._request(self._http, step))
            except httpx.RequestError as error:
                outcome = error
