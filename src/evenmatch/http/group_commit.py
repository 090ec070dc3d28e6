"""Group commit for an event loop: requests that arrive while one transaction runs share the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Generic, TypeVar

from evenmatch.errors import EvenmatchError, StoreError
from evenmatch.http.logs import log

Request = TypeVar("Request")
Result = TypeVar("Result")


class GroupCommit(Generic[Request, Result]):
    """Collects concurrent requests of a ladder into one call of `work` in a thread, in order; ladders are independent.

    work  processes requests of a ladder; returns for each its result, or the error that refused it
    weigh the weight of a request
    most  largest total weight of a call; a single heavier request gets a call of its own
    """

    def __init__(
        self,
        work: Callable[[str, Sequence[Request]], Sequence[Result | EvenmatchError]],
        threads: ThreadPoolExecutor,
        most: int = 2000,
        weigh: Callable[[Request], int] = lambda _: 1,
    ) -> None:
        self._work, self._threads, self._most, self._weigh = work, threads, most, weigh
        self._waiting: dict[str, list[tuple[Request, asyncio.Future[Result]]]] = {}
        self._busy: set[str] = set()

    def submit(self, ladder: str, wishes: Sequence[Request]) -> list[asyncio.Future[Result]]:
        """Queue requests and return a future for each; a future raises the error that refused its request."""
        loop = asyncio.get_running_loop()
        pairs = [(request, loop.create_future()) for request in wishes]
        self._waiting.setdefault(ladder, []).extend(pairs)
        if ladder not in self._busy:
            self._begin(ladder, loop)
        return [future for _, future in pairs]

    async def one(self, ladder: str, wish: Request) -> Result:
        """The result of one request. Raises the error that refused it."""
        return await self.submit(ladder, [wish])[0]

    def _begin(self, ladder: str, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.pop(ladder, [])
        if not waiting:
            self._busy.discard(ladder)
            return
        self._busy.add(ladder)
        weights = accumulate(self._weigh(request) for request, _ in waiting)
        end = max(1, sum(weight <= self._most for weight in weights))
        batch, rest = waiting[:end], waiting[end:]
        if rest:
            self._waiting[ladder] = rest
        running = loop.run_in_executor(self._threads, self._work, ladder, [request for request, _ in batch])
        running.add_done_callback(lambda done: self._end(ladder, loop, batch, done))

    def _end(
        self,
        ladder: str,
        loop: asyncio.AbstractEventLoop,
        batch: list[tuple[Request, asyncio.Future[Result]]],
        done: asyncio.Future[Sequence[Result | EvenmatchError]],
    ) -> None:
        try:
            self._begin(ladder, loop)
        finally:
            self._resolve(batch, done)

    def _resolve(
        self,
        batch: list[tuple[Request, asyncio.Future[Result]]],
        done: asyncio.Future[Sequence[Result | EvenmatchError]],
    ) -> None:
        error = done.exception()
        if error is not None and not isinstance(error, EvenmatchError):
            log.error("bug", exc_info=error)
            error = StoreError(f"it is unknown whether this was stored ({error!r}); send the request again")
        outcomes = [error] * len(batch) if error is not None else done.result()
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():  # cancelled: the client disconnected
                continue
            if isinstance(outcome, EvenmatchError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
