"""Requests that wait for a change. Long polls and streams end with their client, their key and the process."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from evenmatch.accounts.access import ANYONE, Caller
from evenmatch.accounts.sessions import Credential
from evenmatch.errors import AccessError, EvenmatchError, RateLimitError
from evenmatch.http.connections import client_address
from evenmatch.http.repeated_log import repeated
from evenmatch.http.request_context import BodyRefusedError

if TYPE_CHECKING:
    from evenmatch.queues.queue_service import QueueService


EVERY = 1.0  # seconds between two checks of the credentials of all that wait: a revocation holds within two
NET = 1.0  # seconds after which a waiting request looks again, even without a notification
EACH_PLAYER = 8  # requests of one player's token that wait at once
EACH_ADDRESS = 60  # long polls without a key of one client address that wait at once
AGAIN = 1.0  # seconds after which a player with too many may try again
T = TypeVar("T")
CheckEnded = Callable[[Collection[Credential]], Awaitable[set[Credential]]]


class Waiter:
    """A request that waits. is_over: the client has hung up, or its access has ended.

    wake  is called by whoever has news
    """

    def __init__(self, credential: Credential | None) -> None:
        self.credential = credential
        self.is_gone, self.is_revoked, self.is_stopping = False, False, False
        self.refusal: BodyRefusedError | None = None
        self._woken = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether a stream must end."""
        return self.is_gone or self.is_revoked or self.is_stopping

    def wake(self) -> None:
        """End the present call of `news`, or the next one."""
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
        """Raise ClientDisconnect if the client has hung up, AccessError if the caller is not good any more.

        Raises BodyRefusedError if the request has a body that is refused.
        """
        if self.refusal is not None:
            raise self.refusal
        if self.is_gone:
            raise ClientDisconnect
        if self.is_revoked:
            raise AccessError("the key, token or session of this request was revoked or has expired; use another one")


class WaitingRequests:
    """The requests of a process that wait. Use it in the event loop's thread only.

    check_ended  returns those of some credentials that are not good any more; in threads that no client can occupy
    stopping     set when the process is asked to stop
    """

    def __init__(self, check_ended: CheckEnded, stopping: asyncio.Event) -> None:
        self._check_ended, self._stopping = check_ended, stopping
        self._waiters: set[Waiter] = set()
        self._by_player: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()
        self._watching: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    @contextlib.asynccontextmanager
    async def poll(self, request: Request, caller: Caller) -> AsyncIterator[Waiter]:
        """A long poll: it notices that its client hangs up. Raises RateLimitError if too many of its caller wait."""
        with self.place(request, caller):
            async with self._listening(request, caller) as waiter:
                yield waiter

    @contextlib.contextmanager
    def place(self, request: Request, caller: Caller) -> Iterator[None]:
        """Count a request that waits for its player, or without a key for its client address. Raises RateLimitError.

        A stream takes its place before it first waits for anything, so that those that arrive together are counted.
        """
        if caller.player is not None:
            counts, who, most, whose = self._by_player, caller.key, EACH_PLAYER, "player"
        elif caller is ANYONE and request.client is not None:
            counts, who, most, whose = self._by_address, client_address(request.client.host), EACH_ADDRESS, "address"
        else:
            yield
            return
        if counts[who] >= most:
            raise RateLimitError(f"{most} requests of this {whose} wait already; end one first", AGAIN)
        counts[who] += 1
        try:
            yield
        finally:
            counts[who] -= 1
            if not counts[who]:
                del counts[who]

    @contextlib.asynccontextmanager
    async def _listening(self, request: Request, caller: Caller) -> AsyncIterator[Waiter]:
        async with self.stream(credential_of(caller)) as waiter:
            listening = asyncio.create_task(_hang_up(request.receive, waiter))
            try:
                yield waiter
            finally:
                listening.cancel()

    @contextlib.asynccontextmanager
    async def stream(self, credential: Credential | None) -> AsyncIterator[Waiter]:
        """A stream, which the framework ends when its client hangs up."""
        waiter = Waiter(credential)
        self._waiters.add(waiter)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)
            if not self._waiters and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    async def _watch(self) -> None:
        """Check the credentials of all that wait, until the process stops; cancelled when none waits any more."""
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), EVERY)
            await self._end_revoked()
        for waiter in self._waiters:
            waiter.is_stopping = True
            waiter.wake()
        self._watching = None

    async def _end_revoked(self) -> None:
        credentials = {waiter.credential for waiter in self._waiters if waiter.credential is not None}
        if not credentials:
            return
        try:
            ended = await self._check_ended(credentials)
        except EvenmatchError as error:
            repeated.warning("the keys of waiting requests cannot be checked", error=str(error))
            return
        for waiter in self._waiters:
            if waiter.credential in ended:
                waiter.is_revoked = True
                waiter.wake()


def credential_of(caller: Caller) -> Credential | None:
    """The credential of a request of the API; None: reads are open to all."""
    return None if caller is ANYONE else Credential(caller.issuer, caller.expires_at)


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
    """The result of `look` once `is_news` holds, or the latest after `wait` seconds or when the process stops.

    Raises ClientDisconnect and AccessError as Waiter.check does.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + wait
    while True:
        result = await look()
        left = end - loop.time()
        if left <= 0 or is_news(result) or waiter.is_stopping:
            return result
        waiter.check()
        await waiter.news(min(left, NET))
        waiter.check()


Place = tuple[str, int]  # a ladder and a ticket


class TicketNotifications:
    """The waiting requests by ladder and ticket. For the event loop; the queue service notifies from its threads."""

    def __init__(self) -> None:
        self._waiting: dict[Place, set[Waiter]] = {}

    def begin(self, loop: asyncio.AbstractEventLoop, queue_service: QueueService) -> None:
        """Subscribe to the committed changes of the queue service."""

        def notify(ladder: str, tickets: list[int]) -> None:
            loop.call_soon_threadsafe(self.wake, ladder, tickets)

        queue_service.listen(notify)

    def wake(self, ladder: str, tickets: Sequence[int]) -> None:
        """Wake the requests that wait for any of these tickets."""
        for ticket in tickets:
            for waiter in self._waiting.get((ladder, ticket), ()):
                waiter.wake()

    @contextmanager
    def telling(self, ladder: str, ticket: int, waiter: Waiter) -> Iterator[None]:
        """Wake this request when the ticket changes, also between two calls of `news`."""
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
    """Server-sent events. held: places that the stream holds from before its first event; left when it has ended."""

    def __init__(self, events: AsyncIterator[bytes], held: ExitStack) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client hangs up."""

        async def receive_or_end() -> Message:
            try:
                return await receive()
            except BodyRefusedError:  # too late to say so: the stream ends
                return {"type": "http.disconnect"}

        with self._held:
            await super().__call__(scope, receive_or_end, send)
