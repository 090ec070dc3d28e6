"""Copy the rows of a table from one database into another, and compare them, in batches of limited size.

Rows are read in the order of the primary key, so that the last key in the target shows how far the copy has got.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import sqlalchemy as sa

from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.database import Database
from evenmatch.ledger.postgres_store import ARRAYS, FLOAT8, pack
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.store import Row, Store

AT_ONCE = 200  # rows that are read together
LARGE = "checkpoint"  # the table whose rows are read one by one, because each has the states of all players
ROWS = 10_000  # rows of a batch at most
LENGTH = 8_000_000  # characters and bytes of a batch at most; a single row may be longer
Counted = Callable[[int], None]  # called with the number of rows of each batch
_version = sa.table("alembic_version", sa.column("version_num"))


class TableDigest(NamedTuple):
    """The contents of a table or a part of it: equal on both kinds of databases if all values are equal.

    digest  of all values, in hexadecimal; ignores the sign of zeros, which SQLite does not store
    """

    rows: int
    digest: str


def count_rows(store: Store, table: sa.Table) -> int:
    """The number of rows of a table."""
    count: int = store.all(f"SELECT COUNT(*) FROM {table.name}")[0][0]
    return count


def copy_rows(reading: Store, target: Database, table: sa.Table, counted: Counted) -> None:
    """Copy the rows after the last one in the target, in one transaction per batch.

    The batches are not durable at once; a later durable transaction of the target makes them durable.
    """
    columns = [column.name for column in table.columns]
    with closing(_rows_after(reading, table, _last_key(target, table))) as rows:
        for batch in _batches(table, rows):
            with target.write(durable=False, patient=True) as store:
                store.insert(table, columns, batch)
            counted(len(batch))


def digest_rows(store: Store, table: sa.Table, counted: Counted) -> TableDigest:
    """The digest of all rows of a table."""
    digest = _Digest(table)
    with closing(_rows_after(store, table, None)) as rows:
        for batch in _batches(table, rows):
            digest.add(batch)
            counted(len(batch))
    return digest.result()


class _Digest:
    """The digest of rows that are added in batches, always cut at the same rows."""

    def __init__(self, table: sa.Table) -> None:
        self._kinds = [ARRAYS[type(column.type)] for column in table.columns]
        self._total = hashlib.blake2b(", ".join(column.name for column in table.columns).encode(), digest_size=16)
        self.rows = 0

    def add(self, batch: Sequence[Row]) -> None:
        for values, kind in zip(zip(*batch, strict=True), self._kinds, strict=True):
            # SQLite stores -0.0 as 0.0
            plain = [None if value is None else value + 0.0 for value in values] if kind == FLOAT8 else values
            self._total.update(pack(plain, kind))
        self.rows += len(batch)

    def result(self) -> TableDigest:
        return TableDigest(self.rows, self._total.hexdigest())


def continue_numbers(reading: Store, writing: Store) -> None:
    """Set the sequences of the target to follow the numbers of the source.

    SQLite needs none: it numbers new rows after the highest number in the table.
    """
    for table in METADATA.tables.values() if not _is_sqlite(writing) else ():
        column = next((column for column in table.columns if column.identity is not None), None)
        if column is None:
            continue
        last: int = reading.all(f"SELECT COALESCE(MAX({column.name}), 0) FROM {table.name}")[0][0]
        if not _is_sqlite(reading):
            sequence = reading.all("SELECT pg_get_serial_sequence(?, ?)", table.name, column.name)[0][0]
            given, is_used = reading.all(f"SELECT last_value, is_called FROM {sequence}")[0]
            last = max(last, given if is_used else 0)
        if last:
            writing.all("SELECT setval(pg_get_serial_sequence(?, ?), ?::bigint)", table.name, column.name, last)


def is_empty(store: Store) -> bool:
    """True if no table has a row."""
    return not any(store.all(f"SELECT 1 FROM {table} LIMIT 1") for table in METADATA.tables)


def set_version(store: Store, version: str) -> None:
    """Store a schema version: UNFINISHED keeps every process from opening the database."""
    store.connection.execute(_version.update().values(version_num=version))


def drop_tables(store: Store) -> None:
    """Drop all tables, so that the database is empty and without a schema."""
    METADATA.drop_all(store.connection)
    store.run("DROP TABLE alembic_version")


def analyze(database: Database) -> None:
    """Make PostgreSQL collect statistics, without which it plans statements for empty tables."""
    if database.url.get_backend_name() != "sqlite":
        with database.write(patient=True) as store:
            store.run(f"ANALYZE {', '.join(METADATA.tables)}")


def _is_sqlite(store: Store) -> bool:
    return store.connection.dialect.name == "sqlite"


def _last_key(database: Database, table: sa.Table) -> Row | None:
    keys = _keys(table)
    backwards = ", ".join(f"{key} DESC" for key in keys)
    with database.read() as store:
        rows = store.all(f"SELECT {', '.join(keys)} FROM {table.name} ORDER BY {backwards} LIMIT 1")
    return rows[0] if rows else None


def _rows_after(store: Store, table: sa.Table, key: Row | None) -> Generator[Row, None, None]:
    keys = ", ".join(_keys(table))
    after = "" if key is None else f" WHERE ({keys}) > ({', '.join('?' * len(key))})"
    columns = ", ".join(column.name for column in table.columns)
    sql = f"SELECT {columns} FROM {table.name}{after} ORDER BY {keys}"
    return store.stream(sql, *(key or ()), at_once=1 if table.name == LARGE else AT_ONCE)


def _batches(table: sa.Table, rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Cut rows into batches; equal rows are cut at the same places."""
    sized = [index for index, column in enumerate(table.columns) if isinstance(column.type, sa.Text | sa.LargeBinary)]
    batch: list[Row] = []
    length = 0
    for row in rows:
        batch.append(row)
        length += sum([len(row[index]) for index in sized if row[index] is not None])
        if len(batch) == ROWS or length >= LENGTH:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def _keys(table: sa.Table) -> Sequence[str]:
    return [column.name for column in table.primary_key]
