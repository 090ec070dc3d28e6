"""Notifies open pages when a ladder changes; the database is polled once per ladder for all its streams."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import NamedTuple

from evenmatch.errors import BusyError, EvenmatchError
from evenmatch.http.logs import log
from evenmatch.http.site import Site
from evenmatch.http.waiting_requests import Waiter
from evenmatch.web.view_models import seen_of

EVERY = 1.0  # seconds between two polls of a ladder that has open streams
MOST, EACH = 2000, 60  # open streams per process (a quarter of its connections at most), and per client address
RETRY = 30.0  # seconds after which a page that found too many open may ask again
STILL = 15.0  # seconds of silence after which a comment is sent, so that proxies do not close the stream


class Changes(NamedTuple):
    """Values that are compared between polls: the ledger state of the standings, and the last change of the queues."""

    standings: str
    queue: int

    def since(self, before: Changes | None) -> list[str]:
        """The names of the parts that have changed: `ladder`, `queue`."""
        if before is None:
            return []
        return [what for what in ("ladder", "queue") if getattr(self, _FIELD[what]) != getattr(before, _FIELD[what])]


_FIELD = {"ladder": "standings", "queue": "queue"}


class _Listener:
    """An open stream, and the events that it has not sent yet."""

    def __init__(self, waiter: Waiter) -> None:
        self.waiter = waiter
        self.unread: list[str] = []


class ChangeStream:
    """The open streams by ladder, with one polling task per ladder. Use it in the event loop's thread only."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._listeners: dict[str, set[_Listener]] = {}
        self._by_client: Counter[str] = Counter()  # streams by client address
        self._pollers: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._listeners.values()))

    @contextmanager
    def place(self, who: str) -> Iterator[None]:
        """Count a stream of a client address until it ends. Raises BusyError if there are too many."""
        most = min(MOST, self._site.connections.limits.total // 4)
        if self._by_client.total() >= most or self._by_client[who] >= EACH:
            setting = " (a quarter of EVENMATCH_CONNECTIONS)" if self._by_client.total() >= most < MOST else ""
            raise BusyError(f"too many pages are open{setting}; reload this one by hand", RETRY)
        self._by_client[who] += 1
        try:
            yield
        finally:
            self._by_client[who] -= 1
            if not self._by_client[who]:
                del self._by_client[who]

    async def of(self, ladder: str, seen: str, waiter: Waiter) -> AsyncIterator[str]:
        """Yield `ladder` or `queue` after each change, and "" as a sign of life; `seen`: the state the page shows."""
        listener = _Listener(waiter)
        self._listeners.setdefault(ladder, set()).add(listener)
        if ladder not in self._pollers:
            task = asyncio.create_task(self._poll(ladder), context=Context())  # in no threads that a stranger occupies
            self._pollers[ladder] = task
        try:
            if await self._site.work(lambda: seen_of(self._site.service.shown_view(ladder))) != seen:
                yield "ladder"
            while not waiter.is_over and not self._site.stopping.is_set():
                if not await waiter.news(STILL):
                    yield ""
                while listener.unread:
                    yield listener.unread.pop(0)
        finally:
            self._remove(ladder, listener)

    def _remove(self, ladder: str, listener: _Listener) -> None:
        listeners = self._listeners[ladder]
        listeners.discard(listener)
        if not listeners:
            del self._listeners[ladder]
            self._pollers.pop(ladder).cancel()

    async def _poll(self, ladder: str) -> None:
        before: Changes | None = None
        while not self._site.stopping.is_set():
            try:
                now = await self._site.work(self._read_changes, ladder)
            except EvenmatchError as error:
                log.warning("a watched ladder cannot be read", ladder=ladder, error=str(error))
            else:
                for event in now.since(before):
                    self._send(ladder, event)
                before = now
            try:
                await asyncio.wait_for(self._site.stopping.wait(), EVERY)
            except TimeoutError:
                continue

    def _send(self, ladder: str, event: str) -> None:
        for listener in self._listeners.get(ladder, ()):
            if event not in listener.unread:
                listener.unread.append(event)
                listener.waiter.wake()

    def _read_changes(self, ladder: str) -> Changes:
        view = self._site.service.shown_view(ladder)
        return Changes(seen_of(view), self._site.queue_service.last_change(ladder))
