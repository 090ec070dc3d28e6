"""The matchmaker of all ladders: in whichever process holds a ladder's lease, it makes offers of who waits."""

from __future__ import annotations

import logging
import threading
import time

from evenmatch.errors import EvenmatchError
from evenmatch.ledger.store import Store
from evenmatch.matchmaking import Odds
from evenmatch.service.kernels import load_matchmaker
from evenmatch.service.queueing import queue_rules, tickets
from evenmatch.service.queueing.desk import Desk, lease_of
from evenmatch.service.queueing.foretelling import foretell
from evenmatch.service.queueing.leases import POLL, Leases
from evenmatch.service.queueing.levels import Levels
from evenmatch.service.queueing.lines import advance
from evenmatch.service.queueing.mirror import Mirror
from evenmatch.service.queueing.ticks import Stepped, Tick

FLUSH = 5.0  # seconds between two writings of signs of life
FOLLOW = 5.0  # seconds between two looks at a ladder that another process makes matches for
PRUNE = 60.0  # seconds between two times that what is over is forgotten
KEPT = 86_400_000_000  # microseconds that tickets and offers can still be read
BACK_OFF = 10.0  # seconds at most between two tries at a database that fails
PAUSE = 5_000_000  # microseconds without a matchmaker from which on they are taken off the waiting times

logger = logging.getLogger(__name__)
Key = tuple[int, int, frozenset[int]]


