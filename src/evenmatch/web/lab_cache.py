"""What the lab pages of a process share: the health of ladders, trials of queues, and one turn at the simulator."""

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
    from evenmatch.lab.ladder.health import LadderHealth
    from evenmatch.lab.queue.trial import Trial
    from evenmatch.ladders.standings import View

FRESH = 60.0  # seconds for which a health report is shown even if new matches have arrived
TIMES = 20.0  # a report is also shown for this many times its computation time, so large ladders recompute less often
LADDERS = 50  # ladders whose health is cached
KEPT = 12  # cached trials
PATIENT = 3  # requests that may wait for the simulator; moving a slider sends a new request anyway


@dataclass(frozen=True)
class CachedHealth:
    """The health of a ladder at a ledger state, or why it has none; valid until the monotonic second `until`."""

    seen: tuple[int, int, int]
    health: LadderHealth | None
    findings: tuple[str, ...]
    until: float


@dataclass
class LabCache:
    """The lab's cache in one process.

    Call `health`, `begin` and `turn` in the event loop, `trial` and `keep` in a turn.

    words  the progress message of each job of this process, by ladder and kind
    """

    _reports: OrderedDict[str, CachedHealth] = field(default_factory=OrderedDict)
    _computing: dict[str, asyncio.Task[CachedHealth]] = field(default_factory=dict)
    _trials: OrderedDict[Hashable, Trial] = field(default_factory=OrderedDict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0
    words: dict[tuple[str, str], str] = field(default_factory=dict)

    def known(self, view: View) -> CachedHealth | None:
        """The cached health of a ladder; None if there is none or it is too old."""
        report = self._reports.get(view.head.name)
        if report is None or (report.seen != _state(view) and time.monotonic() > report.until):
            return None
        return report

    async def health(self, site: Site, view: View) -> CachedHealth:
        """Return the health of a ladder; simultaneous requests share one computation."""
        if (report := self.known(view)) is not None:
            return report
        return await asyncio.shield(self.begin(site, view))

    def begin(self, site: Site, view: View) -> asyncio.Task[CachedHealth]:
        """Start to compute the health of a ladder, unless that is already running."""
        key = view.head.name
        if key not in self._computing:
            computing = asyncio.create_task(self._compute(site, view))
            self._computing[key] = computing
            computing.add_done_callback(lambda _: self._computing.pop(key))
        return self._computing[key]

    async def _compute(self, site: Site, view: View) -> CachedHealth:
        name = view.head.name
        report = await site.work(_compute_health, site, view, is_limited=False)
        self._reports[name] = report
        self._reports.move_to_end(name)
        while len(self._reports) > LADDERS:
            self._reports.popitem(last=False)
        return report

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the lock of the simulator. Raises ConflictError if too many requests wait for it."""
        if self._waiting >= PATIENT:
            raise ConflictError("the simulator is busy with other requests; try again in a few seconds")
        self._waiting += 1
        try:
            async with self._turn:
                yield
        finally:
            self._waiting -= 1

    def trial(self, key: Hashable) -> Trial | None:
        """The cached trial of this key."""
        return self._trials.get(key)

    def keep(self, key: Hashable, trial: Trial) -> None:
        """Cache a trial; the oldest are removed above KEPT."""
        self._trials[key] = trial
        while len(self._trials) > KEPT:
            self._trials.popitem(last=False)


def _state(view: View) -> tuple[int, int, int]:
    return view.head.position, view.head.generation, view.head.corrected


def _compute_health(site: Site, view: View) -> CachedHealth:
    from evenmatch.web import lab_jobs  # noqa: PLC0415 - the lab is loaded on first use

    began = time.monotonic()
    health, findings = lab_jobs.health_of(site.service, view.head.name)
    took = time.monotonic() - began
    return CachedHealth(_state(view), health, tuple(findings), time.monotonic() + max(FRESH, TIMES * took))
