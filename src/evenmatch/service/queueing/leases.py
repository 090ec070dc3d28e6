"""Leases: which process does what only one may do at a time. A holder whose heartbeat stops loses its lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store

BEAT = 0.75  # seconds between two heartbeats of a holder
POLL = 0.4  # seconds between two looks at another's

_TAKE = (
    "INSERT INTO lease (name, owner, beat, held_at) VALUES (?, ?, 1, ?) ON CONFLICT (name) DO UPDATE SET "
    "owner = excluded.owner, beat = lease.beat + 1, held_at = excluded.held_at "
    "WHERE lease.owner = ? AND lease.beat = ? RETURNING beat"
)


class Lease(NamedTuple):
    """A lease as this process last saw it.

    owner    NOBODY where it was let go, or never held
    held_at  microseconds since the epoch of the last heartbeat; None: never held
    since    when this heartbeat was first seen, on the own monotonic clock;  looked  when last
    """

    owner: str
    beat: int
    held_at: int | None
    since: float
    looked: float


NOBODY = ""


class Leases:
    """The leases that one process holds or waits for. Safe to share between threads.

    Processes never compare clocks to decide who holds a lease: each measures on its own how long a heartbeat stands
    still. A holder that was suspended for longer than `patience` may believe for a moment that it still holds the
    lease, so what it writes must be safe anyhow.

    owner     identifies this process
    patience  seconds without a heartbeat after which a holder counts as gone
    wall      microseconds since the epoch, noted with each heartbeat
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
        """Whether this process holds the lease now: renews its own, or takes a lapsed one. Raises StoreError."""
        with self._guard:
            now, known = self._clock(), self._latest(name)
            if known.owner == self.owner:
                return now - known.looked < BEAT or self._take(name, now, known)
            return not self._is_alive(known, now) and self._take(name, now, known)

    def watch(self, name: str) -> Lease:
        """The lease, at most POLL seconds old, without taking it. Raises StoreError."""
        with self._guard:
            return self._latest(name)

    def is_held(self, name: str) -> bool:
        """Whether any process holds the lease. Raises StoreError."""
        return self._is_alive(self.watch(name), self._clock())

    def release(self, name: str) -> None:
        """Let go of a lease, so that another takes it at once."""
        with self._guard:
            self._seen.pop(name, None)
            with self._database.write() as connection:
                store = Store(connection, self._database.rows)
                store.run("UPDATE lease SET owner = ? WHERE name = ? AND owner = ?", NOBODY, name, self.owner)

    def _is_alive(self, lease: Lease, now: float) -> bool:
        return lease.owner != NOBODY and now - lease.since < self.patience

    def _latest(self, name: str) -> Lease:
        """An own lease as it is, and another's read again where POLL has passed."""
        now, seen = self._clock(), self._seen.get(name)
        if seen is None or (seen.owner != self.owner and now - seen.looked >= POLL):
            seen = self._seen[name] = self._look(name, now, seen)
        return seen

    def _look(self, name: str, now: float, seen: Lease | None) -> Lease:
        """The lease as the database has it now."""
        with self._database.read() as connection:
            found = Store(connection, self._database.rows).all(
                "SELECT owner, beat, held_at FROM lease WHERE name = ?", name
            )
        owner, beat, held_at = found[0] if found else (NOBODY, 0, None)
        same = seen is not None and (seen.owner, seen.beat) == (owner, beat)
        return Lease(owner, beat, held_at, seen.since if same and seen is not None else now, now)

    def _take(self, name: str, now: float, known: Lease) -> bool:
        """Count the heartbeat up, unless another process did since `known` was seen."""
        wall = self._wall()
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            taken = store.all(_TAKE, name, self.owner, wall, known.owner, known.beat)
        if taken:
            self._seen[name] = Lease(self.owner, taken[0][0], wall, now, now)
        else:
            self._seen.pop(name, None)
        return bool(taken)
