"""Cached standings and responses made from them, read without a worker thread and without the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request

from evenmatch.http.cached_responses import CachedResponses
from evenmatch.service.callers.access import Caller
from evenmatch.service.queries.kept_views import KeptViews
from evenmatch.service.queries.standings import View
from evenmatch.service.service import Service

T = TypeVar("T")
Client = Callable[[], str | None]


class Work(Protocol):
    """Calls a blocking function in a thread for the request of this task, as Site.work does."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Return the function's result."""


class SharedComputation(Generic[T]):
    """Runs one computation for all concurrent requests of the same question, in a thread. Use in the event loop only.

    Anonymous requests share those of their address: it must not keep others waiting.

    client  returns the address of an anonymous request of this task, None for others
    """

    def __init__(self, work: Work, client: Client) -> None:
        self._work, self._client = work, client
        self._running: dict[tuple[Hashable, str | None], asyncio.Future[T]] = {}

    async def get(self, question: Hashable, make: Callable[[], T], work: Work | None = None) -> T:
        """Return what `make` returns, or raise what it raises; join a running computation of the same question.

        work  in place of that of all questions
        Raises StoreError and BusyError as `work` does.
        """
        key = question, self._client()
        running = self._running.get(key)
        if running is None:
            running = asyncio.ensure_future((work or self._work)(make))
            self._running[key] = running
            running.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(running)  # a cancelled request must not cancel it for the others

    def _end(self, key: tuple[Hashable, str | None], done: asyncio.Future[T]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # mark as retrieved, in case all requests were cancelled


class ViewCache:
    """The standings of ladders, and the cached responses made from them. Use in the event loop only.

    An expired view is computed by one thread, however many requests wait for it. kept: those read page by page.
    work and client: see SharedComputation.
    """

    def __init__(self, service: Service, work: Work, client: Client, responses: CachedResponses) -> None:
        self._service, self._responses = service, responses
        self.kept = KeptViews()
        self._views: SharedComputation[View] = SharedComputation(work, client)
        self._bodies: SharedComputation[bytes] = SharedComputation(work, client)

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
