"""Who waits for news of a ticket, woken when something about it was committed in any process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from evenmatch.service.queueing.desk import Desk

Place = tuple[str, int]  # a ladder and a ticket


class Wakes:
    """Those who wait, by ladder and ticket. For the event loop's thread, but for what the desk calls."""

    def __init__(self) -> None:
        self._waiting: dict[Place, set[asyncio.Event]] = {}

    def begin(self, loop: asyncio.AbstractEventLoop, desk: Desk) -> None:
        """Hear of what is committed."""

        def ring(ladder: str, tickets: list[int]) -> None:
            loop.call_soon_threadsafe(self.wake, ladder, tickets)

        desk.listen(ring)

    def wake(self, ladder: str, tickets: Sequence[int]) -> None:
        """Wake those who wait for any of these."""
        for ticket in tickets:
            for event in self._waiting.get((ladder, ticket), ()):
                event.set()

    def wait(self, ladder: str, ticket: int) -> Waiter:
        """Somebody who waits for news of a ticket, as a context."""
        return Waiter(self._waiting, (ladder, ticket))

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))


class Waiter:
    """One who waits. News between two calls of `news` are not lost."""

    def __init__(self, waiting: dict[Place, set[asyncio.Event]], place: Place) -> None:
        self._waiting, self._place, self._event = waiting, place, asyncio.Event()

    def __enter__(self) -> Waiter:
        self._waiting.setdefault(self._place, set()).add(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        events = self._waiting[self._place]
        events.discard(self._event)
        if not events:
            del self._waiting[self._place]

    async def news(self, timeout: float, stopping: asyncio.Event) -> None:
        """Wait until there is news, for so many seconds at most, or until the process is to stop."""
        waits = [asyncio.ensure_future(one.wait()) for one in (self._event, stopping)]
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        self._event.clear()


T = TypeVar("T")
NET = 1.0  # seconds after which who waits looks again, woken or not


async def until(
    look: Callable[[], Awaitable[T]],
    is_news: Callable[[T], bool],
    wait: float,
    stopping: asyncio.Event,
    waiter: Waiter | None = None,
) -> T:
    """What `look` gives, once it is news; as it is when the seconds are over, or the process is to stop."""
    loop = asyncio.get_running_loop()
    end = loop.time() + wait
    while True:
        found = await look()
        left = end - loop.time()
        if left <= 0 or is_news(found) or stopping.is_set():
            return found
        if waiter is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), min(left, NET))
        else:
            await waiter.news(min(left, NET), stopping)
