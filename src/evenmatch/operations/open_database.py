"""Open an existing database, or one to serve; check its files daily; test whether it accepts writes."""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path

from evenmatch.durations import DAY
from evenmatch.errors import StoreError, UsageError
from evenmatch.ledger.database import Database, open_follower
from evenmatch.ledger.database_check import DatabaseCheck, check_database, check_room
from evenmatch.ledger.database_url import parse_url, without_password
from evenmatch.operations.clock import DatabaseClock
from evenmatch.operations.service import Service
from evenmatch.queues import queue_sql
from evenmatch.queues.leases import Leases

__all__ = (
    "DailyCheck",
    "DatabaseCheck",
    "check_database",
    "open_existing",
    "open_served",
    "without_password",
)


def open_existing(text: str) -> Service:
    """Open the database at a path or URL. Raises UsageError for a missing SQLite file, which is not created."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise UsageError(
            f"{url.database}: there is no such database; name an existing one with --db or EVENMATCH_DB. "
            f"To create it: evenmatch ladder create NAME --system S --db {shlex.quote(text)}"
        )
    return Service.open(text)


def open_served(text: str, writes_at: str | None = None) -> Service:
    """Open the database at a path or URL to serve it; create it if it does not exist, unless it is read-only.

    writes_at  read-only: refuse writes with a FollowerError that names this address; None: accept writes
    """
    database = Database.open(text) if writes_at is None else open_follower(text, writes_at)
    return Service(database, DatabaseClock(database.time))


def is_postgresql(text: str) -> bool:
    """True if a path or URL names a PostgreSQL database, False for SQLite. Raises UsageError if it is neither."""
    return parse_url(text).get_backend_name() == "postgresql"


LOOK_EVERY = 60.0  # seconds
LEASE = "database-check"

log = logging.getLogger(__name__)


class DailyCheck:
    """Checks the pages of a served SQLite file once a day and logs each finding as an error.

    The time of the lease says when the last check began, so that all processes together run one check a day. PostgreSQL
    has its own checksums and tools, and is not checked.

    every     seconds between two checks of the time
    findings  the number of findings of this process's last check; None: no check yet
    """

    def __init__(self, database: Database, leases: Leases, every: float = LOOK_EVERY) -> None:
        self._database, self._leases, self._every = database, leases, every
        self.findings: int | None = None

    def step(self, now: int) -> DatabaseCheck | None:
        """Check the file if the last check began at least a day before `now` (microseconds); None: not due."""
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
            log.info("the pages of the database were checked in %.1f s and are intact", time.perf_counter() - begin)
        return check

    def run(self, stop: threading.Event) -> None:
        """Check when it is due until `stop` is set."""
        while not stop.wait(self._every):
            try:
                self.step(time.time_ns() // 1000)
            except StoreError as error:
                log.warning("checking the database's pages failed and will be retried: %s", error)


ROW = "write-test"


def write_test(database: Database, clock: Callable[[], int]) -> None:
    """Commit one row durably. Raises StoreError if the database or its disk does not accept it."""
    with database.write() as store:
        queue_sql.write_test_lease(store, ROW, clock())
        check_room(database, store)


def read_test(database: Database) -> None:
    """Read from the database, which may be a standby. Raises StoreError if it does not answer."""
    database.time()


def public_reason(database: Database, error: StoreError) -> str:
    """The reason for a failed write test without names of files and servers, for anonymous callers."""
    return str(error).removeprefix(f"{database.shown}: ").split(" (", 1)[0].split(";", 1)[0]
