"""A copy of an SQLite database as of one moment, while others use it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database


def copy_to(database: Database, file: Path, shown: Path) -> None:
    """Copy an SQLite database into a new, single file. shown: the file's name in messages. Raises StoreError."""
    with closing(sqlite3.connect(file, isolation_level=None)) as target:
        with database.read() as store:
            source = store.connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            store.connection.exec_driver_sql(
                "SELECT COUNT(*) FROM ladder"
            )  # starts the read snapshot of the transaction
            try:
                source.backup(target)
            except sqlite3.Error as error:
                raise StoreError(f"{shown}: the copy could not be written: {error}") from error
        target.execute("PRAGMA journal_mode=DELETE")
