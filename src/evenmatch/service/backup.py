"""A copy of a whole database, taken while others write."""

from __future__ import annotations

import os
import shlex
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from evenmatch.errors import StoreError, UsageError
from evenmatch.ledger.database import Database


def backup(database: Database, path: Path, *, replace: bool = False) -> int:
    """Copy an SQLite database as it is at this moment into a file, whole or not at all; its size in bytes.

    replace  take the place of a file that is there
    Raises UsageError for a path that cannot be written, and for PostgreSQL, which has a tool of its own.
    """
    if database.url.get_backend_name() != "sqlite":
        raise UsageError(f"PostgreSQL makes its own copies; type: {dump_line(database.shown, path)}")
    _check(database, path, replace)
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    os.close(handle)
    try:
        _copy(database, Path(draft), path)
        mask = os.umask(0)
        os.umask(mask)
        Path(draft).chmod(0o666 & ~mask)
        Path(draft).replace(path)
    except BaseException as error:
        for name in (draft, f"{draft}-journal", f"{draft}-wal", f"{draft}-shm"):
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StoreError(f"{path}: the copy could not be written: {error.strerror}") from error
        raise
    return path.stat().st_size


def _check(database: Database, path: Path, replace: bool) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} is not there; accepted is a file in a folder that is")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; accepted is the name of a file")
    if path.exists():
        if path.samefile(database.url.database or ""):
            raise UsageError(f"{path} is the database itself; accepted is another file")
        if not replace:
            raise UsageError(f"{path} is there already; accepted is a new name, or --replace")


def _copy(database: Database, draft: Path, path: Path) -> None:
    """Fill the draft, and leave it as one plain file that is safe on the disk."""
    with closing(sqlite3.connect(draft, isolation_level=None)) as target:
        with database.read() as connection:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            connection.exec_driver_sql("SELECT COUNT(*) FROM ladder")  # from here on the transaction sees one moment
            try:
                source.backup(target)
            except sqlite3.Error as error:
                raise StoreError(f"{path}: the copy could not be written: {error}") from error
        target.execute("PRAGMA journal_mode=DELETE")
    with draft.open("rb") as file:
        os.fsync(file.fileno())


def dump_line(shown: str, path: Path) -> str:
    """What to type for a copy of a PostgreSQL database; without the password, which pg_dump asks for."""
    plain = shown.replace("postgresql+psycopg://", "postgresql://").replace(":***@", "@")
    return f"pg_dump --format=custom --file={shlex.quote(str(path))} {shlex.quote(plain)}"
