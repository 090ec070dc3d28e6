"""A small write to the database, by which a full disk, a read-only file or a missing primary is noticed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import leases

ROW = "write-test"
LEAST = 1_000_000  # bytes: SQLite reuses its log, so a single row still goes in where a match does not any more


def write_test(database: Database, clock: Callable[[], int]) -> None:
    """Commit one row durably. Raises StoreError if the database, or its disk, does not take it."""
    with database.write() as store:
        leases.write_test(store, ROW, clock())
    if database.url.get_backend_name() == "sqlite":
        free = shutil.disk_usage(Path(database.url.database or "").resolve().parent).free
        if free < LEAST:
            raise StoreError(f"{database.shown}: the disk is full ({free:,} bytes are left); free some space")


def public_reason(database: Database, error: StoreError) -> str:
    """The reason of a failed write test without names of files and servers, for callers who are not known."""
    return str(error).removeprefix(f"{database.shown}: ").split(" (", 1)[0].split(";", 1)[0]
