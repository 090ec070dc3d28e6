"""The log of a move: the keys of the rows that change in the source while it is copied, in the order of the changes.

Triggers write it in the transaction of the change, so that a snapshot shows a change and its entry together or neither.
On PostgreSQL an entry can become visible after later ones: what was applied is removed entry by entry, never by number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from evenmatch.ledger.rows import Row
from evenmatch.ledger.schema import BYTES, METADATA, TEXT, WHOLE
from evenmatch.ledger.store import Store

AT_ONCE = 20_000  # entries of one batch
_NAME = "log_move"  # of the triggers and functions begin with it
_CHANGES = {"INSERT": ("new",), "UPDATE": ("old", "new"), "DELETE": ("old",)}

_log = sa.Table(
    "move_change",
    sa.MetaData(),
    sa.Column("change", WHOLE, sa.Identity(), primary_key=True),
    sa.Column("place", TEXT, nullable=False),  # the table
    sa.Column("row_key", TEXT, nullable=False),  # JSON
    sqlite_strict=True,
)


class LoggedChanges(NamedTuple):
    """A batch of the log. entries: their numbers; keys: of the changed rows by table, each once and in order."""

    entries: list[int]
    keys: dict[str, list[Row]]


def is_logged(store: Store) -> bool:
    """Whether changes of this database are logged."""
    return bool(sa.inspect(store.connection).has_table(_log.name))


def begin(store: Store) -> None:
    """Log all changes from the end of this transaction on, unless they are logged. No other one may write meanwhile."""
    if is_logged(store):
        return
    _log.create(store.connection)
    statements = _sqlite_triggers() if is_sqlite(store) else _postgres_triggers(store)
    driver: Any = store.connection.connection.driver_connection  # leaves `%` in the texts as it is
    for statement in statements:
        driver.execute(statement)


def end(store: Store) -> None:
    """Log changes no more, and drop the log."""
    for name in METADATA.tables:
        if is_sqlite(store):
            for change in _CHANGES:
                store.run(f"DROP TRIGGER IF EXISTS {_NAME}_{name}_{change}")
        else:
            store.run(f"DROP FUNCTION IF EXISTS {_NAME}_{name} CASCADE")
    _log.drop(store.connection, checkfirst=True)


def read(store: Store) -> Iterator[LoggedChanges]:
    """The entries that the transaction sees, in batches."""
    last = 0
    sql = f"SELECT change, place, row_key FROM {_log.name} WHERE change > ? ORDER BY change LIMIT {AT_ONCE}"
    while entries := store.all(sql, last):
        last = entries[-1][0]
        texts: dict[str, set[str]] = {}
        for _, place, row_key in entries:
            texts.setdefault(place, set()).add(row_key)
        keys = {place: sorted(_parse(METADATA.tables[place], text) for text in those) for place, those in texts.items()}
        yield LoggedChanges([entry[0] for entry in entries], keys)


def remove(store: Store, entries: Sequence[int]) -> None:
    """Remove these entries, which have been applied."""
    store.run_among(f"DELETE FROM {_log.name} WHERE change IN ({{}})", (), entries)


def is_sqlite(store: Store) -> bool:
    """Whether the database is an SQLite file."""
    return store.connection.dialect.name == "sqlite"


def literal(text: str) -> str:
    """A text as a literal of SQL; for PostgreSQL with its default setting standard_conforming_strings."""
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _parse(table: sa.Table, text: str) -> Row:
    values = zip(table.primary_key, json.loads(text), strict=True)
    return tuple(bytes.fromhex(value) if _is_bytes(column) else value for column, value in values)


def _is_bytes(column: sa.Column[Any]) -> bool:
    return isinstance(column.type, type(BYTES))


def _sqlite_triggers() -> Iterator[str]:
    for name, table in METADATA.tables.items():
        for change, rows in _CHANGES.items():
            entries = ", ".join(f"({literal(name)}, {_sqlite_key(table, row)})" for row in rows)
            yield (
                f"CREATE TRIGGER {_NAME}_{name}_{change} AFTER {change} ON {name} "
                f"BEGIN INSERT INTO {_log.name} (place, row_key) VALUES {entries}; END"
            )


def _sqlite_key(table: sa.Table, row: str) -> str:
    keys = [(f"{row}.{column.name}", column) for column in table.primary_key]
    return f"json_array({', '.join(f'hex({key})' if _is_bytes(column) else key for key, column in keys)})"


def _postgres_triggers(store: Store) -> Iterator[str]:
    """A function for each table, called once for each statement; it may write the log whoever writes the table."""
    schema = store.all("SELECT quote_ident(current_schema())")[0][0]
    for name, table in METADATA.tables.items():
        function = f"{_NAME}_{name}"
        branches = " ELSIF ".join(
            f"TG_OP = {literal(change)} THEN INSERT INTO {_log.name} (place, row_key) "
            + " UNION ".join(f"SELECT {literal(name)}, {_postgres_key(table)} FROM {row}_rows" for row in rows)
            + ";"
            for change, rows in _CHANGES.items()
        )
        yield (
            f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = {schema}, pg_temp AS " + literal(f"BEGIN IF {branches} END IF; RETURN NULL; END")
        )
        for change, rows in _CHANGES.items():
            named = " ".join(f"{row.upper()} TABLE AS {row}_rows" for row in rows)
            yield (
                f"CREATE TRIGGER {function}_{change.lower()} AFTER {change} ON {name} REFERENCING {named} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
            )


def _postgres_key(table: sa.Table) -> str:
    keys = (f"encode({c.name}, 'hex')" if _is_bytes(c) else c.name for c in table.primary_key)
    return f"json_build_array({', '.join(keys)})::text"
