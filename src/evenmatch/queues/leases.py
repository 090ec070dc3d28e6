"""Leases choose one process for work that should not run twice. A holder whose heartbeat stops loses its lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.ledger.database import Database
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import NOBODY, StoredLease

BEAT = 0.75  # seconds between heartbeats of a holder
POLL = 0.4  # seconds between reads of a lease held by another process


class Lease(NamedTuple):
    """A lease as this process last read it.

    owner    NOBODY if it was released or never held
    held_at  time of the last heartbeat, microseconds since the epoch; None: never held
    since    when this heartbeat was first read, by this process's monotonic clock
    looked   when the lease was last read, by the same clock
    """

    owner: str
    beat: int
    held_at: int | None
    since: float
    looked: float


class Leases:
    """The leases that one process holds or waits for. Thread-safe.

    Processes do not compare clocks. Each measures how long a heartbeat has not changed. A holder that was suspended for
    longer than `patience` may briefly believe that it still holds the lease, so its writes must be safe without it.

    owner     identifies this process
    patience  seconds without a heartbeat after which a lease can be taken
    wall      returns microseconds since the epoch, stored with each heartbeat
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        patience: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self.owner, self.patience = owner, patience
        self._database, self._clock, self._wall = database, clock, wall
        self._seen: dict[str, Lease] = {}
        self._guard = threading.Lock()

    def hold(self, name: str) -> bool:
        """Renew or take the lease if possible, and return whether this process holds it. Raises StoreError."""
        with self._guard:
            now, known = self._clock(), self._latest(name)
            if known.owner == self.owner:
                return now - known.looked < BEAT or self._take(name, now, known)
            return not self._is_alive(known, now) and self._take(name, now, known)

    def watch(self, name: str) -> Lease:
        """The lease as read at most POLL seconds ago. Raises StoreError."""
        with self._guard:
            return self._latest(name)

    def watch_all(self, prefix: str) -> dict[str, Lease]:
        """The leases whose names begin with a prefix, by name, in one read. Raises StoreError."""
        with self._guard:
            with self._database.read() as store:
                stored_leases = queue_sql.read_leases_named(store, prefix)
            now = self._clock()
            for name, stored in stored_leases.items():
                seen = self._seen.get(name)
                if seen is None or seen.owner != self.owner:  # this process knows its own leases
                    self._seen[name] = _as_read(stored, now, seen)
            return {name: self._seen[name] for name in stored_leases}

    def is_held(self, name: str) -> bool:
        """Whether some process holds the lease. Raises StoreError."""
        return self.is_alive(self.watch(name))

    def is_alive(self, lease: Lease) -> bool:
        """Whether a lease was still held when this process last read it."""
        return self._is_alive(lease, self._clock())

    def delete(self, name: str, lease: Lease) -> None:
        """Delete a lease, unless it was renewed after it was read."""
        with self._guard:
            self._seen.pop(name, None)
            with self._database.write() as store:
                queue_sql.delete_lease(store, name, lease.beat)

    def release(self, name: str) -> None:
        """Release a lease so that another process can take it immediately."""
        with self._guard:
            self._seen.pop(name, None)
            with self._database.write() as store:
                queue_sql.release_lease(store, name, self.owner)

    def _is_alive(self, lease: Lease, now: float) -> bool:
        return lease.owner != NOBODY and now - lease.since < self.patience

    def _latest(self, name: str) -> Lease:
        """The lease from memory. A lease of another process is read again after POLL seconds."""
        now, seen = self._clock(), self._seen.get(name)
        if seen is None or (seen.owner != self.owner and now - seen.looked >= POLL):
            seen = self._seen[name] = self._read(name, now, seen)
        return seen

    def _read(self, name: str, now: float, seen: Lease | None) -> Lease:
        with self._database.read() as store:
            return _as_read(queue_sql.read_lease(store, name), now, seen)

    def _take(self, name: str, now: float, known: Lease) -> bool:
        """Increment the heartbeat and return True, unless another process has done so since `known` was read."""
        wall = self._wall()
        with self._database.write() as store:
            beat = queue_sql.take_lease(store, name, self.owner, wall, (known.owner, known.beat))
        if beat is None:
            self._seen.pop(name, None)
        else:
            self._seen[name] = Lease(self.owner, beat, wall, now, now)
        return beat is not None


def _as_read(stored: StoredLease, now: float, seen: Lease | None) -> Lease:
    """The lease just read. seen: the lease as last read before; None: never."""
    is_same = seen is not None and (seen.owner, seen.beat) == (stored.owner, stored.beat)
    return Lease(*stored, seen.since if is_same and seen is not None else now, now)
