"""Which of the processes over one database records a ladder, so that reports are committed together.

Every process has a row in the database with a heartbeat, and reads those of all others with it. Each computes from the
same list which one records which ladder, without another row or lock. Lists differ for a second when a process comes or
goes. Nothing rests on it: two processes that record one ladder take turns under the lock of the ladder's row.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import leases

BEAT = 1.0  # seconds between two heartbeats
PATIENCE = 3.5  # seconds without a heartbeat after which a process gets no more reports
FORGOTTEN = 60.0  # seconds without a heartbeat after which a process's row is deleted
PREFIX = "recorder "  # of the names of the rows, which are in table `lease`

log = logging.getLogger(__name__)


class Fellow(NamedTuple):
    """A process that records, and how others reach it.

    kind     two processes with the same one record a report alike: version, kernels, limits
    machine  processes with the same one see the same Unix sockets;  socket  the path of its own
    host, port  where processes of other machines reach it; None, 0: they do not
    """

    process: str
    kind: str
    machine: str
    socket: str
    host: str | None = None
    port: int = 0

    def can_reach(self, other: Fellow) -> bool:
        """Whether each of the two can hand reports to the other."""
        near = self.machine == other.machine
        return self.kind == other.kind and (near or (self.host is not None and other.host is not None))


class _Seen(NamedTuple):
    """A row as last read. since: when this heartbeat was first read, on the monotonic clock."""

    owner: str
    beat: int
    since: float


class FellowProcesses:
    """The processes that record, as one of them sees them. Thread-safe.

    own    this process;  wall  returns microseconds since the epoch, which are stored for people
    """

    def __init__(
        self,
        database: Database,
        own: Fellow,
        wall: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.own = own
        self._database, self._wall, self._clock = database, wall, clock
        self._seen: dict[str, _Seen] = {}
        self._alive: tuple[Fellow, ...] = ()
        self._read_at = -PATIENCE
        self._chosen: dict[str, Fellow] = {}

    def recorder_of(self, ladder: str) -> Fellow | None:
        """The other process that records this ladder; None: this one does, or no other one is known to live."""
        alive = self._alive
        if len(alive) < 2 or self._clock() - self._read_at > PATIENCE:
            return None
        chosen = self._chosen.get(ladder)
        if chosen is None:  # by rendezvous hashing: when one comes or goes, few ladders change their process
            chosen = self._chosen[ladder] = max(alive, key=lambda fellow: _weight(fellow, ladder))
        return None if chosen == self.own else chosen

    def is_alive(self, fellow: Fellow) -> bool:
        """Whether the heartbeat of a process was read lately."""
        return fellow in self._alive and self._clock() - self._read_at <= PATIENCE

    def attend(self) -> None:
        """Write the own heartbeat and read those of the others. Raises StoreError."""
        with self._database.write(durable=False) as store:
            leases.attend(store, PREFIX + self.own.process, json.dumps(self.own), self._wall())
            rows = [(name, lease.owner, lease.beat) for name, lease in leases.read_all(store, PREFIX).items()]
            for name in self._note(rows):
                leases.remove(store, name)

    def leave(self) -> None:
        """Delete the own row, so that the others do not wait for its heartbeat."""
        self._alive = ()
        with self._database.write(durable=False) as store:
            leases.remove(store, PREFIX + self.own.process)

    def run(self, stop: threading.Event, is_ready: Callable[[], bool], is_leaving: Callable[[], bool]) -> None:
        """Take part until `stop` is set, from when `is_ready` until `is_leaving`."""
        failing = False
        while not (stop.is_set() or is_leaving()):
            if is_ready():
                try:
                    self.attend()
                    failing = False
                except StoreError as error:
                    if not failing:
                        log.warning("reports are not handed over: %s", error)
                    failing = True
            self._wait(stop, is_leaving)
        with suppress(StoreError):
            self.leave()

    @staticmethod
    def _wait(stop: threading.Event, is_leaving: Callable[[], bool]) -> None:
        for _ in range(4):
            if is_leaving() or stop.wait(BEAT / 4):
                return

    def _note(self, rows: list[tuple[str, str, int]]) -> list[str]:
        """Keep what was read; return the names of rows without an owner."""
        now = self._clock()
        seen: dict[str, _Seen] = {}
        for name, owner, beat in rows:
            known = self._seen.get(name)
            since = known.since if known is not None and known[:2] == (owner, beat) else now
            seen[name] = _Seen(owner, beat, since)
        self._seen = seen
        alive = [_fellow(row.owner) for row in seen.values() if now - row.since < PATIENCE]
        listed = tuple(sorted(fellow for fellow in alive if fellow is not None and self.own.can_reach(fellow)))
        if listed != self._alive:
            self._chosen = {}
            self._alive = listed
        self._read_at = now
        return [name for name, row in seen.items() if now - row.since > FORGOTTEN]


def machine() -> str:
    """A text that processes share which see the same files under the same account since the machine was started."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    root = os.stat("/")
    parts = (boot.read_text() if boot.exists() else os.uname().nodename, root.st_dev, root.st_ino, os.getuid())
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _fellow(owner: str) -> Fellow | None:
    """A process by its row; None if another version wrote it in another form."""
    try:
        process, kind, machine, socket, host, port = json.loads(owner)
        return Fellow(str(process), str(kind), str(machine), str(socket), host, int(port))
    except (ValueError, TypeError):
        return None


def _weight(fellow: Fellow, ladder: str) -> bytes:
    return hashlib.blake2b(f"{fellow.process} {ladder}".encode(errors="surrogatepass"), digest_size=8).digest()
