"""Heartbeats of tickets: noted in memory by the requests of a process, and written together now and then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from evenmatch.errors import EvenmatchError, StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import change_locks, tickets
from evenmatch.service.queues.ticket_status import Status

EVERY = 5.0  # seconds between two writes
GRACE = EVERY + 1  # seconds after which a heartbeat that was given in time is written

logger = logging.getLogger(__name__)


class Heartbeats:
    """The heartbeats that requests to this process gave since the last write. Thread-safe."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._noted: dict[str, set[int]] = {}  # tickets by ladder
        self._guard = threading.Lock()

    def note(self, ladder: str, status: Status) -> None:
        """Note that the party of a ticket is there, on all ladders where it waits."""
        if status.waited is None:
            return
        with self._guard:
            self._noted.setdefault(ladder, set()).add(status.ticket)
            for entry in status.playlist:
                self._noted.setdefault(entry.ladder, set()).add(entry.ticket)

    def write(self) -> None:
        """Write the heartbeats noted since the last call, with the present time.

        Raises StoreError if a ladder cannot be written; its heartbeats are written by the next call.
        """
        with self._guard:
            noted, self._noted = self._noted, {}
        failure: StoreError | None = None
        for ladder, numbers in noted.items():
            try:
                with self._database.write() as store:
                    number = store.head(ladder).ladder
                    change_locks.lock(store, number)
                    tickets.set_seen(store, number, sorted(numbers), self._clock())
            except StoreError as error:
                failure = error
                with self._guard:
                    self._noted.setdefault(ladder, set()).update(numbers)
        if failure is not None:
            raise failure

    def run(self, stop: threading.Event) -> None:
        """Write every five seconds until `stop` is set, and once more then.

        Every process that answers requests must do so, whether or not it runs matchmakers.
        """
        is_last = False
        while not is_last:
            is_last = stop.wait(EVERY)
            try:
                self.write()
            except EvenmatchError as error:
                logger.warning("heartbeats of tickets cannot be written: %s", error)
