"""Opening a database, transactions, and what went wrong in them said so that a person can act."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from evenmatch.errors import StoreError, UsageError, needing
from evenmatch.ledger.arrays import teach
from evenmatch.ledger.rows import PostgresRows, Rows, SqliteRows

if TYPE_CHECKING:
    import psycopg

VERSION = "0004"  # of the schema that this code reads and writes: the last script in migrations/versions
IDLE = 1.0  # seconds after which a connection is asked whether it is still there
PATIENCE = 60.0  # seconds to wait for another writer
PASSWORD = re.compile(r"(?<=://)([^:/]*:)[^@]*(?=@)|([?&]\w*password=)[^&]*")
MIGRATING = 0x6576656E  # the advisory lock under which one process migrates
ACCEPTED = "accepted is a file, as evenmatch.db, or a URL, as sqlite:///evenmatch.db or postgresql://user@host/name"
DURABLE = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=8192", "cache_size=-131072")

ALIVE = {"connect_timeout": 10, "tcp_user_timeout": 30_000}  # s, ms: a server that is gone is not waited for


class Database:
    """One SQLite file or PostgreSQL database with the ledger's schema. Safe to share between threads."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._sqlite = url.get_backend_name() == "sqlite"
        self.shown = str(url.database) if self._sqlite else shown_url(url)
        self.rows: Rows = SqliteRows() if self._sqlite else PostgresRows()
        # SQLite has one writer at a time: those of this process wait here, in turn, and not in its busy loop.
        self._turn = threading.Lock() if self._sqlite else nullcontext()
        self._engine = _sqlite_engine(url) if self._sqlite else _postgres_engine(url)

    @classmethod
    def open(cls, text: str) -> Database:
        """The database at a path or URL, made or migrated where it must be.

        Raises UsageError for a text that names none, StoreError where it cannot be opened or is not ours.
        """
        database = cls(parse_url(text))
        try:
            database._migrate()
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that sees the database as it was at its first statement, whatever is written meanwhile."""
        options = {} if self._sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._telling(), self._engine.connect() as plain:
            connection = plain.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that may write: all of it is kept, durably, when the block ends; nothing where it raises."""
        with self._telling(), self._turn, self._engine.connect() as plain:
            connection = plain.execution_options(**({"immediate": True} if self._sqlite else {}))
            with connection.begin():
                yield connection

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Says what a driver's error means."""
        try:
            yield
        except exc.DBAPIError as error:
            raise StoreError(f"{self.shown}: {_told(error.orig or error)}") from error
        except self._engine.dialect.loaded_dbapi.Error as error:  # of a statement that went to the driver directly
            raise StoreError(f"{self.shown}: {_told(error)}") from error
        except exc.TimeoutError as error:
            raise StoreError(f"{self.shown}: all connections are in use; try again") from error

    def version(self) -> str | None:
        """The version of the schema in the database; None where it has none. Raises StoreError where it is not ours."""
        with self.read() as connection:
            return self._version(connection)

    def _version(self, connection: sa.Connection) -> str | None:
        tables = sa.inspect(connection).get_table_names()
        if {"alembic_version", "ladder", "event"} <= set(tables):
            found: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
            return found
        if tables:
            held = ", ".join(sorted(tables)[:5])
            raise StoreError(f"{self.shown} holds something else ({held}); accepted is an empty database or a ledger")
        return None

    def _migrate(self) -> None:
        if self.version() == VERSION:
            return
        from alembic import command  # noqa: PLC0415 - it takes as long to import as all the rest
        from alembic.config import Config  # noqa: PLC0415
        from alembic.script import ScriptDirectory  # noqa: PLC0415

        config = Config()
        config.set_main_option("script_location", "evenmatch.ledger:migrations")
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        with self.write() as connection:
            if not self._sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATING)))
            found = self._version(connection)
            if found is not None and found not in known:
                raise StoreError(
                    f"{self.shown} was written by a newer evenmatch (schema {found}); accepted is {VERSION}"
                )
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def parse_url(text: str) -> URL:
    """The URL of a database: a path is an SQLite file. Raises UsageError where it is neither."""
    if not text.strip():
        raise UsageError(f"the database's name is empty; {ACCEPTED}")
    if "://" not in text:
        url = URL.create("sqlite", database=text)
    else:
        try:
            url = make_url(text)
        except (exc.ArgumentError, ValueError):  # a port that is no number, too
            raise UsageError(f"{without_password(text)!r} is no database; {ACCEPTED}") from None
    backend = url.get_backend_name()
    if backend == "postgres":
        backend = "postgresql"
    drivers = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
    if backend not in drivers:
        raise UsageError(f"{url.render_as_string(hide_password=True)!r} is no database of ours; {ACCEPTED}")
    if backend == "sqlite" and (url.database in (None, "", ":memory:") or str(url.database).startswith("file:")):
        raise UsageError(f"{text!r} names no file; {ACCEPTED}")
    return url.set(drivername=drivers[backend])


