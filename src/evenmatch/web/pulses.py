"""Tells those who watch a ladder that something has changed: one look at the database for all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import NamedTuple

from evenmatch.errors import EvenmatchError
from evenmatch.http.logs import log
from evenmatch.http.site import Site
from evenmatch.service.playing import live
from evenmatch.web.shown import seen_of

EVERY = 1.0  # seconds between two looks at a ladder that somebody watches
STILL = 15.0  # seconds after which a word is sent, so that nobody takes the stream for dead


class Pulse(NamedTuple):
    """What is compared from look to look: the ledger as the standings show it, and the changes of the queues."""

    standings: str
    queue: int

    def since(self, before: Pulse | None) -> list[str]:
        """Which of the two have changed."""
        if before is None:
            return []
        return [what for what in ("ladder", "queue") if getattr(self, _FIELD[what]) != getattr(before, _FIELD[what])]


_FIELD = {"ladder": "standings", "queue": "queue"}


class Pulses:
    """The ladders that somebody watches, looked at together. For the event loop's thread."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._listening: dict[str, set[asyncio.Queue[str]]] = {}
        self._of: Counter[str] = Counter()  # streams by address
        self._looking: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._listening.values()))

    def count(self, who: str) -> int:
        """The streams of an address."""
        return self._of[who]

    async def of(self, ladder: str, seen: str, who: str = "") -> AsyncIterator[str]:
        """`ladder` or `queue` each time that one has changed, and nothing now and then; seen: as the page has it."""
        mine: asyncio.Queue[str] = asyncio.Queue(8)
        self._listening.setdefault(ladder, set()).add(mine)
        self._of[who] += 1
        if ladder not in self._looking:
            self._looking[ladder] = asyncio.create_task(self._look(ladder))
        try:
            if await self._site.work(lambda: seen_of(self._site.service.shown_view(ladder))) != seen:
                yield "ladder"
            while not self._site.stopping.is_set():
                try:
                    yield await asyncio.wait_for(mine.get(), STILL)
                except TimeoutError:
                    yield ""
        finally:
            self._leave(ladder, mine)
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]

    def _leave(self, ladder: str, mine: asyncio.Queue[str]) -> None:
        there = self._listening[ladder]
        there.discard(mine)
        if not there:
            del self._listening[ladder]
            self._looking.pop(ladder).cancel()

    async def _look(self, ladder: str) -> None:
        before: Pulse | None = None
        while not self._site.stopping.is_set():
            try:
                now = await self._site.work(self._pulse, ladder)
            except EvenmatchError as error:
                log.warning("a watched ladder cannot be read", ladder=ladder, error=str(error))
            else:
                for what in now.since(before):
                    self._tell(ladder, what)
                before = now
            try:
                await asyncio.wait_for(self._site.stopping.wait(), EVERY)
            except TimeoutError:
                continue
        self._tell(ladder, "")  # so that all streams end

    def _tell(self, ladder: str, what: str) -> None:
        for one in self._listening.get(ladder, ()):
            if not one.full():  # whoever is so far behind looks at everything anyhow
                one.put_nowait(what)

    def _pulse(self, ladder: str) -> Pulse:
        view = self._site.service.shown_view(ladder)
        with self._site.service.reading(ladder) as (store, head):
            return Pulse(seen_of(view), live.last_change(store, head.ladder))
