"""Bulk statements and locks: the operations that differ between SQLite and PostgreSQL, and SQLite's versions."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import chain, repeat
from typing import Any, Protocol

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evenmatch.ledger.text import fold

Row = tuple[Any, ...]
Statement = tuple[str, tuple[object, ...]]  # SQL with `?` placeholders, and their values
Values = Sequence[object] | NDArray[Any]  # one for each row; of bytes of one length: an array of dtype V


class Rows(Protocol):
    """The operations that SQLite and PostgreSQL implement differently.

    shorten_idle_limit  an SQL expression that shortens the server's limit on idle time by the time that the statement
                        has waited for a lock, down to a sixth of the limit
    """

    shorten_idle_limit: str

    def insert(self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows with these columns."""
        ...

    def upsert(
        self,
        connection: sa.Connection,
        table: sa.Table,
        columns: Sequence[str],
        rows: Sequence[Row],
        *,
        same: bool = False,
    ) -> None:
        """Insert or replace rows by primary key; `same`: keep existing rows unchanged."""
        ...

    def update(
        self,
        connection: sa.Connection,
        table: sa.Table,
        key: Sequence[str],
        columns: Sequence[str],
        rows: Sequence[Row],
    ) -> None:
        """Set columns of existing rows; each of `rows` has the values of `key`, which find it, and of `columns`.

        No two rows have the same key.
        """
        ...

    def insert_columns(
        self,
        connection: sa.Connection,
        table: sa.Table,
        same: Mapping[str, object],
        columns: Mapping[str, Values],
        *,
        replacing: bool = False,
    ) -> None:
        """Insert rows that are given by column.

        same  columns with the same value in every row
        replacing  replace existing rows, as `upsert` does
        """
        ...

    def among(
        self, connection: sa.Connection, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]
    ) -> list[Row]:
        """Run a SELECT with `IN ({})` for `values`, after `?` placeholders for `first`.

        Returns no rows if `values` is empty.
        """
        ...

    def run_among(
        self, connection: sa.Connection, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]
    ) -> None:
        """Run a statement that returns no rows, with the placeholders of `among`; none if `values` is empty."""
        ...

    def by_key(self, sql: str, first: Sequence[object], values: Sequence[str]) -> Statement:
        """A statement like that of `among`, for one or more values that each select at most one row.

        It does an index lookup for each value.
        """
        ...

    def each(self, connection: sa.Connection, statements: Sequence[Statement]) -> list[list[Row]]:
        """The rows of each of these SELECTs, whose columns have the same types: in one round trip."""
        ...

    def enrol(self, connection: sa.Connection, names: Sequence[str]) -> dict[str, int]:
        """Create a player for each of these sorted, different names; return the ids of those created.

        None of the names had a player when this transaction looked; another writer may have created one since.
        """
        ...

    def lock(
        self, connection: sa.Connection, ladder: str, begin: Sequence[str], sql: str, *values: object
    ) -> list[Row]:
        """Lock the ladder and all names against changes by others, then run a SELECT and return its rows.

        begin  statements to be run before
        """
        ...

    def hold(self, connection: sa.Connection, lock: int) -> None:
        """Take the lock NAMES or MASTER exclusively until the transaction ends; NAMES also blocks recording."""
        ...

    def share(self, connection: sa.Connection, lock: int) -> None:
        """Take the lock MASTER shared until the transaction ends; `lock` and Database.write take NAMES so."""
        ...

    def together(self, connection: sa.Connection, most: int) -> AbstractContextManager[object]:
        """Collect the writes inside the block and execute them when it ends.

        A write may depend on earlier writes to its own table, but not on writes to other tables.
        most  the largest number of rows of one insert or upsert in the block
        """
        ...

    def all(self, connection: sa.Connection, sql: str, *values: object) -> list[Row]:
        """Run a SELECT with `?` placeholders and return its rows."""
        ...

    def stream(self, connection: sa.Connection, sql: str, *values: object, at_once: int) -> Generator[Row, None, None]:
        """Run a SELECT and yield its rows one by one; the connection can run no other statement meanwhile.

        at_once  the most rows in memory at a time
        """
        ...

    def run(self, connection: sa.Connection, sql: str, *values: object) -> None:
        """Run a statement with `?` placeholders."""
        ...


