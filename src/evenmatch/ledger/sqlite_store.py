"""Statements of SQLite: small ones are cheap, and one transaction writes at a time."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import chain, repeat

import numpy as np
import sqlalchemy as sa

from evenmatch.ledger.codec import name_digest
from evenmatch.ledger.store import Row, Statement, Store, Values, conflict
from evenmatch.ledger.text import fold

SIZES = (64, 8, 1)  # rows per statement; larger batches are slower


class SqliteStore(Store):
    """SQLite: small statements are cheap, and there is only one writing transaction at a time."""

    shorten_idle_limit = "NULL"  # there is no server

    def insert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Use prepared statements with several rows each."""
        self._insert(table, columns, rows, "")

    def upsert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, same: bool = False) -> None:
        """Use ON CONFLICT."""
        self._insert(table, columns, rows, conflict(table, tuple(columns), same))

    def update(self, table: sa.Table, key: Sequence[str], columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Run a prepared statement for each row."""
        driver = self.driver
        statement, keys = _sqlite_update(table.name, tuple(key), tuple(columns)), len(key)
        driver.executemany(statement, [(*row[keys:], *row[:keys]) for row in rows])

    def insert_columns(
        self, table: sa.Table, same: Mapping[str, object], columns: Mapping[str, Values], *, replacing: bool = False
    ) -> None:
        """Make rows of the columns."""
        lists = [values.tolist() if isinstance(values, np.ndarray) else values for values in columns.values()]
        rows = list(zip(*(repeat(value, len(lists[0])) for value in same.values()), *lists, strict=True))
        write = self.upsert if replacing else self.insert
        write(table, [*same, *columns], rows)

    def _insert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], then: str) -> None:
        """Insert several rows per statement, which takes half the time and releases the GIL less often.

        Only a few batch sizes are used, so that their statements stay prepared.
        """
        driver = self.driver
        first = 0
        for size, statement in _sqlite_inserts(table.name, tuple(columns), then):
            while len(rows) - first >= size:
                driver.execute(statement, tuple(chain.from_iterable(rows[first : first + size])))
                first += size

    def among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> list[Row]:
        """Send the values as one JSON array."""
        if not values:
            return []
        return self.all(sql.format("SELECT value FROM json_each(?)"), *first, json.dumps(list(values)))

    def run_among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> None:
        """Send the values as one JSON array."""
        if values:
            self.run(sql.format("SELECT value FROM json_each(?)"), *first, json.dumps(list(values)))

    def by_key(self, sql: str, first: Sequence[object], values: Sequence[str]) -> Statement:
        """The statement of `among`."""
        return sql.format("SELECT value FROM json_each(?)"), (*first, json.dumps(list(values)))

    def each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements in order."""
        return [self.all(sql, *values) for sql, values in statements]

    def create_players(self, names: Sequence[str]) -> dict[str, int]:
        """Assign the ids here: there is only one writing transaction at a time."""
        last: int = self.all("SELECT COALESCE(MAX(player), 0) FROM player")[0][0]
        created = {name: last + offset for offset, name in enumerate(names, 1)}
        folded = [(player, name, fold(name)) for name, player in created.items()]
        rows = [(name, player, name_digest(name) + player) for name, player in created.items()]
        self.connection.exec_driver_sql("INSERT INTO player (player, name, folded) VALUES (?, ?, ?)", folded)
        self.connection.exec_driver_sql("INSERT INTO name (name, player, checksum) VALUES (?, ?, ?)", rows)
        return created

    def lock_ladder(self, ladder: str, begin: Sequence[str], sql: str, *values: object) -> list[Row]:
        """Lock nothing: BEGIN IMMEDIATE has locked the database."""
        return self.all(sql, *values)

    def hold(self, lock: int) -> None:
        """Lock nothing: BEGIN IMMEDIATE has locked the database."""

    def share(self, lock: int) -> None:
        """Lock nothing: BEGIN IMMEDIATE has locked the database."""

    def together(self, most: int) -> AbstractContextManager[object]:
        """Do nothing: SQLite has no network round trips."""
        return nullcontext()

    def all(self, sql: str, *values: object) -> list[Row]:
        """Run the SELECT on the driver directly."""
        rows: list[Row] = self.driver.execute(sql, values).fetchall()
        return rows

    def stream(self, sql: str, *values: object, at_once: int) -> Generator[Row, None, None]:
        """Read the rows as SQLite finds them."""
        yield from self.driver.execute(sql, values)

    def run(self, sql: str, *values: object) -> None:
        """Run the statement on the driver directly."""
        self.connection.exec_driver_sql(sql, values)


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
