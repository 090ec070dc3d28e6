"""Cached standings and pages of them, read without a worker thread and without the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from evenmatch.http.byte_cache import ByteCache
from evenmatch.service.queries.standings import View
from evenmatch.service.service import Service

T = TypeVar("T")


class Once(Generic[T]):
    """Runs one computation for all concurrent requests of the same key, in a thread. Use in the event loop only."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._running: dict[Hashable, asyncio.Future[T]] = {}

    async def get(self, question: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns, or raise what it raises; join a running computation of the same question."""
        running = self._running.get(question)
        if running is None:
            running = asyncio.get_running_loop().run_in_executor(self._threads, make)
            self._running[question] = running
            running.add_done_callback(lambda done: self._end(question, done))
        return await asyncio.shield(running)  # a cancelled request must not cancel it for the others

    def _end(self, question: Hashable, done: asyncio.Future[T]) -> None:
        del self._running[question]
        if not done.cancelled():
            done.exception()  # mark as retrieved, in case all requests were cancelled


class ViewCache:
    """The standings of ladders, and responses made from them. Use in the event loop only.

    An expired view is computed by one thread, however many requests wait for it.
    """

    def __init__(self, service: Service, threads: ThreadPoolExecutor, pages: ByteCache) -> None:
        self._service, self._pages = service, pages
        self._views: Once[View] = Once(threads)
        self._answers: Once[bytes] = Once(threads)

    async def view(self, ladder: str) -> View:
        """A ladder's standings, at most some seconds old. Raises UnknownNameError."""
        cached = self._service.young_view(ladder)
        if cached is not None:
            return cached
        return await self._views.get(ladder, lambda: self._service.view(ladder, fresh=False))

    async def page(self, ladder: str, question: Hashable, make: Callable[[View], bytes]) -> tuple[View, bytes]:
        """The view, and the answer to a question about it; computed with `make` in a thread if it is not cached."""
        view = await self.view(ladder)
        answer = self._pages.find((ladder, question), view)
        if answer is None:
            answer = await self._answers.get((ladder, question, id(view)), lambda: make(view))
            self._pages.keep((ladder, question), view, answer)
        return view, answer
