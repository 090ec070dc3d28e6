"""Cached standings, the responses made from them, and the views of walks from page to page.

A response is valid while its standings are the current ones. Callers who see everything and callers who see what the
ladder shows its players have separate responses.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import ReferenceType, ref

from starlette.requests import Request
from starlette.types import Scope

from evenmatch.accounts.access import Caller
from evenmatch.http.responses import etag_of
from evenmatch.ladders.standings import View
from evenmatch.operations.service import Service

MOST = 1024
MOST_BYTES = 32 * 2**20  # of all bodies
LONGEST = 300  # bytes of a query string; longer ones are rare and not cached

Address = tuple[str, bytes, bool]


class CachedResponse(NamedTuple):
    """A response and the view of the standings that it was made from; `route`: label of the request in the metrics.

    The reference is a weak one: otherwise responses that are not requested again would keep the views of their moments.
    """

    ladder: str
    view: ReferenceType[View]
    body: bytes
    etag: str
    route: object


class CachedResponses:
    """An LRU cache of responses by path, query string, and whether the caller sees everything.

    Use in the event loop only.
    """

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes, self._bytes = most, most_bytes, 0
        self._cached: OrderedDict[Address, CachedResponse] = OrderedDict()

    def keep(self, request: Request, ladder: str, view: View, body: bytes, *, whole: bool) -> None:
        """Store the response to a request, for all callers who see as much; remove the least recently used if full."""
        scope = request.scope
        if len(scope["query_string"]) <= LONGEST:
            address = _address(scope, whole)
            self._remove(address)
            self._cached[address] = CachedResponse(ladder, ref(view), body, etag_of(body), scope.get("route"))
            self._bytes += len(body)
            while len(self._cached) > self._most or self._bytes > self._most_bytes:
                self._remove(next(iter(self._cached)))

    def ladder_of(self, scope: Scope) -> str | None:
        """The ladder of this URL; None: no response is cached."""
        cached = self._cached.get(_address(scope, False)) or self._cached.get(_address(scope, True))
        return None if cached is None else cached.ladder

    def find(self, scope: Scope, young: Callable[[str], View | None], *, whole: bool) -> CachedResponse | None:
        """The cached response of this URL, if it was made from the current standings."""
        address = _address(scope, whole)
        cached = self._cached.get(address)
        if cached is None:
            return None
        view = cached.view()
        if view is None or young(cached.ladder) is not view:  # both are None when neither is there any more
            self._remove(address)
            return None
        self._cached.move_to_end(address)
        return cached

    def _remove(self, address: Address) -> None:
        removed = self._cached.pop(address, None)
        self._bytes -= 0 if removed is None else len(removed.body)


def _address(scope: Scope, whole: bool) -> Address:
    return scope["path"], scope["query_string"], whole


SECONDS = 60  # that a view is kept after its last page was read
ROWS = 2_000_000  # players of all kept views, about 100 bytes each


class _KeptView(NamedTuple):
    """A view and the monotonic time, in seconds, of the last page read from it."""

    view: View
    read_at: float


class KeptViews:
    """The views of walks through standings, of all ladders. Safe to share between threads.

    The least recently read view is dropped first when the views have more than ROWS players together.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], _KeptView] = OrderedDict()  # the least recently read first
        self._rows = 0
        self._guard = threading.Lock()

    def keep(self, view: View) -> None:
        """Keep a view, so that `find` returns it for its identity."""
        with self._guard:
            key = view.head.name, view.identity
            self._drop(key)
            self._kept[key] = _KeptView(view, self._clock())
            self._rows += len(view.snapshot.board)
            self._limit()

    def find(self, present: View, identity: str) -> View | None:
        """The view with this identity: a kept one, or the present one if it lists the same players in the same order.

        None: it is not kept any more, or a correction or a change of settings came after it.
        """
        if present.identity == identity:
            return present
        with self._guard:
            self._limit()
            kept = self._kept.get((present.head.name, identity))
        if kept is None or kept.view.basis != present.basis:
            return None
        self.keep(kept.view)
        return kept.view

    def _limit(self) -> None:
        """Drop the views that were not read for long, and what is more than fits; the latest one always fits."""
        oldest = self._clock() - SECONDS
        while self._kept:
            key, kept = next(iter(self._kept.items()))
            if kept.read_at >= oldest and (self._rows <= ROWS or len(self._kept) == 1):
                return
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._rows -= len(kept.view.snapshot.board)


T = TypeVar("T")


class Work(Protocol):
    """Calls a blocking function in a thread for the request of this task, as Site.work does."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Return the function's result."""


class SharedComputation(Generic[T]):
    """Run a computation once, in a thread, and share its result among concurrent requests. For the event loop only."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._running: dict[Hashable, asyncio.Future[T]] = {}

    async def get(self, question: Hashable, make: Callable[[], T], work: Work | None = None) -> T:
        """Return what `make` returns, or raise what it raises; join a running computation of the same question.

        work  in place of that of all questions
        Raises StoreError and BusyError as `work` does.
        """
        running = self._running.get(question)
        if running is None:
            running = asyncio.ensure_future((work or self._work)(make))
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

    def __init__(self, service: Service, work: Work, responses: CachedResponses) -> None:
        self._service, self._responses = service, responses
        self.kept = KeptViews()
        self._views: SharedComputation[View] = SharedComputation(work)
        self._bodies: SharedComputation[bytes] = SharedComputation(work)

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
