"""Database connections, transactions and schema migration, with driver errors translated to clear messages.

A follower opens a database for reading only, such as a hot standby.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import URL

from evenmatch.errors import DamageError, FollowerError, StoreError, UsageError, needing
from evenmatch.ledger.database_url import parse_url, shown_url
from evenmatch.ledger.driver_errors import LOCK_LIMIT, PATIENCE, STATEMENT_LIMIT, translated
from evenmatch.ledger.plan_cache import PlanCache
from evenmatch.ledger.postgres_store import SHARE_NAMES, PostgresStore, teach
from evenmatch.ledger.secrets import MasterSecret
from evenmatch.ledger.sqlite_store import SqliteStore
from evenmatch.ledger.store import Head, Store

if TYPE_CHECKING:
    import psycopg


VERSION = "0001"  # of the schema that this code reads and writes: the last script in migrations/versions
UNFINISHED = "unfinished copy"  # the version of a database that is being filled: no process may open it
IDLE = 1.0  # seconds after which an idle connection is tested before it is used again
CONNECTIONS = 20  # connections to PostgreSQL that stay open, because opening one takes milliseconds
OVERFLOW = 12  # further connections, closed after use
MIGRATING = 0x6576656E  # key of the advisory lock held during a migration
TURN = 0.002  # seconds between attempts to become the only writer of an SQLite file
YIELD = 0.005  # seconds to wait after a write transaction, so that other processes can begin theirs
DURABLE = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=8192", "cache_size=-16384")

# Client settings: seconds (tcp_user_timeout: milliseconds) until an unreachable server counts as lost.
ALIVE = {"connect_timeout": 10, "tcp_user_timeout": 30_000}
ALIVE |= {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
# Seconds for which a write transaction on PostgreSQL may be idle, so that a frozen or vanished process does not block
# others. The first limit is half of the 3 s after which game servers turn to another process.
IDLE_LIMIT = 1.5  # for a normal process
YIELDING_IDLE_LIMIT = 3.0  # for a process of lower priority
PATIENT_IDLE_LIMIT = 120.0  # for a `patient` transaction
ROWS = 20_000  # reported players that allow a transaction one more second of idle time
WRITES = "READ COMMITTED READ WRITE"  # the mode of a write transaction
FAST = {"synchronous_commit": "off"}  # not durable at once
LOOKUPS = {"enable_seqscan": "off"}  # a plan made for a small table would scan it after it has grown


class Database:
    """One SQLite file or PostgreSQL database with the ledger's schema. Safe to share between threads.

    master    the master secret, with which some columns are sealed; loaded when it is first needed
    yielding  for a process of lower priority: pause after every write transaction, so that other processes' writers
              come first, and allow transactions twice as much idle time
    writes_at read-only: writes are refused with an error that names this address; None: writes are accepted
    """

    def __init__(self, url: URL, *, yielding: bool = False, writes_at: str | None = None) -> None:
        self.url, self.writes_at = url, writes_at
        self._pause = YIELD if yielding else 0.0
        self._idle_limit = YIELDING_IDLE_LIMIT if yielding else IDLE_LIMIT
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.shown = str(url.database) if self.is_sqlite else shown_url(url)
        self._store: type[Store] = SqliteStore if self.is_sqlite else PostgresStore
        self.master = MasterSecret(url, self.shown)
        self.plans = PlanCache()
        # SQLite has one writer at a time. Writers of this process wait for this lock instead of SQLite's busy loop.
        self._write_lock = threading.Lock() if self.is_sqlite else nullcontext()
        self._engine = _sqlite_engine(url) if self.is_sqlite else _postgres_engine(url)
        sa.event.listen(self._engine, "invalidate", lambda *_: self.plans.clear())  # a connection was lost

    @classmethod
    def open(cls, text: str, *, yielding: bool = False) -> Database:
        """Open the database at a path or URL; create or migrate its schema if necessary.

        Raises UsageError for an invalid path or URL, StoreError if it cannot be opened or contains other data.
        """
        database = cls(parse_url(text), yielding=yielding)
        try:
            database._migrate()
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close all idle connections."""
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Store]:
        """Begin a read-only transaction with a consistent snapshot as of its first statement."""
        with self._translated_errors(), self._engine.connect() as connection, connection.begin():
            if not self.is_sqlite:
                _begin(connection, "REPEATABLE READ READ ONLY")
            yield self._store(connection, self.master, self.plans)

    @contextmanager
    def write(self, *, durable: bool = True, patient: bool = False, share_names: bool = False) -> Iterator[Store]:
        """Begin a write transaction: committed when the block ends, rolled back if it raises.

        A PostgreSQL server ends a transaction that is idle for too long.
        durable  False: a power failure may lose the transaction, but only together with all later ones
        patient  the process may compute for up to PATIENT_IDLE_LIMIT between two statements, and wait for locks
        share_names  begin with a shared lock against changes of names
        """
        with self._writing(durable=durable) as connection:
            if not self.is_sqlite:
                limits = _idle_limit(PATIENT_IDLE_LIMIT) if patient else _limits(self._idle_limit)
                _begin(connection, WRITES, limits if durable else limits | FAST, (SHARE_NAMES,) if share_names else ())
            yield self._store(connection, self.master, self.plans)

    @contextmanager
    def write_ladder(self, ladder: str, players: int) -> Iterator[tuple[Store, Head]]:
        """Begin a durable write transaction and lock a ladder, in one round trip. Raises UnknownNameError.

        players  number of reported players; the more, the longer the transaction may be idle
        """
        begin = () if self.is_sqlite else _beginning(WRITES, _limits(self._idle_limit + players / ROWS))
        with self._writing(durable=True) as connection:
            store = self._store(connection, self.master, self.plans)
            yield store, store.lock(ladder, begin)

    @contextmanager
    def _writing(self, *, durable: bool) -> Iterator[sa.Connection]:
        """Yield a connection for a write transaction; on SQLite the transaction begins here."""
        if self.writes_at is not None:
            raise FollowerError(self.writes_at)
        options = {"immediate": True, "durable": durable} if self.is_sqlite else {}
        with self._translated_errors(), self._write_lock, self._engine.connect() as plain:
            connection = plain.execution_options(**options) if options else plain
            with connection.begin():
                yield connection
        if self._pause:
            time.sleep(self._pause)

    @property
    def address(self) -> str:
        """The URL with its password, from which another process can open the database. Not for messages."""
        return self.url.render_as_string(hide_password=False)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except exc.DBAPIError as error:
            raise translated(self.shown, error.orig or error) from error
        except self._engine.dialect.loaded_dbapi.Error as error:  # of a statement executed on the driver directly
            raise translated(self.shown, error) from error
        except exc.TimeoutError as error:
            raise StoreError(f"{self.shown}: all connections are in use; try again") from error
        except (OverflowError, struct.error) as error:  # callers check what they are given
            raise DamageError(
                f"{self.shown}: a stored number is out of range ({error}); `evenmatch verify` shows what is damaged"
            ) from error

    def time(self) -> int:
        """Microseconds since the epoch: the time of the PostgreSQL server, or of this machine for an SQLite file."""
        if self.is_sqlite:
            return time.time_ns() // 1000
        with self.read() as store:
            seconds = store.all("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(str(seconds[0][0]))

    def version(self) -> str | None:
        """The schema version; None for an empty database. Raises StoreError if the database contains other data."""
        with self.read() as store:
            return self._version(store.connection)

    def _version(self, connection: sa.Connection) -> str | None:
        tables = sa.inspect(connection).get_table_names()
        if {"alembic_version", "ladder", "event"} <= set(tables):
            version: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
            return version
        if tables:
            listed = ", ".join(sorted(tables)[:5])
            raise StoreError(f"{self.shown} contains other tables ({listed}); expected an empty database or a ledger")
        return None

    def _migrate(self) -> None:
        version = self.version()
        if version == VERSION:
            return
        if version == UNFINISHED:
            raise StoreError(f"{self.shown}: the copy into this database is not complete; run `evenmatch copy` again")
        self._upgrade()

    def _upgrade(self) -> None:
        """Run the migrations in one transaction, unless another process has run them."""
        from alembic import command  # noqa: PLC0415 - slow to import
        from alembic.config import Config  # noqa: PLC0415
        from alembic.script import ScriptDirectory  # noqa: PLC0415

        config = Config()
        config.set_main_option("script_location", "evenmatch.ledger:migrations")
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        with self.write(patient=True) as store:
            connection = store.connection
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATING)))
            version = self._version(connection)
            if version is not None and version not in known:
                raise StoreError(
                    f"{self.shown} was written by a newer evenmatch (schema {version}); expected {VERSION}"
                )
            if version == VERSION:
                return  # another process has migrated it
            config.attributes["connection"] = connection
            command.upgrade(config, VERSION)


