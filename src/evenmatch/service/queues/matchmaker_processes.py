"""How the ladders are shared among the matchmakers of several processes: the same number for each.

Each process that runs a matchmaker renews a lease of its own, which shows that it lives. It holds the leases of its
share of the ladders at most, and releases those above, for instance when another process has started. Whether matches
are valid does not depend on it: see matchmaker.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from evenmatch.service.queues.leases import POLL, Leases

MATCHMAKER = "matchmaker "  # how the names of all leases here begin
PROCESS = f"{MATCHMAKER}process "
FORGET = 60.0  # seconds without a heartbeat until the lease of another process is deleted


class MatchmakerProcesses:
    """The processes that run matchmakers over one database, as this one sees them. For one thread.

    leases  of this process
    """

    def __init__(self, leases: Leases, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases, self._clock = leases, clock
        self._name = f"{PROCESS}{leases.owner}"
        self._looked: float | None = None
        self._living = 0  # other processes
        self._joined = False

    def share(self, ladders: int) -> int:
        """How many of this number of ladders the process may hold: as many as any other process, rounded up."""
        return -(-ladders // (self._living + 1))

    def join(self) -> None:
        """Show the others that this process lives, and watch them. Raises StoreError."""
        self._joined = self._leases.hold(self._name) or self._joined
        self.watch()

    def watch(self) -> None:
        """Read all leases of matchmakers at once, so that one which expires is noticed. Raises StoreError."""
        now = self._clock()
        if self._looked is not None and now - self._looked < POLL / 2:
            return
        read = self._leases.watch_all(MATCHMAKER)
        self._looked = now
        others = {name: lease for name, lease in read.items() if name.startswith(PROCESS) and name != self._name}
        self._living = sum(self._leases.is_alive(lease) for lease in others.values())
        for name, lease in others.items():
            if lease.looked - lease.since >= FORGET:
                self._leases.delete(name, lease)

    def leave(self) -> None:
        """Leave the ladders to the others at once. Raises StoreError."""
        if self._joined:
            self._leases.delete(self._name, self._leases.watch(self._name))
            self._joined = False
