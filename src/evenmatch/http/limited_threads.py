"""A thread pool with a limit per group (a ladder, a caller), so that no group occupies all threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from evenmatch.errors import BusyError

T = TypeVar("T")
RETRY = 2.0  # seconds after which a refused caller may try again


class LimitedThreads:
    """Runs blocking calls in a thread pool. Use in the event loop only.

    name     word for a group in messages, such as "ladder"
    threads  size of the pool, which all groups share
    at_once  most calls of one group that run at a time
    longest  most calls of one group that wait for a thread
    """

    def __init__(self, name: str, threads: int, at_once: int, longest: int) -> None:
        self._name, self._at_once, self._longest = name, at_once, longest
        self._pool = ThreadPoolExecutor(threads, f"evenmatch-{name}")
        self._turns: dict[str, tuple[asyncio.Semaphore, int]] = {}  # with the number of calls, running or waiting

    async def work(self, group: str, function: Callable[..., T], *arguments: object) -> T:
        """Call a blocking function. Raises BusyError if too many calls of its group are waiting."""
        async with self._turn(group):
            # The thread of an abandoned request still runs, so the request keeps its turn until the thread is free.
            call = asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
            try:
                return await asyncio.shield(call)
            finally:
                if not call.done():
                    await asyncio.wait({call})

    @asynccontextmanager
    async def _turn(self, group: str) -> AsyncIterator[None]:
        turns, count = self._turns.get(group, (asyncio.Semaphore(self._at_once), 0))
        if count >= self._at_once + self._longest:
            raise BusyError(
                f"{count} requests are already waiting for {self._name} {group!r}; try again in a moment", RETRY
            )
        self._turns[group] = (turns, count + 1)
        try:
            async with turns:
                yield
        finally:
            turns, count = self._turns.pop(group)
            if count > 1:
                self._turns[group] = (turns, count - 1)

    def shutdown(self) -> None:
        """Wait for running calls, and accept no new ones."""
        self._pool.shutdown(wait=True)
