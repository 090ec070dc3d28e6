"""Whether the disk of the database has room, which the write of a single row does not show.

SQLite reuses the pages of its log, PostgreSQL those of its tables: a row still goes in where a match does not any more.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store

LEAST = 1_000_000  # bytes
# Rows of about LEAST bytes that do not fit into the memory they may take, so that the server writes a file of them.
_ROWS = "SELECT COUNT(*) FROM generate_series(1, 75000)"


def check_room(database: Database, store: Store) -> None:
    """Raise StoreError if the disk has less than a megabyte left, for PostgreSQL the one of its temporary files."""
    if database.url.get_backend_name() == "sqlite":
        free = shutil.disk_usage(Path(database.url.database or "").resolve().parent).free
        if free < LEAST:
            raise StoreError(f"{database.shown}: the disk is full ({free:,} bytes are left); free some space")
    else:
        store.run("SET LOCAL work_mem = '64kB'")
        store.all(_ROWS)
