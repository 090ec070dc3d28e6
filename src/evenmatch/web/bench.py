"""What the lab of one process keeps between requests: healths of ladders, runs of presets, and whose turn it is."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenmatch.errors import ConflictError
from evenmatch.http.site import Site

if TYPE_CHECKING:
    from evenmatch.lab.health import Health
    from evenmatch.lab.queue_run import Run
    from evenmatch.service.boards import View

FRESH = 60.0  # seconds for which a health is shown, though matches came since
TIMES = 20.0  # as long as it took to find, so often: a large ladder's is looked at more rarely
LADDERS = 50  # whose health is kept
KEPT = 24  # runs of presets
PATIENT = 3  # who may wait for the simulator; a slider that is drawn asks again anyway


@dataclass(frozen=True)
class Found:
    """The health of a ladder as of an event of its ledger, or why there is none; and for how long it is shown."""

    seen: tuple[int, int, int]
    health: Health | None
    findings: tuple[str, ...]
    until: float


@dataclass
class Bench:
    """Made once for each process. Healths and turns are asked for in the event loop, runs by whose turn it is.

    words  what the jobs of this process are doing, by ladder and kind
    """

    _found: OrderedDict[str, Found] = field(default_factory=OrderedDict)
    _sought: dict[str, asyncio.Task[Found]] = field(default_factory=dict)
    _runs: OrderedDict[Hashable, Run] = field(default_factory=OrderedDict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0
    words: dict[tuple[str, str], str] = field(default_factory=dict)

    def known(self, view: View) -> Found | None:
        """The health of a ladder if it is known and not old."""
        found = self._found.get(view.head.name)
        if found is None or (found.seen != _seen(view) and time.monotonic() > found.until):
            return None
        return found

    async def health(self, site: Site, view: View) -> Found:
        """The health of a ladder; many who ask at once wait for the same."""
        if (found := self.known(view)) is not None:
            return found
        return await asyncio.shield(self.begin(site, view))

    def begin(self, site: Site, view: View) -> asyncio.Task[Found]:
        """Find out the health of a ladder, unless that is at work."""
        name = view.head.name
        if name not in self._sought:
            self._sought[name] = asyncio.create_task(self._seek(site, view))
        return self._sought[name]

    async def _seek(self, site: Site, view: View) -> Found:
        name = view.head.name
        try:
            found = await site.work(_find, site, view)
        finally:
            del self._sought[name]
        self._found[name] = found
        self._found.move_to_end(name)
        while len(self._found) > LADDERS:
            self._found.popitem(last=False)
        return found

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The simulator, which one uses at a time. Raises ConflictError where too many wait for it."""
        if self._waiting >= PATIENT:
            raise ConflictError("the simulator is busy with what others ask; try again in some seconds")
        self._waiting += 1
        try:
            async with self._turn:
                yield
        finally:
            self._waiting -= 1

    def run(self, key: Hashable) -> Run | None:
        """A run that was kept."""
        return self._runs.get(key)

    def keep(self, key: Hashable, run: Run) -> None:
        """Keep a run, and forget the oldest where there are many."""
        self._runs[key] = run
        while len(self._runs) > KEPT:
            self._runs.popitem(last=False)


def _seen(view: View) -> tuple[int, int, int]:
    return view.head.position, view.head.generation, view.head.corrected


def _find(site: Site, view: View) -> Found:
    from evenmatch.web import experiments  # noqa: PLC0415 - the lab is loaded where somebody looks into it

    began = time.monotonic()
    health, findings = experiments.health_of(site.service, view.head.name)
    took = time.monotonic() - began
    return Found(_seen(view), health, tuple(findings), time.monotonic() + max(FRESH, TIMES * took))
