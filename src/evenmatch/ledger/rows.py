"""Many rows at once: the few statements that must be fast, in each database's own way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, Protocol

import sqlalchemy as sa

from evenmatch.ledger import arrays

Row = tuple[Any, ...]


class Rows(Protocol):
    """What the two databases do differently."""

    def insert(self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Add rows of these columns."""
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
        """Add rows, in the place of those with the same key; `same`: keep what is there."""
        ...

    def among(
        self, connection: sa.Connection, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]
    ) -> list[Row]:
        """The rows of a SELECT in which `?` stands for the first values, then `{}` for a subquery giving the rest.

        The SELECT asks for rows that have one of the values: there are none where there is no value.
        """
        ...

    def enrol(self, connection: sa.Connection, names: Sequence[str]) -> None:
        """Make a player of each of these names, which are sorted, unless another writer has just done so."""
        ...

    def lock(self, connection: sa.Connection, ladder: str, sql: str, *values: object) -> list[Row]:
        """The rows of a SELECT once the ladder of this name and all names are kept from others' changes."""
        ...

    def hold_names(self, connection: sa.Connection) -> None:
        """Keep all other writers from names, and from recording under them, until the transaction ends."""
        ...

    def share_names(self, connection: sa.Connection) -> None:
        """Keep names from being changed until the transaction ends, as `lock` does; others may do so, too."""
        ...

    def together(self, connection: sa.Connection, most: int) -> AbstractContextManager[object]:
        """What is written inside the block need not be waited for one by one; it is done when the block ends.

        most  rows that any one insert or upsert inside writes
        """
        ...

    def all(self, connection: sa.Connection, sql: str, *values: object) -> list[Row]:
        """The rows of a SELECT in which `?` stands for the values."""
        ...

    def run(self, connection: sa.Connection, sql: str, *values: object) -> None:
        """A statement in which `?` stands for the values."""
        ...


class SqliteRows:
    """SQLite: many small statements are cheap, and a writing transaction is alone anyhow."""

    def insert(self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """By prepared statements for some rows each."""
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
        """By ON CONFLICT."""
        self._insert(connection, table, columns, rows, _conflict(table, columns, same))

    def _insert(
        self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], then: str
    ) -> None:
        """Some rows at a time: half the work of one by one, and the interpreter's lock is given away less often.

        Of few sizes, so that their statements stay prepared.
        """
        into, one = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ", f"({', '.join('?' * len(columns))})"
        driver: Any = connection.connection.driver_connection
        first = 0
        for size in SIZES:
            statement = into + ", ".join([one] * size) + then
            while len(rows) - first >= size:
                driver.execute(statement, tuple(chain.from_iterable(rows[first : first + size])))
                first += size

    def among(
        self, connection: sa.Connection, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]
    ) -> list[Row]:
        """The values travel as one JSON array."""
        if not values:
            return []
        return self.all(connection, sql.format("SELECT value FROM json_each(?)"), *first, json.dumps(list(values)))

    def enrol(self, connection: sa.Connection, names: Sequence[str]) -> None:
        """The writing transaction is alone, so the next ids are known."""
        last: int = self.all(connection, "SELECT COALESCE(MAX(player), 0) FROM player")[0][0]
        rows = [(last + at, name) for at, name in enumerate(names, 1)]
        folded = [(player, name, name.casefold()) for player, name in rows]
        connection.exec_driver_sql("INSERT INTO player (player, name, folded) VALUES (?, ?, ?)", folded)
        connection.exec_driver_sql("INSERT INTO name (player, name) VALUES (?, ?)", rows)

    def lock(self, connection: sa.Connection, ladder: str, sql: str, *values: object) -> list[Row]:
        """BEGIN IMMEDIATE has locked everything."""
        return self.all(connection, sql, *values)

    def hold_names(self, connection: sa.Connection) -> None:
        """BEGIN IMMEDIATE has locked everything."""

    def share_names(self, connection: sa.Connection) -> None:
        """BEGIN IMMEDIATE has locked everything."""

    def together(self, connection: sa.Connection, most: int) -> AbstractContextManager[object]:
        """Nothing is ever waited for."""
        return nullcontext()

    def all(self, connection: sa.Connection, sql: str, *values: object) -> list[Row]:
        """As they come from the driver."""
        driver: Any = connection.connection.driver_connection
        found: list[Row] = driver.execute(sql, values).fetchall()
        return found

    def run(self, connection: sa.Connection, sql: str, *values: object) -> None:
        """By the driver."""
        connection.exec_driver_sql(sql, values)


