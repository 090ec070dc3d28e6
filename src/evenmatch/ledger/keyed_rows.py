"""Rows of any table by their primary keys, many at a time."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import sqlalchemy as sa

from evenmatch.ledger.move_log import is_sqlite
from evenmatch.ledger.postgres_rows import ARRAYS, Packed, pack
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store

AT_ONCE = 200  # rows that are read together
LARGE = "checkpoint"  # the table whose rows are read one by one: each has the states of all players


def rows_among(store: Store, table: sa.Table, keys: Sequence[Row]) -> Generator[Row, None, None]:
    """The rows with these keys, which are in order; the connection takes no other statement meanwhile."""
    names = [column.name for column in table.primary_key]
    columns = ", ".join(f"t.{column.name}" for column in table.columns)
    if is_sqlite(store):
        sql = f"SELECT {columns} FROM {table.name} AS t WHERE {_equal(names)}"
        for key in keys:
            yield from store.all(sql, *key)
        return
    order = ", ".join(f"t.{name}" for name in names)
    sql = f"SELECT {columns} FROM {table.name} AS t JOIN {_keys(names)} ON {_matched(names)} ORDER BY {order}"
    yield from store.rows.stream(store.connection, sql, *_packed(table, keys), at_once=rows_at_once(table))


def delete_rows(store: Store, table: sa.Table, keys: Sequence[Row]) -> None:
    """Delete the rows with these keys, where they exist."""
    names = [column.name for column in table.primary_key]
    if is_sqlite(store):
        for key in keys:
            store.run(f"DELETE FROM {table.name} AS t WHERE {_equal(names)}", *key)
        return
    store.run(f"DELETE FROM {table.name} AS t USING {_keys(names)} WHERE {_matched(names)}", *_packed(table, keys))


def rows_at_once(table: sa.Table) -> int:
    """The number of rows of a table that are read together."""
    return 1 if table.name == LARGE else AT_ONCE


def _equal(names: Sequence[str]) -> str:
    return " AND ".join(f"t.{name} = ?" for name in names)


def _keys(names: Sequence[str]) -> str:
    return f"unnest({', '.join('?' * len(names))}) AS k ({', '.join(f'k_{name}' for name in names)})"


def _matched(names: Sequence[str]) -> str:
    return " AND ".join(f"t.{name} = k.k_{name}" for name in names)


def _packed(table: sa.Table, keys: Sequence[Row]) -> list[Packed]:
    columns = zip(table.primary_key, zip(*keys, strict=True), strict=True)
    return [pack(values, ARRAYS[type(column.type)]) for column, values in columns]
