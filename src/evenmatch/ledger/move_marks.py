"""Marks of a move: the source refuses writes, and no process opens the target until the move is finished.

The source gets triggers that refuse every write, so that they hold for each process, of whatever version, at no cost
to a database that is not moved. The target has the schema version UNFINISHED. Both have the table `move` with one row,
which is not part of the schema; that of the target is dropped at the end.
"""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Any, NamedTuple

import sqlalchemy as sa

from evenmatch.errors import StoreError
from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.driver_errors import MOVED, MOVING
from evenmatch.ledger.schema import METADATA, TEXT
from evenmatch.ledger.store import Store

LOCK_ATTEMPT = 0.2  # seconds for which the lock of all tables makes writers wait; PostgreSQL ends deadlocks after 1 s
LOCK_PAUSE = 0.05  # seconds between two attempts
LOCK_PATIENCE = 30.0  # seconds until the attempts end
_LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE
_FUNCTION, _TRIGGER = "refuse_moved_write", "refuse_moved"
_CHANGES = ("INSERT", "UPDATE", "DELETE")


class MoveState(StrEnum):
    """The part of a database in a move."""

    COPYING = "copying"  # the source, until all is copied
    MOVED = "moved"  # the source, ever after
    UNFINISHED = "unfinished"  # the target


class MoveMark(NamedTuple):
    """The mark of a database. move: a random id, the same in both; other: the other database, without a password."""

    move: str
    state: MoveState
    other: str


_move = sa.Table(
    "move",
    sa.MetaData(),
    *(sa.Column(name, TEXT, nullable=False) for name in MoveMark._fields),
    sqlite_strict=True,
)
_version = sa.table("alembic_version", sa.column("version_num"))


def read_mark(store: Store) -> MoveMark | None:
    """The mark of a database; None: it has no part in a move."""
    if not sa.inspect(store.connection).has_table(_move.name):
        return None
    row = store.connection.execute(sa.select(_move)).first()
    return None if row is None else MoveMark(row.move, MoveState(row.state), row.other)


def is_empty(store: Store) -> bool:
    """Whether no table has a row."""
    return not any(store.all(f"SELECT 1 FROM {table} LIMIT 1") for table in METADATA.tables)


# the target


def mark_target(store: Store, mark: MoveMark) -> None:
    """Mark an empty database as the target of a move that is not finished."""
    _put(store, mark)
    store.connection.execute(_version.update().values(version_num=UNFINISHED))


def finish_target(store: Store) -> None:
    """Make the target a database like any other."""
    _move.drop(store.connection)
    store.connection.execute(_version.update().values(version_num=VERSION))


def drop_tables(store: Store) -> None:
    """Drop everything in the target of a move, so that it is an empty database without a schema."""
    METADATA.drop_all(store.connection)
    store.run("DROP TABLE alembic_version")
    _move.drop(store.connection)


# the source


def close_source(database: Database, mark: MoveMark) -> None:
    """Mark a database as the source of a move, and let it refuse all writes from the end of those that run.

    A mark that it has is replaced. Raises StoreError if writers hold locks for LOCK_PATIENCE.
    """
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            with database.write() as store:
                _close(store, mark)
        except StoreError as error:
            if getattr(error.__cause__, "sqlstate", None) != _LOCK_NOT_AVAILABLE or time.monotonic() > deadline:
                raise
            time.sleep(LOCK_PAUSE)
        else:
            return


def open_source(store: Store) -> None:
    """Let the source of a move take writes again, and remove its mark."""
    _drop_triggers(store)
    _move.drop(store.connection)


def _close(store: Store, mark: MoveMark) -> None:
    driver: Any = store.connection.connection.driver_connection  # which leaves `?` and `%` in the texts as they are
    is_sqlite = store.connection.dialect.name == "sqlite"
    if not is_sqlite:
        driver.execute(f"SET LOCAL lock_timeout = '{LOCK_ATTEMPT * 1000:.0f}ms'")
        driver.execute(f"LOCK TABLE {', '.join(METADATA.tables)} IN SHARE ROW EXCLUSIVE MODE")
    _drop_triggers(store)
    _put(store, mark)
    message = _literal(_refusal(mark))
    if is_sqlite:
        for table in METADATA.tables:
            for change in _CHANGES:
                driver.execute(
                    f"CREATE TRIGGER {_TRIGGER}_{table}_{change} BEFORE {change} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, {message}); END"
                )
        return
    driver.execute(
        f"CREATE FUNCTION {_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS "
        + _literal(f"BEGIN RAISE EXCEPTION USING MESSAGE = {message}; END")
    )
    for table in METADATA.tables:
        driver.execute(
            f"CREATE TRIGGER {_TRIGGER} BEFORE {' OR '.join(_CHANGES)} ON {table} EXECUTE FUNCTION {_FUNCTION}()"
        )


def _drop_triggers(store: Store) -> None:
    if store.connection.dialect.name == "sqlite":
        for table in METADATA.tables:
            for change in _CHANGES:
                store.run(f"DROP TRIGGER IF EXISTS {_TRIGGER}_{table}_{change}")
    else:
        store.run(f"DROP FUNCTION IF EXISTS {_FUNCTION} CASCADE")


def _put(store: Store, mark: MoveMark) -> None:
    _move.create(store.connection, checkfirst=True)
    store.connection.execute(_move.delete())
    store.connection.execute(_move.insert().values(mark._asdict()))


def _refusal(mark: MoveMark) -> str:
    if mark.state is MoveState.MOVED:
        return f"{MOVED}; serve the new one ({mark.other})"
    return f"{MOVING} and takes no writes until that has ended (to {mark.other})"


def _literal(text: str) -> str:
    """A text as a literal of SQL; for PostgreSQL with its default setting standard_conforming_strings."""
    return f"'{text.replace(chr(39), chr(39) * 2)}'"
