"""Marks of a move: how far it is, in the source and in the target, and which run of the command goes on with it.

Both have the table `move` with one row, which is not part of the schema; that of the target is dropped at the end. No
process opens the target before, because it has the schema version UNFINISHED. While the source is copied, triggers log
its changes (`move_log.py`); then triggers refuse every write. They hold for each process, of whatever version, at no
cost to a database that is not moved.

A command that is typed again takes over: the run that it replaces fails at its next step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NamedTuple

import sqlalchemy as sa

from evenmatch.errors import MoveError, StoreError
from evenmatch.ledger import live_schema, move_log  # noqa: F401 - the tables of live_schema join the others
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.driver_errors import MOVED, MOVING
from evenmatch.ledger.move_log import is_sqlite, literal
from evenmatch.ledger.schema import METADATA, TEXT
from evenmatch.ledger.store import Store

LOCK_ATTEMPT = 0.2  # seconds for which the lock of all tables makes writers wait; PostgreSQL ends deadlocks after 1 s
LOCK_PAUSE = 0.05  # seconds between two attempts
LOCK_PATIENCE = 30.0  # seconds until the attempts end
_LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE
_FUNCTION, _TRIGGER = "refuse_moved_write", "refuse_moved"
_CHANGES = ("INSERT", "UPDATE", "DELETE")
_HAVING = (
    "SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE t.tgname = ? AND c.relnamespace = current_schema()::regnamespace"
)


class MoveState(StrEnum):
    """The part of a database in a move."""

    COPYING = "copying"  # the source, while it takes writes
    CLOSED = "closed"  # the source, while the last changes are copied
    MOVED = "moved"  # the source, ever after
    UNFINISHED = "unfinished"  # the target


class MoveMark(NamedTuple):
    """The mark of a database. move: a random id, the same in both; other: the other database, without a password.

    run  a random id of the command that continues the move
    """

    move: str
    state: MoveState
    other: str
    run: str = ""


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
    row = store.connection.exec_driver_sql(f"SELECT * FROM {_move.name}").mappings().first()
    return None if row is None else MoveMark(**{**row, "state": MoveState(row["state"])})


def is_empty(store: Store) -> bool:
    """Whether no table has a row."""
    return not any(store.all(f"SELECT 1 FROM {table} LIMIT 1") for table in METADATA.tables)


def confirm(store: Store, mark: MoveMark) -> None:
    """Keep other runs of the command from this database until the transaction ends; it becomes durable with it.

    Raises MoveError if another run has taken over, or ended the move.
    """
    if not store.all(f"UPDATE {_move.name} SET run = run WHERE run = ? RETURNING run", mark.run):
        raise MoveError("another evenmatch move has taken over, or has ended this one")


@contextmanager
def snapshot(source: Database, mark: MoveMark) -> Iterator[Store]:
    """Open a transaction that reads the source as of now. Everything that it sees is durable."""
    with source.read() as store:
        is_empty(store)  # the snapshot is as of the first statement
        with source.write(patient=True) as writing:
            confirm(writing, mark)
        yield store


# the target


def mark_target(store: Store, mark: MoveMark) -> None:
    """Mark an empty database as the target of a move that is not finished."""
    _put(store, mark)
    store.connection.execute(_version.update().values(version_num=UNFINISHED))


def take_over_target(store: Store, mark: MoveMark) -> None:
    """Continue a move with a new run. Raises MoveError if it was finished or ended meanwhile."""
    present = read_mark(store)
    if present is None or (present.move, present.state) != (mark.move, MoveState.UNFINISHED):
        raise MoveError("another evenmatch move has finished or ended this one")
    _put(store, present._replace(run=mark.run))


def finish_target(store: Store, mark: MoveMark) -> None:
    """Make the target a database like any other."""
    confirm(store, mark)
    _move.drop(store.connection)
    store.connection.execute(_version.update().values(version_num=VERSION))


def drop_tables(store: Store) -> None:
    """Drop everything in the target of a move, so that it is an empty database without a schema."""
    METADATA.drop_all(store.connection)
    store.run("DROP TABLE alembic_version")
    _move.drop(store.connection)


# the source


def begin_source(database: Database, mark: MoveMark) -> None:
    """Mark a database as the source of a move, and log what changes in it from now on; it takes writes.

    It may be the source already, of an earlier run. Raises StoreError if writers hold locks for LOCK_PATIENCE.
    """

    def begin(store: Store) -> None:
        _put(store, mark)
        if is_sqlite(store):
            _drop_refusals(store)
        move_log.begin(store)
        if not is_sqlite(store):
            _refuse_on_postgres(store, None)

    with database.read() as store:
        is_logged = move_log.is_logged(store)
    if is_logged and database.url.get_backend_name() != "sqlite":  # no lock is needed
        with database.write(patient=True) as store:
            _put(store, mark)
            _refuse_on_postgres(store, None)
    else:
        _without_writers(database, begin)


def close_source(database: Database, mark: MoveMark) -> None:
    """Let the source refuse all writes from the end of those that run. Raises StoreError as begin_source."""

    def close(store: Store) -> None:
        confirm(store, mark)
        _put(store, mark._replace(state=MoveState.CLOSED))
        _refuse(store, f"{MOVING} and takes no writes until that has ended (to {mark.other})")

    _without_writers(database, close)


def finish_source(store: Store, mark: MoveMark) -> None:
    """Let the source, which is closed, refuse writes for ever."""
    confirm(store, mark)
    _put(store, mark._replace(state=MoveState.MOVED))
    _refuse(store, f"{MOVED}; serve the new one ({mark.other})")


def reopen_source(store: Store, mark: MoveMark) -> None:
    """Let a closed source take writes again, which are logged."""
    confirm(store, mark)
    _put(store, mark)
    _refuse(store, None)


def release_source(database: Database) -> None:
    """Let the source of a move take writes again, without a log, and remove its mark."""
    if database.url.get_backend_name() != "sqlite":
        with database.write(patient=True) as store:  # at once: the locks below may have to wait
            _refuse_on_postgres(store, None)

    def release(store: Store) -> None:
        _drop_refusals(store)
        move_log.end(store)
        _move.drop(store.connection)

    _without_writers(database, release)


def _without_writers(database: Database, act: Callable[[Store], None]) -> None:
    """Act in a transaction that begins when the write transactions which run have ended."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            with database.write() as store:
                if not is_sqlite(store):
                    store.run(f"SET LOCAL lock_timeout = '{LOCK_ATTEMPT * 1000:.0f}ms'")
                    store.run(f"LOCK TABLE {', '.join(METADATA.tables)} IN SHARE ROW EXCLUSIVE MODE")
                act(store)
        except StoreError as error:
            if getattr(error.__cause__, "sqlstate", None) != _LOCK_NOT_AVAILABLE or time.monotonic() > deadline:
                raise
            time.sleep(LOCK_PAUSE)
        else:
            return


