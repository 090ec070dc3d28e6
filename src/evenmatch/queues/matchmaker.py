"""The matchmaker of all ladders, shared among processes. The process with a ladder's lease makes its matches.

One process matches all queues of a ladder in one tick, because a ticket may wait in several of them, and every change
is written under the ladder's change lock. A second process would only wait for the first, or do its work twice. Each
process renews a lease of its own and holds at most its share of the ladders' leases. It releases the rest, for instance
when another process starts. The validity of matches does not depend on leases.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from evenmatch.durations import DAY, SECOND
from evenmatch.errors import EvenmatchError
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.leases import POLL, Leases
from evenmatch.queues.parties import JoinProfiles, Level
from evenmatch.queues.queue_service import QueueService, lease_of
from evenmatch.queues.state import QueueState
from evenmatch.queues.tick import MatchmakerTick, TickCounts

MATCHMAKER = "matchmaker "  # prefix of the names of all matchmakers' leases
PROCESS = f"{MATCHMAKER}process "
DELETE_AFTER = 60.0  # seconds without a heartbeat after which the lease of another process is deleted


class MatchmakerProcesses:
    """The processes that run matchmakers over one database, as this one sees them. Not thread-safe.

    leases  of this process
    """

    def __init__(self, leases: Leases, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases, self._clock = leases, clock
        self._name = f"{PROCESS}{leases.owner}"
        self._looked: float | None = None
        self._living = 0  # other processes
        self._joined = False

    def share(self, ladders: int) -> int:
        """How many of this number of ladders the process may hold: an equal share, rounded up."""
        return -(-ladders // (self._living + 1))

    def join(self) -> None:
        """Renew this process's own lease, and watch the others. Raises StoreError."""
        self._joined = self._leases.hold(self._name) or self._joined
        self.watch()

    def watch(self) -> None:
        """Read all leases of matchmakers in one statement, to notice expired ones. Raises StoreError."""
        now = self._clock()
        if self._looked is not None and now - self._looked < POLL / 2:
            return
        read = self._leases.watch_all(MATCHMAKER)
        self._looked = now
        others = {name: lease for name, lease in read.items() if name.startswith(PROCESS) and name != self._name}
        self._living = sum(self._leases.is_alive(lease) for lease in others.values())
        for name, lease in others.items():
            if lease.looked - lease.since >= DELETE_AFTER:
                self._leases.delete(name, lease)

    def leave(self) -> None:
        """Leave the ladders to the others immediately. Raises StoreError."""
        if self._joined:
            self._leases.delete(self._name, self._leases.watch(self._name))
            self._joined = False


FOLLOW_EVERY = 5.0  # seconds between updates of a ladder whose matchmaker runs in another process
PRUNE_EVERY = 60.0  # seconds between deletions of old tickets and offers
STORED_FOR = DAY  # microseconds for which old tickets and offers are stored
BACK_OFF_AT_MOST = 10.0  # seconds between attempts while the database fails
PAUSE = 5 * SECOND  # microseconds; a longer time without a matchmaker does not count as waiting

logger = logging.getLogger(__name__)