class SqliteRows:
    """SQLite: small statements are cheap, and there is only one writing transaction at a time."""

    shorten_idle_limit = "NULL"  # there is no server

    def insert(self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Use prepared statements with several rows each."""
        self._insert(connection, table, columns, rows, "")

    def upsert(
        self,
        connection: sa.Connection,
        table: sa.Table,
        columns: Sequence[str],
        rows: Sequence[Row],
        *,
        same: bool = False,
    ) -> None:
        """Use ON CONFLICT."""
        self._insert(connection, table, columns, rows, conflict(table, tuple(columns), same))

    def update(
        self,
        connection: sa.Connection,
        table: sa.Table,
        key: Sequence[str],
        columns: Sequence[str],
        rows: Sequence[Row],
    ) -> None:
        """Run a prepared statement for each row."""
        driver: Any = connection.connection.driver_connection
        statement, keys = _sqlite_update(table.name, tuple(key), tuple(columns)), len(key)
        driver.executemany(statement, [(*row[keys:], *row[:keys]) for row in rows])

    def insert_columns(
        self,
        connection: sa.Connection,
        table: sa.Table,
        same: Mapping[str, object],
        columns: Mapping[str, Values],
        *,
        replacing: bool = False,
    ) -> None:
        """Make rows of the columns."""
        lists = [values.tolist() if isinstance(values, np.ndarray) else values for values in columns.values()]
        rows = list(zip(*(repeat(value, len(lists[0])) for value in same.values()), *lists, strict=True))
        write = self.upsert if replacing else self.insert
        write(connection, table, [*same, *columns], rows)

    def _insert(
        self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], then: str
    ) -> None:
        """Insert several rows per statement, which takes half the time and releases the GIL less often.

        Only a few batch sizes are used, so that their statements stay prepared.
        """
        driver: Any = connection.connection.driver_connection
        first = 0
        for size, statement in _sqlite_inserts(table.name, tuple(columns), then):
            while len(rows) - first >= size:
                driver.execute(statement, tuple(chain.from_iterable(rows[first : first + size])))
                first += size

    def among(
        self, connection: sa.Connection, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]
    ) -> list[Row]:
        """Send the values as one JSON array."""
        if not values:
            return []
        return self.all(connection, sql.format("SELECT value FROM json_each(?)"), *first, json.dumps(list(values)))

    def run_among(
        self, connection: sa.Connection, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]
    ) -> None:
        """Send the values as one JSON array."""
        if values:
            self.run(connection, sql.format("SELECT value FROM json_each(?)"), *first, json.dumps(list(values)))

    def by_key(self, sql: str, first: Sequence[object], values: Sequence[str]) -> Statement:
        """The statement of `among`."""
        return sql.format("SELECT value FROM json_each(?)"), (*first, json.dumps(list(values)))

    def each(self, connection: sa.Connection, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run one after the other."""
        return [self.all(connection, sql, *values) for sql, values in statements]

    def enrol(self, connection: sa.Connection, names: Sequence[str]) -> dict[str, int]:
        """Assign the ids here: there is only one writing transaction at a time."""
        last: int = self.all(connection, "SELECT COALESCE(MAX(player), 0) FROM player")[0][0]
        rows = [(last + offset, name) for offset, name in enumerate(names, 1)]
        folded = [(player, name, fold(name)) for player, name in rows]
        connection.exec_driver_sql("INSERT INTO player (player, name, folded) VALUES (?, ?, ?)", folded)
        connection.exec_driver_sql("INSERT INTO name (player, name) VALUES (?, ?)", rows)
        return {name: player for player, name in rows}

    def lock(
        self, connection: sa.Connection, ladder: str, begin: Sequence[str], sql: str, *values: object
    ) -> list[Row]:
        """Lock nothing: BEGIN IMMEDIATE has locked the database."""
        return self.all(connection, sql, *values)

    def hold(self, connection: sa.Connection, lock: int) -> None:
        """Lock nothing: BEGIN IMMEDIATE has locked the database."""

    def share(self, connection: sa.Connection, lock: int) -> None:
        """Lock nothing: BEGIN IMMEDIATE has locked the database."""

    def together(self, connection: sa.Connection, most: int) -> AbstractContextManager[object]:
        """Do nothing: SQLite has no network round trips."""
        return nullcontext()

    def all(self, connection: sa.Connection, sql: str, *values: object) -> list[Row]:
        """Run the SELECT on the driver directly."""
        driver: Any = connection.connection.driver_connection
        rows: list[Row] = driver.execute(sql, values).fetchall()
        return rows

    def stream(self, connection: sa.Connection, sql: str, *values: object, at_once: int) -> Generator[Row, None, None]:
        """Read the rows as SQLite finds them."""
        driver: Any = connection.connection.driver_connection
        yield from driver.execute(sql, values)

    def run(self, connection: sa.Connection, sql: str, *values: object) -> None:
        """Run the statement on the driver directly."""
        connection.exec_driver_sql(sql, values)


SIZES = (64, 8, 1)  # rows per statement of SQLite; larger batches are slower
NAMES = 0x6E616D65  # key of the advisory lock on player names
MASTER = 0x6D617374  # key of the advisory lock on the master secret


# Statements are cached: SQLAlchemy takes longer to list the columns of a key than SQLite to insert a row.


@cache
def _sqlite_inserts(table: str, columns: tuple[str, ...], then: str) -> list[tuple[int, str]]:
    """The statement that inserts each number of rows in SIZES."""
    into, row = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ", f"({', '.join('?' * len(columns))})"
    return [(size, into + ", ".join([row] * size) + then) for size in SIZES]


@cache
def _sqlite_update(table: str, key: tuple[str, ...], columns: tuple[str, ...]) -> str:
    """The statement of `update`, with the values of `columns` before those of `key`."""
    changed, matching = (f"{name} = ?" for name in columns), (f"{name} = ?" for name in key)
    return f"UPDATE {table} SET {', '.join(changed)} WHERE {' AND '.join(matching)}"


@cache
def key_of(table: sa.Table) -> str:
    """The names of the columns of a table's primary key, separated by commas."""
    return ", ".join(column.name for column in table.primary_key)


@cache
def conflict(table: sa.Table, columns: tuple[str, ...], same: bool) -> str:
    """The ON CONFLICT clause of an upsert; `same`: keep existing rows unchanged."""
    key = [column.name for column in table.primary_key]
    changed = [column for column in columns if column not in key]
    if same or not changed:
        return f" ON CONFLICT ({key_of(table)}) DO NOTHING"
    return f" ON CONFLICT ({key_of(table)}) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in changed)}"