def _sqlite_engine(url: URL) -> sa.Engine:
    path = Path(url.database or "")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; expected a file in an existing folder")
    is_writable = os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists()
    if not is_writable:  # SQLite needs a writable folder even for reading, and without one there is no writer
        url = url.set(database=f"file:{quote(str(path.resolve()))}", query={"immutable": "1", "uri": "true"})
    engine = sa.create_engine(url, connect_args={"timeout": PATIENCE, "check_same_thread": False}, pool_size=8)

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # BEGIN is issued below
        settings = [f"PRAGMA {setting}" for setting in DURABLE] if is_writable else []
        try:
            for statement in ("SELECT 1 FROM sqlite_schema LIMIT 1", *settings):
                connection.execute(statement)
        except UnicodeDecodeError as error:  # of sqlite3's message, which quotes the schema
            raise sqlite3.DatabaseError(f"malformed database schema ({error})") from error

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        options = connection.get_execution_options()
        durable = options.get("durable", True)
        if is_writable and connection.info.get("durable", True) is not durable:
            connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.info["durable"] = durable
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        if options.get("immediate", False):
            _begin_writing(driver)
        else:
            driver.execute("BEGIN")

    return engine


def _begin_writing(driver: sqlite3.Connection) -> None:
    """Become the only writer. SQLite itself would sleep up to 0.1 s, and a busy process would always come first."""
    until = time.monotonic() + PATIENCE
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(TURN)
            else:
                return
    finally:
        driver.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}")