class Matchmaker:
    """Makes the matches on the ladders of a queue service. Runs in one thread of any number of processes.

    Correctness does not depend on the lease. Each tick checks its decisions again under the ladder's change lock.

    leases  None: the leases of the queue service
    """

    def __init__(self, queue_service: QueueService, leases: Leases | None = None) -> None:
        self.queue_service = queue_service
        self.leases = queue_service.leases if leases is None else leases
        self._processes = MatchmakerProcesses(self.leases)
        self._share: int | None = None  # number of ladders that this process may hold; None: all
        self._since: dict[str, int] = {}  # by held ladder: since when it is held and heartbeats could be written
        self._pruned: dict[str, float] = {}
        self._followed: dict[str, float] = {}
        self._failed: dict[str, int] = {}  # by ladder: failed steps in a row

    def step(self, ladder: str, now: int | None = None) -> TickCounts | None:
        """Run one tick of a ladder at a time in microseconds. Returns None if another process holds its lease.

        Raises StoreError; the next step then catches up. An outage does not count as time without a heartbeat, because
        none could be written.
        """
        begin, had_failed = time.monotonic(), ladder in self._failed
        queue_state = self.queue_service.queue_state(ladder)
        lease = lease_of(queue_state.ladder)
        before = self.leases.watch(lease)
        if not self._may_hold(ladder) or not self.leases.hold(lease):
            self._since.pop(ladder, None)
            self._follow(ladder, queue_state)
            return None
        tick_time = self.queue_service.service.clock() if now is None else now
        if before.owner != self.leases.owner:
            self._skip_pause(queue_state.ladder, before.held_at, tick_time)
        if had_failed or _is_long(begin):
            self._since[ladder] = tick_time
        since = self._since.setdefault(ladder, tick_time)
        with queue_state.lock:
            stepped = MatchmakerTick(self.queue_service, ladder, queue_state, tick_time, since).run(
                self._catch_up(ladder, queue_state, tick_time)
            )
        if _is_long(begin):
            self._since[ladder] = self.queue_service.service.clock()
        self._prune(ladder, queue_state.ladder, tick_time)
        return stepped

    def _may_hold(self, ladder: str) -> bool:
        return ladder in self._since or self._share is None or len(self._since) < self._share

    def _skip_pause(self, number: int, held_at: int | None, now: int) -> None:
        """Subtract the time without a matchmaker from the waits. held_at: when one last ran; None: never."""
        if held_at is not None and now - held_at < PAUSE:
            return
        database = self.queue_service.service.database
        with database.write() as store:
            queue_sql.postpone_tickets(store, number, held_at, now, reserve_changes(store, number, 1))

    def _catch_up(self, ladder: str, queue_state: QueueState, now: int) -> JoinProfiles:
        """Update the queue state from the database, including the levels of waiting players."""
        levels = self.queue_service.levels.of(ladder)
        queue_state.catch_up(now)
        queue_state.odds.begin_tick(now)
        database, head = self.queue_service.service.database, levels.view.head

        def read_levels(players: Sequence[int]) -> Mapping[int, Level]:
            with database.read() as store:
                return levels.of(store, players, now)

        queue_state.set_levels((head.generation, head.corrected), read_levels, now)
        return levels

    def _follow(self, ladder: str, queue_state: QueueState) -> None:
        """Update the queue state now and then, to be ready to take over."""
        if time.monotonic() - self._followed.get(ladder, -FOLLOW_EVERY) >= FOLLOW_EVERY:
            self._followed[ladder] = time.monotonic()
            self._catch_up(ladder, queue_state, self.queue_service.service.clock())

    def run(self, stop: threading.Event) -> None:
        """Step all ladders with queues, each at its own interval, until `stop` is set. Then release their leases."""
        due: dict[str, float] = {}
        self._wait_for_kernels(stop)
        failed = 0
        try:
            while not stop.is_set():
                try:
                    ticks = self._ticks()
                    self._keep_to_share(ticks)
                    wait = self._step_due(ticks, due, stop)
                    failed = 0
                except EvenmatchError as error:
                    failed += 1
                    wait = _back_off(failed)
                    logger.warning("the matchmaker failed and will try again in %.1f s: %s", wait, error)
                stop.wait(wait)
        finally:
            self._release()

    def _wait_for_kernels(self, stop: threading.Event) -> None:
        """Wait until the kernels are loaded. Read the leases in the meantime, to notice expired ones early."""
        loaded = self.queue_service.loaded
        while loaded is not None and not loaded.wait(POLL) and not stop.is_set():
            try:
                self._processes.watch()
            except EvenmatchError as error:
                logger.warning("the matchmaker could not read its leases and will try again in %.1f s: %s", POLL, error)

    def _keep_to_share(self, ticks: Mapping[str, float]) -> None:
        """Release the leases beyond this process's share, and those of ladders without queues."""
        if len(ticks) > 1:  # one ladder cannot be shared
            self._processes.join()
        self._share = self._processes.share(len(ticks))
        kept = [ladder for ladder in self._since if ladder in ticks][: self._share]
        for ladder in self._since.keys() - set(kept):
            self.leases.release(lease_of(self.queue_service.queue_state(ladder).ladder))
            del self._since[ladder]

    def _renew_lease(self, ladder: str) -> None:
        """Renew a ladder's lease between two ticks."""
        if ladder in self._since and not self.leases.hold(lease_of(self.queue_service.queue_state(ladder).ladder)):
            self._since.pop(ladder)

    def _step_due(self, ticks: dict[str, float], due: dict[str, float], stop: threading.Event) -> float:
        """Step the ladders that are due. Returns the seconds until the next one is."""
        for ladder, tick in ticks.items():
            if stop.is_set():
                break
            begin = time.monotonic()
            try:
                if len(ticks) > 1:
                    self._processes.join()
                if begin < due.get(ladder, begin):
                    self._renew_lease(ladder)
                    continue
                stepped = self.step(ladder)
            except EvenmatchError as error:  # affects only this ladder
                self._failed[ladder] = self._failed.get(ladder, 0) + 1
                wait = _back_off(self._failed[ladder])
                logger.warning(
                    "matchmaking on ladder %r failed and will be tried again in %.1f s: %s", ladder, wait, error
                )
                due[ladder] = begin + wait
                continue
            self._failed.pop(ladder, None)
            due[ladder] = begin + (min(tick, POLL) if stepped is None else tick)
        soonest = min((due.get(ladder, 0.0) for ladder in ticks), default=time.monotonic() + POLL)
        return min(max(soonest - time.monotonic(), 0.005), POLL)

    def _ticks(self) -> dict[str, float]:
        """The seconds between ticks of each ladder with queues, by name."""
        database = self.queue_service.service.database
        with database.read() as store:
            return stored_queues.ticks(store)

    def _prune(self, ladder: str, number: int, now: int) -> None:
        """Delete some old tickets and offers, once every PRUNE_EVERY seconds."""
        if time.monotonic() - self._pruned.get(ladder, -PRUNE_EVERY) < PRUNE_EVERY:
            return
        self._pruned[ladder] = time.monotonic()
        database = self.queue_service.service.database
        with database.write() as store:
            queue_sql.delete_tickets_before(store, number, now - STORED_FOR)
            queue_sql.delete_offers_before(store, number, now - STORED_FOR)

    def _release(self) -> None:
        for ladder in list(self._since):
            try:
                self.leases.release(lease_of(self.queue_service.queue_state(ladder).ladder))
            except EvenmatchError as error:
                logger.warning("the lease of ladder %r could not be released and will expire: %s", ladder, error)
        self._since.clear()
        try:
            self._processes.leave()
        except EvenmatchError as error:
            logger.warning("the other matchmakers will take some seconds to notice that this one has ended: %s", error)


def _is_long(begin: float) -> bool:
    """Whether more time has passed since `begin` (monotonic) than a working database takes."""
    return (time.monotonic() - begin) * SECOND > PAUSE


def _back_off(failed: int) -> float:
    return min(0.25 * float(2 ** min(failed, 10)), BACK_OFF_AT_MOST)
