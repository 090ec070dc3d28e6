"""Threads for blocking calls, with a limit per group (a ladder, a caller), so that no group takes them all."""

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
    """Run blocking calls in a pool of threads. Use in the event loop only.

    name     what a group is, for messages: "ladder"
    threads  of all groups together
    at_once  calls of one group that may run at a time
    longest  calls of one group that may wait for a thread
    """

    def __init__(self, name: str, threads: int, at_once: int, longest: int) -> None:
        self._name, self._at_once, self._longest = name, at_once, longest
        self._pool = ThreadPoolExecutor(threads, f"evenmatch-{name}")
        self._turns: dict[str, tuple[asyncio.Semaphore, int]] = {}  # with the number of calls, running or waiting

    async def work(self, group: str, function: Callable[..., T], *arguments: object) -> T:
        """Call a blocking function. Raises BusyError if too many calls of its group are waiting."""
        async with self._turn(group):
            # An abandoned request leaves its thread waiting, so it must keep its turn until the thread is free.
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
        """Wait for running calls, and accept no others."""
        self._pool.shutdown(wait=True)
