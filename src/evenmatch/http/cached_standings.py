"""Cached standings, the responses rendered from them, and the views that clients read page by page.

A response is valid while its standings are current. Callers who may see all ratings have their own responses.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar
from weakref import ReferenceType, ref

from starlette.requests import Request
from starlette.types import Scope

from evenmatch.accounts.access import Caller
from evenmatch.http.responses import etag_of
from evenmatch.ladders.standings import View
from evenmatch.operations.service import Service

RESPONSES = 1024  # most cached responses
RESPONSE_BYTES = 32 * 2**20  # largest total size of the cached bodies
LONGEST_QUERY = 300  # bytes; responses to longer query strings are not cached

Address = tuple[str, bytes, bool]


class CachedResponse(NamedTuple):
    """A response and the view of the standings it was rendered from. route: label of the request in the metrics.

    The reference is weak, so that responses nobody requests again do not keep old views in memory.
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

    def __init__(self, most: int = RESPONSES, most_bytes: int = RESPONSE_BYTES) -> None:
        self._most, self._most_bytes, self._bytes = most, most_bytes, 0
        self._cached: OrderedDict[Address, CachedResponse] = OrderedDict()

    def keep(self, request: Request, ladder: str, view: View, body: bytes, *, whole: bool) -> None:
        """Store the response to a request for all callers with the same visibility, and evict old ones if full."""
        scope = request.scope
        if len(scope["query_string"]) <= LONGEST_QUERY:
            address = _address(scope, whole)
            self._remove(address)
            self._cached[address] = CachedResponse(ladder, ref(view), body, etag_of(body), scope.get("route"))
            self._bytes += len(body)
            while len(self._cached) > self._most or self._bytes > self._most_bytes:
                self._remove(next(iter(self._cached)))

    def ladder_of(self, scope: Scope) -> str | None:
        """Return the ladder of this URL; None if no response is cached."""
        cached = self._cached.get(_address(scope, False)) or self._cached.get(_address(scope, True))
        return None if cached is None else cached.ladder

    def find(self, scope: Scope, young: Callable[[str], View | None], *, whole: bool) -> CachedResponse | None:
        """Return the cached response of this URL, if it was rendered from the current standings."""
        address = _address(scope, whole)
        cached = self._cached.get(address)
        if cached is None:
            return None
        view = cached.view()
        if view is None or young(cached.ladder) is not view:  # both may be None
            self._remove(address)
            return None
        self._cached.move_to_end(address)
        return cached

    def _remove(self, address: Address) -> None:
        removed = self._cached.pop(address, None)
        self._bytes -= 0 if removed is None else len(removed.body)


def _address(scope: Scope, whole: bool) -> Address:
    return scope["path"], scope["query_string"], whole


SECONDS = 60  # how long a view is kept after the last read
ROWS = 2_000_000  # most players in all kept views, at about 100 bytes each


class _KeptView(NamedTuple):
    """A view and the monotonic time, in seconds, of the last page read from it."""

    view: View
    read_at: float


class KeptViews:
    """The views that clients read page by page, for all ladders. Safe to share between threads.

    When the views have more than ROWS players in total, the least recently read one is dropped first.
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
        """Return the view with this identity: a kept one, or the present one if its players are in the same order.

        None: it is no longer kept, or a correction or a change of settings has made it invalid.
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
        """Drop expired views, and the oldest ones beyond ROWS players. The latest one always stays."""
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
    """Calls a blocking function in a thread, as Site.work does."""

    async def __call__(self, function: Callable[..., T], /, *arguments: object) -> T:
        """Return the function's result."""


class SharedComputations:
    """Runs a computation once and shares its result among concurrent requests. For the event loop only."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Future[Any]] = {}

    async def get(self, question: Hashable, compute: Callable[[], Awaitable[T]]) -> T:
        """Return what `compute` returns, or raise what it raises; join a running computation of the same question."""
        running: asyncio.Future[T] | None = self._running.get(question)
        if running is None:
            running = asyncio.ensure_future(compute())
            self._running[question] = running
            running.add_done_callback(lambda done: self._end(question, done))
        return await asyncio.shield(running)  # a cancelled request must not cancel it for the others

    def _end(self, question: Hashable, done: asyncio.Future[Any]) -> None:
        del self._running[question]
        if not done.cancelled():
            done.exception()  # mark as retrieved, in case all requests were cancelled


class ViewCache:
    """The standings of ladders, and the cached responses rendered from them. Use in the event loop only.

    One thread computes an expired view, however many requests wait for it. kept: the views read page by page.
    """

    def __init__(
        self, service: Service, work: Work, responses: CachedResponses, computations: SharedComputations
    ) -> None:
        self._service, self._work, self._responses, self._computations = service, work, responses, computations
        self.kept = KeptViews()

    async def view(self, ladder: str) -> View:
        """Return a ladder's standings, which may be some seconds old. Raises UnknownNameError."""
        cached = self._service.young_view(ladder)
        if cached is not None:
            return cached
        view = partial(self._service.view, ladder, fresh=False)
        return await self._computations.get(("view", ladder), partial(self._work, view))

    async def body(self, request: Request, ladder: str, caller: Caller, make: Callable[[View], bytes]) -> bytes:
        """Return the response to a request about a ladder's standings, limited to what its caller may see.

        If it is not cached, `make` renders it in a thread.
        """
        view, whole = await self.view(ladder), caller.may("ratings", ladder)
        cached = self._responses.find(request.scope, lambda _: view, whole=whole)
        if cached is not None:
            return cached.body
        question = ("page", str(request.url), id(view), whole)
        body = await self._computations.get(question, partial(self._work, lambda: make(view.seen_by(caller))))
        self._responses.keep(request, ladder, view, body, whole=whole)
        return body
