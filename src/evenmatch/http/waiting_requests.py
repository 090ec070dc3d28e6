"""Requests that wait for a change: long polls and streams. They end when the client hangs up or the process stops.

Streams and long polls have a limited duration, and the next request is authenticated again. So a revoked key loses
access within a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from prometheus_client import Gauge
from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from evenmatch.accounts.access import ANYONE, Caller
from evenmatch.errors import RateLimitError
from evenmatch.http.hosts import client_address
from evenmatch.http.request_context import BodyRefusedError

if TYPE_CHECKING:
    from evenmatch.queues.queue_service import QueueService


LOOK_AGAIN = 1.0  # seconds between two looks of a waiting request that gets no notification
EACH_PLAYER = 8  # most waiting requests of one player's token
EACH_ADDRESS = 60  # most waiting requests without a key from one client address
RETRY = 1.0  # seconds before a caller with too many waiting requests may try again
T = TypeVar("T")


class Waiter:
    """A waiting request. Notifications call `wake`.

    ends_at  when a stream ends, by the clock of the event loop
    """

    def __init__(self, ends_at: float = float("inf")) -> None:
        self.is_gone, self.is_stopping = False, False
        self.refusal: BodyRefusedError | None = None
        self._ends_at = ends_at
        self._woken = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether a stream must end."""
        return self.is_gone or self.is_stopping or asyncio.get_running_loop().time() >= self._ends_at

    def wake(self) -> None:
        """End the current call of `news`, or the next one."""
        self._woken.set()

    async def news(self, timeout: float) -> bool:
        """Wait until `wake` is called, at most `timeout` seconds; return whether it was."""
        if not self._woken.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), timeout)
        was_woken = self._woken.is_set()
        self._woken.clear()
        return was_woken

    def check(self) -> None:
        """Raise ClientDisconnect if the client has hung up, BodyRefusedError if the body is too large."""
        if self.refusal is not None:
            raise self.refusal
        if self.is_gone:
            raise ClientDisconnect


class WaitingRequests:
    """The waiting requests of a process. Use it in the event loop only.

    stopping  set when the process is asked to stop
    gauge     counts the requests for the metrics
    """

    def __init__(self, stopping: asyncio.Event, gauge: Gauge) -> None:
        self._stopping, self._gauge = stopping, gauge
        self._waiters: set[Waiter] = set()
        self._by_player: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()
        self._watching: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    @contextlib.asynccontextmanager
    async def poll(self, request: Request, caller: Caller) -> AsyncIterator[Waiter]:
        """Wait as a long poll, which ends when the client hangs up. Raises RateLimitError like `place`."""
        with self.place(request, caller):
            async with self._waiting(Waiter()) as waiter:
                listening = asyncio.create_task(_hang_up(request.receive, waiter))
                try:
                    yield waiter
                finally:
                    listening.cancel()

    @contextlib.contextmanager
    def place(self, request: Request, caller: Caller) -> Iterator[None]:
        """Count a waiting request for its player or, without a key, for its address. Raises RateLimitError.

        A stream takes its place before it first waits, so that streams that arrive together are all counted.
        """
        if caller.player is not None:
            counts, who, most, whose = self._by_player, caller.key, EACH_PLAYER, "player"
        elif caller is ANYONE and request.client is not None:
            counts, who, most, whose = self._by_address, client_address(request.client.host), EACH_ADDRESS, "address"
        else:
            yield
            return
        if counts[who] >= most:
            raise RateLimitError(f"{most} requests of this {whose} are already waiting; end one first", RETRY)
        counts[who] += 1
        try:
            yield
        finally:
            counts[who] -= 1
            if not counts[who]:
                del counts[who]

    @contextlib.asynccontextmanager
    async def stream(self, seconds: float) -> AsyncIterator[Waiter]:
        """Wait as a stream of at most this many seconds. Starlette ends it when the client hangs up."""
        async with self._waiting(Waiter(asyncio.get_running_loop().time() + seconds)) as waiter:
            yield waiter

    @contextlib.asynccontextmanager
    async def _waiting(self, waiter: Waiter) -> AsyncIterator[Waiter]:
        self._waiters.add(waiter)
        self._gauge.inc()
        if self._watching is None:
            self._watching = asyncio.create_task(self._end_with_process())
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)
            self._gauge.dec()
            if not self._waiters and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    async def _end_with_process(self) -> None:
        """Wake all waiting requests when the process is asked to stop. Cancelled when no request waits."""
        await self._stopping.wait()
        for waiter in self._waiters:
            waiter.is_stopping = True
            waiter.wake()
        self._watching = None


async def _hang_up(receive: Receive, waiter: Waiter) -> None:
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    except BodyRefusedError as error:
        waiter.refusal = error
    else:
        waiter.is_gone = True
    waiter.wake()


async def until(look: Callable[[], Awaitable[T]], is_news: Callable[[T], bool], wait: float, waiter: Waiter) -> T:
    """Return the result of `look` once `is_news` accepts it, or the latest one after `wait` seconds or at a stop.

    Raises ClientDisconnect and BodyRefusedError as Waiter.check does.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + wait
    while True:
        result = await look()
        left = end - loop.time()
        if left <= 0 or is_news(result) or waiter.is_stopping:
            return result
        waiter.check()
        await waiter.news(min(left, LOOK_AGAIN))
        waiter.check()


Place = tuple[str, int]  # a ladder and a ticket


class TicketNotifications:
    """The waiting requests by ladder and ticket. For the event loop; the queue service sends news from its threads."""

    def __init__(self) -> None:
        self._waiting: dict[Place, set[Waiter]] = {}

    def begin(self, loop: asyncio.AbstractEventLoop, queue_service: QueueService) -> None:
        """Subscribe to committed changes of the queue service."""

        def notify(ladder: str, tickets: list[int]) -> None:
            loop.call_soon_threadsafe(self.wake, ladder, tickets)

        queue_service.notifier.listen(notify)

    def wake(self, ladder: str, tickets: Sequence[int]) -> None:
        """Wake the requests that wait for any of these tickets."""
        for ticket in tickets:
            for waiter in self._waiting.get((ladder, ticket), ()):
                waiter.wake()

    @contextmanager
    def telling(self, ladder: str, ticket: int, waiter: Waiter) -> Iterator[None]:
        """Wake this request when the ticket changes, even between two calls of `news`."""
        place = ladder, ticket
        self._waiting.setdefault(place, set()).add(waiter)
        try:
            yield
        finally:
            waiters = self._waiting[place]
            waiters.discard(waiter)
            if not waiters:
                del self._waiting[place]

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))


class EventStream(StreamingResponse):
    """Server-sent events. held: resources that are released when the stream has ended."""

    def __init__(self, events: AsyncIterator[bytes], held: ExitStack) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client hangs up."""

        async def receive_or_end() -> Message:
            try:
                return await receive()
            except BodyRefusedError:  # the response has begun, so the stream can only end
                return {"type": "http.disconnect"}

        with self._held:
            await super().__call__(scope, receive_or_end, send)
