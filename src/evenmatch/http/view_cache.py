"""Cached standings and responses made from them, read without a worker thread and without the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from starlette.requests import Request

from evenmatch.http.cached_responses import CachedResponses
from evenmatch.service.callers.access import Caller
from evenmatch.service.queries.kept_views import KeptViews
from evenmatch.service.queries.standings import View
from evenmatch.service.service import Service

T = TypeVar("T")


class SharedComputation(Generic[T]):
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
    """The standings of ladders, and the cached responses made from them. Use in the event loop only.

    An expired view is computed by one thread, however many requests wait for it. kept: those read page by page.
    """

    def __init__(self, service: Service, threads: ThreadPoolExecutor, responses: CachedResponses) -> None:
        self._service, self._responses = service, responses
        self.kept = KeptViews()
        self._views: SharedComputation[View] = SharedComputation(threads)
        self._bodies: SharedComputation[bytes] = SharedComputation(threads)

    async def view(self, ladder: str) -> View:
        """A ladder's standings, at most some seconds old. Raises UnknownNameError."""
        cached = self._service.young_view(ladder)
        if cached is not None:
            return cached
        return await self._views.get(ladder, lambda: self._service.view(ladder, fresh=False))

    async def body(self, request: Request, ladder: str, caller: Caller, make: Callable[[View], bytes]) -> bytes:
        """The response to a request about a ladder's standings, as its caller may see it.

        `make` renders it in a thread if it is not cached.
        """
        view, whole = await self.view(ladder), caller.may("ratings", ladder)
        cached = self._responses.find(request.scope, lambda _: view, whole=whole)
        if cached is not None:
            return cached.body
        body = await self._bodies.get((str(request.url), id(view), whole), lambda: make(view.seen_by(caller)))
        self._responses.keep(request, ladder, view, body, whole=whole)
        return body