class Matchmaker:
    """Makes the matches of a desk's ladders. One thread runs it; any number of processes may.

    Safety does not rest on the lease: what a tick writes is held against the database under the ladder's lock.

    leases  by which it works; None: those of the desk's process
    loaded  set once the kernels of the matchmaker are loaded; None: as the desk's, or it loads them itself
    """

    def __init__(self, desk: Desk, leases: Leases | None = None, loaded: threading.Event | None = None) -> None:
        self.desk = desk
        self.leases = desk.leases if leases is None else leases
        self._loaded = desk.loaded if loaded is None else loaded
        self._since: dict[str, int] = {}  # by ladder: from when on this process holds its lease
        self._odds: dict[str, tuple[Key, dict[int, Odds | None]]] = {}
        self._pruned: dict[str, float] = {}
        self._followed: dict[str, float] = {}
        self._failed: dict[str, int] = {}  # steps of a ladder, one after the other

    def step(self, ladder: str, now: int | None = None) -> Stepped | None:
        """One tick of a ladder, as of now (microseconds); None where another process holds its lease.

        Raises StoreError; then the next step does what this one did not.
        """
        mirror = self.desk.mirror(ladder)
        lease = lease_of(mirror.ladder)
        before = self.leases.watch(lease)
        if not self.leases.hold(lease):
            self._since.pop(ladder, None)
            self._follow(ladder, mirror)
            return None
        at = self.desk.service.clock() if now is None else now
        if before.owner != self.leases.owner:
            self._skip_pause(mirror.ladder, before.held_at, at)
        since = self._since.setdefault(ladder, at)
        with mirror.lock:
            stepped = Tick(self.desk, ladder, mirror, at, since).run(self._catch_up(ladder, mirror, at))
        self._prune(ladder, mirror.ladder, at)
        return stepped

    def _skip_pause(self, number: int, held_at: int | None, now: int) -> None:
        """Take the time without a matchmaker off the waiting times; `held_at`: when there was one, None: never."""
        if held_at is not None and now - held_at < PAUSE:
            return
        database = self.desk.service.database
        with database.write() as connection:
            store = Store(connection, database.rows)
            tickets.postpone(store, number, held_at, now, advance(store, number, 1))

    def _catch_up(self, ladder: str, mirror: Mirror, now: int) -> Levels:
        """Bring a mirror up to the database, with the odds of the ladder's system."""
        levels = self.desk.levels.of(ladder)
        mirror.catch_up(now)
        mirror.foretell(self._foretold(ladder, levels, {one.policy.team_size for one in mirror.setups.values()}, now))
        return levels

    def _follow(self, ladder: str, mirror: Mirror) -> None:
        """Be ready to take over, with little work meanwhile."""
        if time.monotonic() - self._followed.get(ladder, -FOLLOW) >= FOLLOW:
            self._followed[ladder] = time.monotonic()
            self._catch_up(ladder, mirror, self.desk.service.clock())

    def run(self, stop: threading.Event) -> None:
        """Step all ladders that have queues, each at its tick, until `stop`; then let go of their leases."""
        due: dict[str, float] = {}
        self._wait_for_kernels(stop)
        flushed, failed = time.monotonic(), 0
        try:
            while not stop.is_set():
                try:
                    ticks = self._ticks()
                    if time.monotonic() - flushed >= FLUSH:
                        flushed = time.monotonic()
                        self.desk.flush_seen()
                    wait = self._step_due(ticks, due, stop)
                    failed = 0
                except EvenmatchError as error:
                    failed += 1
                    wait = _back_off(failed)
                    logger.warning("the matchmaker tries again in %.1f s: %s", wait, error)
                stop.wait(wait)
        finally:
            self._release()

    def _wait_for_kernels(self, stop: threading.Event) -> None:
        """Wait until the kernels are loaded, and watch meanwhile whether the holders of leases live."""
        loaded = _loading() if self._loaded is None else self._loaded
        while not loaded.wait(POLL) and not stop.is_set():
            try:
                for ladder in self._ticks():
                    self.leases.watch(lease_of(self.desk.mirror(ladder).ladder))
            except EvenmatchError as error:
                logger.warning("the matchmaker watches its leases again in %.1f s: %s", POLL, error)

    def _beat(self, ladder: str) -> None:
        """Hold on to a ladder's lease between two of its ticks."""
        if ladder in self._since and not self.leases.hold(lease_of(self.desk.mirror(ladder).ladder)):
            self._since.pop(ladder)

    def _step_due(self, ticks: dict[str, float], due: dict[str, float], stop: threading.Event) -> float:
        """Step the ladders whose time has come; seconds until the next one's has."""
        for ladder, tick in ticks.items():
            if stop.is_set():
                break
            begin = time.monotonic()
            try:
                if begin < due.get(ladder, begin):
                    self._beat(ladder)
                    continue
                stepped = self.step(ladder)
            except EvenmatchError as error:  # of this ladder: the others go on
                self._failed[ladder] = self._failed.get(ladder, 0) + 1
                wait = _back_off(self._failed[ladder])
                logger.warning("ladder %r makes matches again in %.1f s: %s", ladder, wait, error)
                due[ladder] = begin + wait
                continue
            self._failed.pop(ladder, None)
            due[ladder] = begin + (min(tick, POLL) if stepped is None else tick)
        soonest = min((due.get(ladder, 0.0) for ladder in ticks), default=time.monotonic() + POLL)
        return min(max(soonest - time.monotonic(), 0.005), POLL)

    def _ticks(self) -> dict[str, float]:
        """The ladders that have queues, and the seconds between two of their ticks."""
        database = self.desk.service.database
        with database.read() as connection:
            return queue_rules.ticks(Store(connection, database.rows))

    def _foretold(self, ladder: str, levels: Levels, sizes: set[int], at: int) -> dict[int, Odds | None]:
        """The odds of the ladder's system by team size, made anew when its rules change."""
        key = (levels.view.head.generation, levels.view.head.corrected, frozenset(sizes))
        known = self._odds.get(ladder)
        if known is None or known[0] != key:
            known = key, {size: foretell(levels, size, at) for size in sorted(sizes)}
            self._odds[ladder] = known
        return known[1]

    def _prune(self, ladder: str, number: int, now: int) -> None:
        """Forget tickets and offers that were over long ago, some at a time."""
        if time.monotonic() - self._pruned.get(ladder, -PRUNE) < PRUNE:
            return
        self._pruned[ladder] = time.monotonic()
        database = self.desk.service.database
        with database.write() as connection:
            tickets.prune(Store(connection, database.rows), number, now - KEPT)

    def _release(self) -> None:
        for ladder in list(self._since):
            try:
                self.leases.release(lease_of(self.desk.mirror(ladder).ladder))
            except EvenmatchError as error:
                logger.warning("the lease of ladder %r runs out by itself: %s", ladder, error)
        self._since.clear()


def _back_off(failed: int) -> float:
    return min(0.25 * float(2 ** min(failed, 10)), BACK_OFF)


def _loading() -> threading.Event:
    """Set once the kernels of the matchmaker are loaded, which another thread does."""
    loaded = threading.Event()

    def load() -> None:
        load_matchmaker()
        loaded.set()

    threading.Thread(target=load, name="evenmatch-loading", daemon=True).start()
    return loaded