class PostgresRows:
    """PostgreSQL: rows travel as arrays, one for each column, or by COPY where there are many."""

    def insert(self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """By arrays; many by COPY, which is twice as quick then."""
        if len(rows) > AT_ONCE:
            self._copy(
                connection, f"{table.name} ({', '.join(columns)})", [table.c[column] for column in columns], rows
            )
        elif rows:
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
        """By arrays in the order of the key, and ON CONFLICT."""
        then = f" ORDER BY {', '.join(column.name for column in table.primary_key)}{_conflict(table, columns, same)}"
        for first in range(0, len(rows), AT_ONCE):
            self._insert(connection, table, columns, rows[first : first + AT_ONCE], then)

    def _insert(
        self, connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], then: str
    ) -> None:
        """By an array for each column."""
        listed, values = ", ".join(columns), ", ".join(["?"] * len(columns))
        types = [_ARRAYS[type(table.c[column].type)] for column in columns]
        self.run(
            connection,
            f"INSERT INTO {table.name} ({listed}) SELECT * FROM unnest({values}) AS new ({listed}){then}",
            *map(arrays.pack, zip(*rows, strict=True), types),
        )

    def _copy(
        self, connection: sa.Connection, into: str, columns: Sequence[sa.Column[Any]], rows: Sequence[Row]
    ) -> None:
        driver: Any = connection.connection.driver_connection
        types = [_POSTGRES_TYPES[type(column.type)] for column in columns]
        with driver.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def among(
        self, connection: sa.Connection, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]
    ) -> list[Row]:
        """The values travel as one array, and each is looked up: the planner knows nothing better to do with ANY."""
        if not values:
            return []
        kind = arrays.TEXT if isinstance(values[0], str) else arrays.INT8
        return self.all(connection, sql.replace("IN ({})", "= ANY(?)"), *first, arrays.pack(values, kind))

    def enrol(self, connection: sa.Connection, names: Sequence[str]) -> None:
        """The name decides who comes first; a player who comes second is not made."""
        self.run(
            connection,
            "WITH wanted AS (SELECT name, folded, nextval(pg_get_serial_sequence('player', 'player')) AS player "
            "FROM unnest(?::text[], ?::text[]) AS new (name, folded) ORDER BY name), "
            "made AS (INSERT INTO name (name, player) SELECT name, player FROM wanted ORDER BY name "
            "ON CONFLICT (name) DO NOTHING RETURNING name, player) "
            "INSERT INTO player (player, name, folded) OVERRIDING SYSTEM VALUE "
            "SELECT made.player, made.name, wanted.folded FROM made JOIN wanted ON wanted.name = made.name",
            list(names),
            [name.casefold() for name in names],
        )

    def lock(self, connection: sa.Connection, ladder: str, sql: str, *values: object) -> list[Row]:
        """By FOR UPDATE; names by an advisory lock, which who records shares with others. All in one round trip."""
        driver: Any = connection.connection.driver_connection
        with driver.cursor(binary=True) as cursor:
            with driver.pipeline():
                driver.execute("SELECT pg_advisory_xact_lock_shared(%b)", (NAMES,))
                driver.execute("SELECT 1 FROM ladder WHERE name = %b FOR UPDATE", (ladder,))
                cursor.execute(sql.replace("?", "%b"), values)
            found: list[Row] = cursor.fetchall()
            return found

    def hold_names(self, connection: sa.Connection) -> None:
        """By an advisory lock, which who renames or merges does not share."""
        self.run(connection, "SELECT pg_advisory_xact_lock(?)", NAMES)

    def share_names(self, connection: sa.Connection) -> None:
        """By the same advisory lock, shared."""
        self.run(connection, "SELECT pg_advisory_xact_lock_shared(?)", NAMES)

    def together(self, connection: sa.Connection, most: int) -> AbstractContextManager[object]:
        """By the pipeline mode of the protocol, in which there is no COPY."""
        if most > AT_ONCE:
            return nullcontext()
        driver: Any = connection.connection.driver_connection
        pipeline: AbstractContextManager[object] = driver.pipeline()
        return pipeline

    def all(self, connection: sa.Connection, sql: str, *values: object) -> list[Row]:
        """As they come from the driver, in its binary form."""
        driver: Any = connection.connection.driver_connection
        with driver.cursor(binary=True) as cursor:
            found: list[Row] = cursor.execute(sql.replace("?", "%b"), values).fetchall()
            return found

    def run(self, connection: sa.Connection, sql: str, *values: object) -> None:
        """By the driver."""
        driver: Any = connection.connection.driver_connection
        driver.execute(sql.replace("?", "%b"), values)


SIZES = (64, 8, 1)  # rows in a statement of SQLite; more of them are slower again
AT_ONCE = 5000  # rows whose arrays travel together
NAMES = 0x6E616D65  # the advisory lock on who has which name

_ARRAYS: dict[type, tuple[int, int]] = {
    sa.BigInteger: arrays.INT8,
    sa.Double: arrays.FLOAT8,
    sa.Text: arrays.TEXT,
    sa.LargeBinary: arrays.BYTEA,
}
_POSTGRES_TYPES: dict[type, str] = {
    sa.BigInteger: "int8",
    sa.Double: "float8",
    sa.Text: "text",
    sa.LargeBinary: "bytea",
}


def _conflict(table: sa.Table, columns: Sequence[str], same: bool) -> str:
    keys = [column.name for column in table.primary_key]
    changed = [column for column in columns if column not in keys]
    if same or not changed:
        return f" ON CONFLICT ({', '.join(keys)}) DO NOTHING"
    return f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in changed)}"
