"""Threads for blocking calls that may wait for the lock of a ladder: few for each, so that no ladder takes them all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from evenmatch.errors import BusyError

T = TypeVar("T")
THREADS = 16  # for all ladders
AT_ONCE = 2  # of one ladder
LONGEST = 32  # calls of one ladder that may wait for a thread
RETRY = 2.0  # seconds after which a refused request may be sent again


class LadderThreads:
    """The calls of all ladders, running or waiting. Use in the event loop only."""

    def __init__(self, threads: int = THREADS, at_once: int = AT_ONCE, longest: int = LONGEST) -> None:
        self._pool = ThreadPoolExecutor(threads, "evenmatch-ladders")
        self._at_once, self._longest = at_once, longest
        self._turns: dict[str, tuple[asyncio.Semaphore, int]] = {}  # with the number of calls, running or waiting

    async def work(self, ladder: str, function: Callable[..., T], *arguments: object) -> T:
        """Call a blocking function that may lock this ladder. Raises BusyError if too many calls wait for it."""
        async with self._turn(ladder):
            # An abandoned request leaves its thread waiting, so it must keep its turn until the thread is free.
            call = asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
            try:
                return await asyncio.shield(call)
            finally:
                if not call.done():
                    await asyncio.wait({call})

    @asynccontextmanager
    async def _turn(self, ladder: str) -> AsyncIterator[None]:
        turns, count = self._turns.get(ladder, (asyncio.Semaphore(self._at_once), 0))
        if count >= self._at_once + self._longest:
            raise BusyError(f"{count} requests wait for ladder {ladder!r}; try again in a moment", RETRY)
        self._turns[ladder] = (turns, count + 1)
        try:
            async with turns:
                yield
        finally:
            turns, count = self._turns.pop(ladder)
            if count > 1:
                self._turns[ladder] = (turns, count - 1)

    def shutdown(self) -> None:
        """Wait for the calls that run, and accept no others."""
        self._pool.shutdown(wait=True)