def shown_url(url: URL) -> str:
    """The URL of a PostgreSQL database as people write it, without the password."""
    return without_password(url.set(drivername="postgresql").render_as_string(hide_password=True))


def without_password(text: str) -> str:
    """A URL, or what was meant as one, without the password in it."""
    return PASSWORD.sub(r"\1\2***", text)


def _sqlite_engine(url: URL) -> sa.Engine:
    path = Path(url.database or "")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} is not there; accepted is a file in a folder that is")
    is_ours = os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists()
    if not is_ours:  # SQLite could not even read, for want of a place for its notes: nobody can be writing here
        url = url.set(database=f"file:{quote(str(path.resolve()))}", query={"immutable": "1", "uri": "true"})
    engine = sa.create_engine(url, connect_args={"timeout": PATIENCE, "check_same_thread": False}, pool_size=8)

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        for setting in DURABLE if is_ours else ():
            connection.execute(f"PRAGMA {setting}")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgres_engine(url: URL) -> sa.Engine:
    with needing("postgresql", "a PostgreSQL database"):
        engine = sa.create_engine(
            url,
            isolation_level="READ COMMITTED",  # whatever the server's default is
            pool_size=8,
            max_overflow=24,
            connect_args=ALIVE,
        )
    sa.event.listen(engine, "connect", teach)
    sa.event.listen(engine, "checkin", _note_use)
    sa.event.listen(engine, "checkout", _ask_whether_alive)
    return engine


def _note_use(_: object, record: sa.pool.ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _ask_whether_alive(connection: psycopg.Connection[object], record: sa.pool.ConnectionPoolEntry, _: object) -> None:
    """Let the pool take another connection for one that was lost while nobody used it; asking takes a round trip."""
    if time.monotonic() - record.info.get("used", time.monotonic()) < IDLE:
        return
    from psycopg import Error  # noqa: PLC0415 - the driver is an extra

    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except Error as error:
        raise exc.DisconnectionError from error


def _told(error: BaseException) -> str:
    """What a driver's error means for a person, and what to do."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    low = said.lower()
    causes = {
        ("disk is full", "no space left", "disk full", "could not extend file"): "the disk is full; nothing of this "
        "was kept. Make room and send it again",
        ("readonly", "read-only"): "the file or its folder cannot be written to; allow writing and send it again",
        ("database is locked",): f"another process has been writing for {PATIENCE:.0f} s; nothing of this was kept, "
        "send it again",
        ("not a database", "malformed"): "the file is not a database of ours, or it was damaged",
        (
            "disk i/o error",
            "file too large",
        ): "the disk failed, or a limit on the size of files was reached; nothing of this was kept",
        ("unable to open",): "the file cannot be opened; accepted is a file in a folder that can be written to",
        ("authentication", "role "): "the server refused the login",
    }
    for words, meaning in causes.items():
        if any(word in low for word in words):
            return f"{meaning} ({said})"
    if "psycopg" in type(error).__module__ and type(error).__name__ in (
        "OperationalError",
        "InterfaceError",
        "AdminShutdown",
        "CrashShutdown",
        "CannotConnectNow",
    ):
        return f"the connection was lost or refused; what was not acknowledged can be sent again ({said})"
    return said
