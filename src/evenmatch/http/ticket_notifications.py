"""Waiting for changes of tickets, which any process may commit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from evenmatch.service.queues.queue_service import QueueService

Place = tuple[str, int]  # a ladder and a ticket


class TicketNotifications:
    """The waiting requests by ladder and ticket. For the event loop; the queue service notifies from its threads."""

    def __init__(self) -> None:
        self._waiting: dict[Place, set[asyncio.Event]] = {}

    def begin(self, loop: asyncio.AbstractEventLoop, queue_service: QueueService) -> None:
        """Subscribe to the committed changes of the queue service."""

        def notify(ladder: str, tickets: list[int]) -> None:
            loop.call_soon_threadsafe(self.wake, ladder, tickets)

        queue_service.listen(notify)

    def wake(self, ladder: str, tickets: Sequence[int]) -> None:
        """Wake the requests that wait for any of these tickets."""
        for ticket in tickets:
            for event in self._waiting.get((ladder, ticket), ()):
                event.set()

    def wait(self, ladder: str, ticket: int) -> TicketWaiter:
        """A context manager to wait for changes of a ticket."""
        return TicketWaiter(self._waiting, (ladder, ticket))

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))


class TicketWaiter:
    """A request that waits for changes of a ticket. Changes between two calls of `news` are not lost."""

    def __init__(self, waiting: dict[Place, set[asyncio.Event]], place: Place) -> None:
        self._waiting, self._place, self._event = waiting, place, asyncio.Event()

    def __enter__(self) -> TicketWaiter:
        self._waiting.setdefault(self._place, set()).add(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        events = self._waiting[self._place]
        events.discard(self._event)
        if not events:
            del self._waiting[self._place]

    async def news(self, timeout: float, stopping: asyncio.Event) -> None:
        """Wait until the ticket changes, at most `timeout` seconds, or until the process is asked to stop."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._event, stopping)]
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self._event.clear()


T = TypeVar("T")
NET = 1.0  # seconds after which a waiting request looks again, even without a notification


async def until(
    look: Callable[[], Awaitable[T]],
    is_news: Callable[[T], bool],
    wait: float,
    stopping: asyncio.Event,
    waiter: TicketWaiter | None = None,
) -> T:
    """The result of `look` once `is_news` holds, or the latest after `wait` seconds or when the process stops."""
    loop = asyncio.get_running_loop()
    end = loop.time() + wait
    while True:
        result = await look()
        left = end - loop.time()
        if left <= 0 or is_news(result) or stopping.is_set():
            return result
        if waiter is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), min(left, NET))
        else:
            await waiter.news(min(left, NET), stopping)