def _postgres_engine(url: URL) -> sa.Engine:
    with needing("postgresql", "a PostgreSQL database"):
        engine = sa.create_engine(
            url,
            isolation_level="AUTOCOMMIT",  # of the driver: `_begin` begins transactions
            pool_size=CONNECTIONS,
            max_overflow=OVERFLOW,
            connect_args=ALIVE,
        )
    sa.event.listen(engine, "connect", teach)
    sa.event.listen(engine, "checkin", _note_use)
    sa.event.listen(engine, "checkout", _check_alive)
    return engine


def _idle_limit(seconds: float) -> dict[str, str]:
    return {"idle_in_transaction_session_timeout": f"{1000 * seconds:.0f}ms"}


def _limits(idle: float) -> dict[str, str]:
    """The limits of a write transaction that is not patient and may be idle for `idle` seconds."""
    limits = {"lock_timeout": f"{LOCK_LIMIT:g}s", "statement_timeout": f"{STATEMENT_LIMIT:g}s"}
    return _idle_limit(idle) | limits | LOOKUPS


def _begin(
    connection: sa.Connection, mode: str, settings: Mapping[str, str] = MappingProxyType({}), first: Sequence[str] = ()
) -> None:
    """Begin a transaction of PostgreSQL with these parameters of the server and first statements: one round trip."""
    driver: Any = connection.connection.driver_connection
    driver.execute("; ".join((*_beginning(mode, settings), *first)), prepare=False)


def _beginning(mode: str, settings: Mapping[str, str]) -> tuple[str, ...]:
    """The statements that begin a transaction of PostgreSQL."""
    return f"BEGIN ISOLATION LEVEL {mode}", *(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())


def _note_use(_: object, record: sa.pool.ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _check_alive(connection: psycopg.Connection[object], record: sa.pool.ConnectionPoolEntry, _: object) -> None:
    """Make the pool replace a connection that was lost while idle; the test costs a round trip."""
    if time.monotonic() - record.info.get("used", time.monotonic()) < IDLE:
        return
    from psycopg import Error  # noqa: PLC0415 - the driver is an extra

    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except Error as error:
        raise exc.DisconnectionError from error


def open_follower(text: str, writes_at: str) -> Database:
    """Open the database at a path or URL; every write is refused with a FollowerError that names `writes_at`.

    Raises UsageError for an invalid path or URL, StoreError if it cannot be opened or has another schema version.
    """
    database = Database(parse_url(text), writes_at=writes_at)
    try:
        _check_version(database)
    except BaseException:
        database.close()
        raise
    return database


def _check_version(database: Database) -> None:
    version = database.version()
    if version != VERSION:
        raise StoreError(
            f"{database.shown} has schema {version or 'none'}, which a follower cannot upgrade; expected {VERSION}: "
            "first start a writing process of this version, then wait until the standby has caught up"
        )
