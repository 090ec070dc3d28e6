"""A small write to the database, by which a full disk, a read-only file or a missing primary is noticed."""

from __future__ import annotations

from collections.abc import Callable

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.disk_room import check_room
from evenmatch.ledger.tables import leases

ROW = "write-test"


def write_test(database: Database, clock: Callable[[], int]) -> None:
    """Commit one row durably. Raises StoreError if the database, or its disk, does not take it."""
    with database.write() as store:
        leases.write_test(store, ROW, clock())
        check_room(database, store)


def read_test(database: Database) -> None:
    """Read from the database, which may be a standby. Raises StoreError if it does not answer."""
    database.time()


def public_reason(database: Database, error: StoreError) -> str:
    """The reason of a failed write test without names of files and servers, for callers who are not known."""
    return str(error).removeprefix(f"{database.shown}: ").split(" (", 1)[0].split(";", 1)[0]
