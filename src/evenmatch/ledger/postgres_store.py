"""Bulk statements and locks of PostgreSQL, and its binary arrays, packed with numpy."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evenmatch.ledger.codec import name_digest
from evenmatch.ledger.plan_cache import PlanCache
from evenmatch.ledger.secrets import MasterSecret
from evenmatch.ledger.store import NAMES, Row, Statement, Store, Values, conflict, key_of
from evenmatch.ledger.text import fold

if TYPE_CHECKING:
    import psycopg


# The object ids of an array type and of its element type (pg_type.dat of PostgreSQL).
INT8, FLOAT8, TEXT, BYTEA = (1016, 20), (1022, 701), (1009, 25), (1001, 17)
_HEAD = struct.Struct(">iiIii")  # dimensions, whether there are NULLs, type, length, first index
_FIXED = {INT8: ">i8", FLOAT8: ">f8"}


class Int8s(bytes):
    """A packed bigint[]."""


class Float8s(bytes):
    """A packed double precision[]."""


class PackedTexts(bytes):
    """A packed text[]."""


class PackedByteas(bytes):
    """A packed bytea[]."""


Packed = Int8s | Float8s | PackedTexts | PackedByteas


def pack(values: Sequence[object] | NDArray[Any], kind: tuple[int, int]) -> Packed:
    """Pack an array of one or more values of this type; None is NULL.

    values  a numpy array of numbers, or of bytes of one length (dtype V), is packed at once
    """
    if isinstance(values, np.ndarray):
        return _pack_fixed(values, kind, values.dtype if kind == BYTEA else np.dtype(_FIXED[kind]))
    empty = None in values
    head = _HEAD.pack(1, int(empty), kind[1], len(values), 1)
    if kind in _FIXED and not empty:
        return _pack_fixed(values, kind, np.dtype(_FIXED[kind]))
    encode = _ENCODE[kind]
    encoded = [None if value is None else encode(value) for value in values]
    body = [_NULL if item is None else len(item).to_bytes(4, "big") + item for item in encoded]
    return _CLASSES[kind](b"".join([head, *body]))


def _pack_fixed(values: Sequence[object] | NDArray[Any], kind: tuple[int, int], of: np.dtype[Any]) -> Packed:
    """Pack values that all take the same number of bytes."""
    fixed = np.empty(len(values), [("size", ">i4"), ("value", of)])
    fixed["size"], fixed["value"] = of.itemsize, values
    return _CLASSES[kind](_HEAD.pack(1, 0, kind[1], len(values), 1) + fixed.tobytes())


_NULL = b"\xff\xff\xff\xff"
_ENCODE: dict[tuple[int, int], Callable[[Any], bytes]] = {
    INT8: struct.Struct(">q").pack,
    FLOAT8: struct.Struct(">d").pack,
    TEXT: str.encode,
    BYTEA: bytes,
}
_CLASSES: dict[tuple[int, int], type[Packed]] = {INT8: Int8s, FLOAT8: Float8s, TEXT: PackedTexts, BYTEA: PackedByteas}


def teach(connection: psycopg.Connection[Any], _: object) -> None:
    """Register dumpers for packed arrays on a psycopg connection."""
    from psycopg.abc import Buffer  # noqa: PLC0415 - the driver is an extra
    from psycopg.adapt import Dumper  # noqa: PLC0415
    from psycopg.pq import Format  # noqa: PLC0415

    class PackedDumper(Dumper):
        """Dumper that sends the packed bytes unchanged."""

        format = Format.BINARY

        def dump(self, obj: bytes) -> Buffer:
            return obj

    for kind, packed in _CLASSES.items():
        dumper = type(f"{packed.__name__}Dumper", (PackedDumper,), {"oid": kind[0]})
        connection.adapters.register_dumper(packed, dumper)


AT_ONCE = 5000  # rows per array statement
BY_COLUMN = 25_000  # the same for rows that come by column
SHARE_NAMES = f"SELECT pg_advisory_xact_lock_shared({NAMES})"  # a shared lock until the transaction ends
_IDLE_LIMIT = "idle_in_transaction_session_timeout"
_WRITES = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")

ARRAYS: dict[type, tuple[int, int]] = {  # the array type of PostgreSQL of a column's type
    sa.BigInteger: INT8,
    sa.Double: FLOAT8,
    sa.Text: TEXT,
    sa.LargeBinary: BYTEA,
}
_POSTGRES_TYPES: dict[type, str] = {
    sa.BigInteger: "int8",
    sa.Double: "float8",
    sa.Text: "text",
    sa.LargeBinary: "bytea",
}


class PostgresStore(Store):
    """PostgreSQL: rows are sent as one array per column, or with COPY if there are many."""

    # Several transactions of a frozen process may wait for one lock, which each then holds for the limit.
    shorten_idle_limit = (
        f"set_config('{_IDLE_LIMIT}', (1000 * extract(epoch FROM greatest("
        f"current_setting('{_IDLE_LIMIT}')::interval - (clock_timestamp() - statement_timestamp()), "
        f"current_setting('{_IDLE_LIMIT}')::interval / 6)))::bigint::text, true)"
    )

    def __init__(self, connection: sa.Connection, master: MasterSecret, plans: PlanCache) -> None:
        super().__init__(connection, master, plans)
        self._statements: list[Statement] | None = None  # that `together` collects

    def insert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Use arrays, or COPY for many rows, which is then twice as fast."""
        if len(rows) > AT_ONCE:
            self._copy(f"{table.name} ({', '.join(columns)})", [table.c[column] for column in columns], rows)
        elif rows:
            self._insert(table, columns, rows, "")

    def upsert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, same: bool = False) -> None:
        """Use arrays and ON CONFLICT, in key order."""
        then = f" ORDER BY {key_of(table)}{conflict(table, tuple(columns), same)}"
        for first in range(0, len(rows), AT_ONCE):
            self._insert(table, columns, rows[first : first + AT_ONCE], then)

    def _insert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], then: str) -> None:
        statement, types = _postgres_insert(table, tuple(columns), then)
        self.run(statement, *map(pack, zip(*rows, strict=True), types))

    def update(self, table: sa.Table, key: Sequence[str], columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Send an array for each column."""
        statement, types = _postgres_update(table, tuple(key), tuple(columns))
        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            self.run(statement, *map(pack, zip(*part, strict=True), types))

    def insert_columns(
        self, table: sa.Table, same: Mapping[str, object], columns: Mapping[str, Values], *, replacing: bool = False
    ) -> None:
        """Send an array for each column, and a single value for those that are the same in every row."""
        statement, types = _postgres_insert_columns(table, tuple(same), tuple(columns), replacing)
        count = len(next(iter(columns.values())))
        for first in range(0, count, BY_COLUMN):
            part = slice(first, first + BY_COLUMN)
            packed = [pack(values[part], kind) for values, kind in zip(columns.values(), types, strict=True)]
            self.run(statement, *same.values(), *packed)

    def _copy(self, into: str, columns: Sequence[sa.Column[Any]], rows: Sequence[Row]) -> None:
        types = [_POSTGRES_TYPES[type(column.type)] for column in columns]
        with self.driver.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> list[Row]:
        """Send the values as one array: `= ANY(?)` is an index lookup per value."""
        return self.all(sql.replace("IN ({})", "= ANY(?)"), *first, _packed(values)) if values else []

    def run_among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> None:
        """Send the values as one array."""
        if values:
            self.run(sql.replace("IN ({})", "= ANY(?)"), *first, _packed(values))

    def by_key(self, sql: str, first: Sequence[object], values: Sequence[str]) -> Statement:
        """Join with a subquery that LIMIT keeps apart.

        While a ladder grows faster than the server counts its rows, `= ANY(?)` reads all of them: for 1,000 ids of
        112,000 matches 77 to 120 ms, for an index lookup of each 1.5 ms.
        """
        lookup = f"{sql.replace('IN ({})', '= wanted.value')} LIMIT 1"
        joined = f"SELECT found.* FROM unnest(?) AS wanted (value), LATERAL ({lookup}) AS found"
        return joined, (pack(values, TEXT), *first)

    def each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run them as one statement, whose first column is the number of the SELECT."""
        parts = [f"SELECT {number}, part.* FROM ({sql}) AS part" for number, (sql, _) in enumerate(statements)]
        rows_of: list[list[Row]] = [[] for _ in statements]
        for number, *row in self.all(" UNION ALL ".join(parts), *chain(*(of for _, of in statements))):
            rows_of[number].append(tuple(row))
        return rows_of

    def create_players(self, names: Sequence[str]) -> dict[str, int]:
        """Insert names first: on a conflict the other writer's player wins and none is created."""
        created = self.all(
            "WITH wanted AS (SELECT *, nextval(pg_get_serial_sequence('player', 'player')) AS player "
            "FROM unnest(?::text[], ?::text[], ?::int8[]) AS new (name, folded, digest) ORDER BY name), "
            "made AS (INSERT INTO name (name, player, checksum) "
            "SELECT name, player, digest + player FROM wanted ORDER BY name "
            "ON CONFLICT (name) DO NOTHING RETURNING name, player) "
            "INSERT INTO player (player, name, folded) OVERRIDING SYSTEM VALUE "
            "SELECT made.player, made.name, wanted.folded FROM made JOIN wanted ON wanted.name = made.name "
            "RETURNING name, player",
            list(names),
            [fold(name) for name in names],
            [name_digest(name) for name in names],
        )
        return dict(created)

    def lock_ladder(self, ladder: str, begin: Sequence[str], sql: str, *values: object) -> list[Row]:
        """Lock the ladder with FOR UPDATE and names with a shared advisory lock, in one round trip.

        Not by a pipeline: see `together`.
        """
        from psycopg import ClientCursor  # noqa: PLC0415 - the driver is an extra

        with ClientCursor(self.driver) as cursor:
            locking = (
                SHARE_NAMES,
                "SELECT 1 FROM ladder WHERE name = %s FOR UPDATE",
                f"SELECT {self.shorten_idle_limit}",
            )
            cursor.execute("; ".join((*begin, *locking, sql.replace("?", "%s"))), (ladder, *values))
            for _ in range(len(begin) + len(locking)):
                cursor.nextset()
            rows: list[Row] = cursor.fetchall()
            return rows

    def hold(self, lock: int) -> None:
        """Take the advisory lock exclusively."""
        self.run("SELECT pg_advisory_xact_lock(?)", lock)

    def share(self, lock: int) -> None:
        """Take the advisory lock shared."""
        self.run("SELECT pg_advisory_xact_lock_shared(?)", lock)

    def together(self, most: int) -> AbstractContextManager[object]:
        """Send writes to different tables as one statement; COPY cannot be part of it.

        Not by a pipeline: while one is open, and after the Flush message with which psycopg ends it, the server does
        not count how long a transaction is idle, and a process that is frozen then would stop all others.
        """
        return nullcontext() if most > BY_COLUMN else self._collected()

    @contextmanager
    def _collected(self) -> Iterator[None]:
        """Collect the statements that are run inside the block, and execute them when it ends."""
        collected: list[Statement] = []
        self._statements = collected
        try:
            yield
        finally:
            self._statements = None
        for group in _groups(collected):
            self.driver.execute(
                _as_one(tuple(sql for sql, _ in group)), [value for _, values in group for value in values]
            )

    def all(self, sql: str, *values: object) -> list[Row]:
        """Run the SELECT on the driver directly, with binary results."""
        with self.driver.cursor(binary=True) as cursor:
            rows: list[Row] = cursor.execute(_native(sql), values).fetchall()
            return rows

    def stream(self, sql: str, *values: object, at_once: int) -> Generator[Row, None, None]:
        """Read the rows as the server sends them, instead of all of them first; before libpq 17 each by itself."""
        from psycopg import capabilities  # noqa: PLC0415 - the driver is an extra

        size = at_once if capabilities.has_stream_chunked() else 1
        with self.driver.cursor(binary=True) as cursor:
            yield from cursor.stream(_native(sql), values, size=size)

    def run(self, sql: str, *values: object) -> None:
        """Run the statement on the driver directly, unless it is collected."""
        if self._statements is None:
            self.driver.execute(_native(sql), values)
        else:
            self._statements.append((sql, values))


def _packed(values: Sequence[int] | Sequence[str]) -> Packed:
    return pack(values, TEXT if isinstance(values[0], str) else INT8)


def _groups(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Split statements into groups, in their order: those of a group write to different tables."""
    group: list[Statement] = []
    tables: set[str] = set()
    for statement in statements:
        table = _table_of(statement[0])
        if table in tables:
            yield group
            group, tables = [], set()
        group.append(statement)
        tables.add(table)
    if group:
        yield group


def _table_of(sql: str) -> str:
    """The table that a statement writes to."""
    target = _WRITES.match(sql)
    assert target is not None, sql
    return target[1]


@lru_cache(1000)
def _as_one(statements: tuple[str, ...]) -> str:
    """One statement of PostgreSQL that does what all of them do."""
    *first, last = statements
    parts = ", ".join(f"w{number} AS ({sql})" for number, sql in enumerate(first))
    return _native(f"WITH {parts} {last}" if first else last)


def _native(sql: str) -> str:
    """The statement with the placeholders of psycopg, to which a percent sign is the beginning of one."""
    return sql.replace("%", "%%").replace("?", "%b")


@cache
def _postgres_insert(table: sa.Table, columns: tuple[str, ...], then: str) -> tuple[str, list[tuple[int, int]]]:
    """The statement that inserts rows given as one array per column, and the types of these arrays."""
    listed, values = ", ".join(columns), ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table.name} ({listed}) SELECT * FROM unnest({values}) AS new ({listed}){then}"
    return statement, [ARRAYS[type(table.c[column].type)] for column in columns]


@cache
def _postgres_update(
    table: sa.Table, key: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[str, list[tuple[int, int]]]:
    """The statement of `update`, and the types of its arrays."""
    listed, values = ", ".join((*key, *columns)), ", ".join("?" * (len(key) + len(columns)))
    changed = ", ".join(f"{column} = new.{column}" for column in columns)
    matching = " AND ".join(f"{table.name}.{column} = new.{column}" for column in key)
    statement = f"UPDATE {table.name} SET {changed} FROM unnest({values}) AS new ({listed}) WHERE {matching}"
    return statement, [ARRAYS[type(table.c[column].type)] for column in (*key, *columns)]


@cache
def _postgres_insert_columns(
    table: sa.Table, same: tuple[str, ...], columns: tuple[str, ...], replacing: bool
) -> tuple[str, list[tuple[int, int]]]:
    """The statement of `insert_columns`, and the types of its arrays."""
    fixed = "".join(f"?::{_POSTGRES_TYPES[type(table.c[column].type)]} AS {column}, " for column in same)
    listed, values = ", ".join(columns), ", ".join("?" * len(columns))
    then = f" ORDER BY {key_of(table)}{conflict(table, (*same, *columns), False)}" if replacing else ""
    head = f"INSERT INTO {table.name} ({', '.join((*same, *columns))}) SELECT {fixed}{listed}"
    statement = f"{head} FROM unnest({values}) AS new ({listed}){then}"
    return statement, [ARRAYS[type(table.c[column].type)] for column in columns]
