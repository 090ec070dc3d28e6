"""Group commit for an event loop: requests that arrive while one transaction runs share the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Generic, TypeVar

from evenmatch.errors import EvenmatchError, StoreError
from evenmatch.http.logs import log

Wish = TypeVar("Wish")
Told = TypeVar("Told")


class Gather(Generic[Wish, Told]):
    """Hands what arrives together to one call of `work` in a thread, each ladder's by itself and in order.

    work  takes a ladder and wishes, and gives for each what is told, or the error by which it was refused
    most  of what `weigh` says of wishes goes into one call, or a single wish
    """

    def __init__(
        self,
        work: Callable[[str, Sequence[Wish]], Sequence[Told | EvenmatchError]],
        threads: ThreadPoolExecutor,
        most: int = 2000,
        weigh: Callable[[Wish], int] = lambda _: 1,
    ) -> None:
        self._work, self._threads, self._most, self._weigh = work, threads, most, weigh
        self._waiting: dict[str, list[tuple[Wish, asyncio.Future[Told]]]] = {}
        self._busy: set[str] = set()

    def submit(self, ladder: str, wishes: Sequence[Wish]) -> list[asyncio.Future[Told]]:
        """Futures of what is told of each wish; they raise the error by which it was refused."""
        loop = asyncio.get_running_loop()
        pairs = [(wish, loop.create_future()) for wish in wishes]
        self._waiting.setdefault(ladder, []).extend(pairs)
        if ladder not in self._busy:
            self._begin(ladder, loop)
        return [future for _, future in pairs]

    async def one(self, ladder: str, wish: Wish) -> Told:
        """What is told of one wish."""
        return await self.submit(ladder, [wish])[0]

    def _begin(self, ladder: str, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.pop(ladder, [])
        if not waiting:
            self._busy.discard(ladder)
            return
        self._busy.add(ladder)
        weights = accumulate(self._weigh(wish) for wish, _ in waiting)
        end = max(1, sum(weight <= self._most for weight in weights))
        batch, rest = waiting[:end], waiting[end:]
        if rest:
            self._waiting[ladder] = rest
        running = loop.run_in_executor(self._threads, self._work, ladder, [wish for wish, _ in batch])
        running.add_done_callback(lambda done: self._end(ladder, loop, batch, done))

    def _end(
        self,
        ladder: str,
        loop: asyncio.AbstractEventLoop,
        batch: list[tuple[Wish, asyncio.Future[Told]]],
        done: asyncio.Future[Sequence[Told | EvenmatchError]],
    ) -> None:
        try:
            self._begin(ladder, loop)
        finally:
            self._tell(batch, done)

    def _tell(
        self, batch: list[tuple[Wish, asyncio.Future[Told]]], done: asyncio.Future[Sequence[Told | EvenmatchError]]
    ) -> None:
        error = done.exception()
        if error is not None and not isinstance(error, EvenmatchError):
            log.error("bug", exc_info=error)
            error = StoreError(f"it is not known whether this was kept ({error!r}); send it again")
        outcomes = [error] * len(batch) if error is not None else done.result()
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():  # whoever asked has gone
                continue
            if isinstance(outcome, EvenmatchError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
