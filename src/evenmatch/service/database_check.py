"""Checks of the database's files: on request, and by a served SQLite database once a day."""

from __future__ import annotations

import logging
import threading
import time

from evenmatch.durations import DAY
from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.database_check import DatabaseCheck, check_database
from evenmatch.service.queues.leases import Leases

__all__ = ("DailyCheck", "DatabaseCheck", "check_database")

EVERY = 60.0  # seconds
LEASE = "database-check"

log = logging.getLogger(__name__)


class DailyCheck:
    """Checks the pages of a served SQLite file once a day; each finding is an error in the log.

    The stored time of the lease says when a process last began, so that several processes share one check a day.
    PostgreSQL has its own checksums and tools, and is not checked.

    every     seconds between two looks of the worker at the time
    findings  the number of findings of the last check of this process; None: there was none yet
    """

    def __init__(self, database: Database, leases: Leases, every: float = EVERY) -> None:
        self._database, self._leases, self._every = database, leases, every
        self.findings: int | None = None

    def step(self, now: int) -> DatabaseCheck | None:
        """Check the file if the last check began a day ago or more, at `now` in microseconds; None: it did not."""
        if self._database.url.get_backend_name() != "sqlite":
            return None
        held_at = self._leases.watch(LEASE).held_at
        if (held_at is not None and now - held_at < DAY) or not self._leases.hold(LEASE):
            return None
        begin = time.perf_counter()
        check = check_database(self._database, quick=True)
        self.findings = len(check.damage)
        for line in check.damage:
            log.error("the database is damaged; restore a backup: %s", line)
        if not check.damage:
            log.info("the pages of the database were checked in %.1f s, all are whole", time.perf_counter() - begin)
        return check

    def run(self, stop: threading.Event) -> None:
        """Check when it is due until `stop` is set."""
        while not stop.wait(self._every):
            try:
                self.step(time.time_ns() // 1000)
            except StoreError as error:
                log.warning("the database's pages were not checked, which will be tried again: %s", error)
