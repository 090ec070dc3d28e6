"""Copy a snapshot of an SQLite database that is in use, and check the copy."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.database_check import check_ladders
from evenmatch.ledger.schema import METADATA


class Contents(NamedTuple):
    """The contents of a database, for comparison with a copy.

    rows    number by table;  heads  (ladder, last position, its seal, seal of its last event) of every ladder
    damage  sentences about lost ladders, see check_ladders; empty for a copy
    """

    rows: dict[str, int]
    heads: list[tuple[str, int, bytes | None, bytes | None]]
    damage: tuple[str, ...] = ()


def copy_to(database: Database, file: Path, shown: Path) -> Contents:
    """Copy an SQLite database into a new, single file, and flush it to the disk. Return what the database contains.

    shown  the file's name in messages
    Raises StoreError if the copy cannot be written.
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as target:
        with database.read() as store:
            source = store.connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            contents = _contents(source)  # starts the read snapshot of the transaction
            contents = contents._replace(damage=tuple(check_ladders(store)))
            try:
                source.backup(target)
            except sqlite3.Error as error:
                raise StoreError(f"{shown}: the copy could not be written: {error}") from error
        target.execute("PRAGMA journal_mode=DELETE")
    with file.open("rb") as written:
        os.fsync(written.fileno())
        if hasattr(os, "posix_fadvise"):  # so that the copy is read from the disk and not from memory
            os.posix_fadvise(written.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return contents


def check_copy(file: Path, shown: Path, expected: Contents) -> None:
    """Read back a copy's pages, indexes, rows and heads. Raises StoreError if they differ from the original."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro&immutable=1", uri=True)) as copy:
            findings = [row[0] for row in copy.execute("PRAGMA integrity_check(5)")]
            if findings != ["ok"]:
                raise StoreError(f"{shown}: the copy is damaged: {findings[0]}")
            contents = _contents(copy)
    except sqlite3.Error as error:
        raise StoreError(f"{shown}: the copy cannot be read back: {error}") from error
    for table, rows in expected.rows.items():
        if contents.rows[table] != rows:
            raise StoreError(f"{shown}: the copy has {contents.rows[table]:,} rows of table {table}, expected {rows:,}")
    if contents.heads != expected.heads:
        raise StoreError(f"{shown}: the last events of the copy differ from those of the database")


def _contents(connection: sqlite3.Connection) -> Contents:
    rows = {table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in METADATA.tables}
    heads = connection.execute(
        "SELECT l.name, l.position, l.seal, e.seal FROM ladder l "
        "LEFT JOIN event e ON e.ladder = l.ladder AND e.position = l.position ORDER BY l.name"
    ).fetchall()
    return Contents(rows, heads)
