"""Which process does what only one may do at a time: it counts a beat up, and is gone when the beat stands still."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store

BEAT = 0.75  # seconds between two beats of a holder
POLL = 0.4  # seconds between two looks at another's


class Beat(NamedTuple):
    """A lease as it was last seen; `since`: when this beat was first seen, `looked`: last, on the own clock."""

    owner: str
    beat: int
    since: float
    looked: float


NOBODY = ""


class Leases:
    """The leases that one process holds or waits for. Safe to share between threads.

    No two processes' clocks are compared: each counts by its own how long a beat stands still. A holder that was
    stopped for longer than `patience` may believe for a moment that it holds on, so what it writes must be safe anyhow.

    owner     names this process, as no other is named
    patience  seconds without a beat after which a holder counts as gone
    """

    def __init__(
        self, database: Database, owner: str, patience: float = 3.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.owner, self.patience = owner, patience
        self._database, self._clock = database, clock
        self._seen: dict[str, Beat] = {}
        self._guard = threading.Lock()

    def hold(self, name: str) -> bool:
        """Whether this process holds the lease now: it goes on, or takes over who is gone. Raises StoreError."""
        with self._guard:
            now, seen = self._clock(), self._seen.get(name)
            if seen is not None and now - seen.looked < (BEAT if seen.owner == self.owner else POLL):
                return seen.owner == self.owner
            known = seen if seen is not None and seen.owner == self.owner else self._look(name, now, seen)
            if known.owner not in (self.owner, NOBODY) and now - known.since < self.patience:
                self._seen[name] = known
                return False
            return self._take(name, now, known)

    def watch(self, name: str) -> None:
        """Note the beat of whoever holds a lease, and take nothing: for who will be ready soon. Raises StoreError."""
        with self._guard:
            now, seen = self._clock(), self._seen.get(name)
            if seen is None or (seen.owner != self.owner and now - seen.looked >= POLL):
                self._seen[name] = self._look(name, now, seen)

    def release(self, name: str) -> None:
        """Let go of a lease, so that another takes it at once."""
        with self._guard:
            self._seen.pop(name, None)
            with self._database.write() as connection:
                store = Store(connection, self._database.rows)
                store.run("UPDATE lease SET owner = ? WHERE name = ? AND owner = ?", NOBODY, name, self.owner)

    def _look(self, name: str, now: float, seen: Beat | None) -> Beat:
        """The lease as the database has it; made where it is not there."""
        sql = "SELECT owner, beat FROM lease WHERE name = ?"
        with self._database.read() as connection:
            found = Store(connection, self._database.rows).all(sql, name)
        if not found:
            with self._database.write() as connection:
                store = Store(connection, self._database.rows)
                row = (name, NOBODY, 0)
                store.rows.upsert(connection, live_schema.lease, ("name", "owner", "beat"), [row], same=True)
                found = store.all(sql, name)
        owner, beat = found[0]
        same = seen is not None and (seen.owner, seen.beat) == (owner, beat)
        return Beat(owner, beat, seen.since if same and seen is not None else now, now)

    def _take(self, name: str, now: float, known: Beat) -> bool:
        """Count up, unless somebody else did since."""
        sql = "UPDATE lease SET owner = ?, beat = beat + 1 WHERE name = ? AND owner = ? AND beat = ? RETURNING beat"
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            found = store.all(sql, self.owner, name, known.owner, known.beat)
        if found:
            self._seen[name] = Beat(self.owner, found[0][0], now, now)
        else:
            self._seen.pop(name, None)
        return bool(found)