def _refuse(store: Store, message: str | None) -> None:
    """Refuse all writes with this message; None: refuse none."""
    if not is_sqlite(store):
        _refuse_on_postgres(store, message)
        return
    _drop_refusals(store)
    for table in METADATA.tables if message is not None else ():
        for change in _CHANGES:
            store.run(
                f"CREATE TRIGGER {_TRIGGER}_{table}_{change} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, {literal(message or '')}); END"
            )


def _refuse_on_postgres(store: Store, message: str | None) -> None:
    """Replace the function of the triggers, which takes no locks, unlike the removal of a trigger."""
    body = "RETURN NULL;" if message is None else f"RAISE EXCEPTION USING MESSAGE = {literal(message)};"
    driver: Any = store.connection.connection.driver_connection  # leaves `?` and `%` in the texts as they are
    driver.execute(
        f"CREATE OR REPLACE FUNCTION {_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS {literal(f'BEGIN {body} END')}"
    )
    have = {row[0] for row in store.all(_HAVING, _TRIGGER)}
    for table in METADATA.tables:
        if table not in have:
            driver.execute(
                f"CREATE TRIGGER {_TRIGGER} BEFORE {' OR '.join(_CHANGES)} ON {table} EXECUTE FUNCTION {_FUNCTION}()"
            )


def _drop_refusals(store: Store) -> None:
    if is_sqlite(store):
        for table in METADATA.tables:
            for change in _CHANGES:
                store.run(f"DROP TRIGGER IF EXISTS {_TRIGGER}_{table}_{change}")
    else:
        store.run(f"DROP FUNCTION IF EXISTS {_FUNCTION} CASCADE")


def _put(store: Store, mark: MoveMark) -> None:
    _move.drop(store.connection, checkfirst=True)
    _move.create(store.connection)
    store.connection.execute(_move.insert().values(mark._asdict()))
