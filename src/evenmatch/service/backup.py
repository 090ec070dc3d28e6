"""Back up a database while it is in use."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NamedTuple

from evenmatch.errors import StoreError, UsageError
from evenmatch.ledger import sqlite_copy
from evenmatch.ledger.database import Database
from evenmatch.ledger.master_secret import SUFFIX
from evenmatch.service.master_secret import is_current, secret_place
from evenmatch.whole_file import whole_file


class Backup(NamedTuple):
    """A copy that was made.

    size    in bytes
    damage  a sentence for each ladder that the database has lost
    secret  the file with a copy of the master secret; None: it was not asked for, or nothing in the database is sealed
    """

    size: int
    damage: tuple[str, ...]
    secret: Path | None


def backup(database: Database, path: Path, *, replace: bool = False, with_secret: bool = False) -> Backup:
    """Copy an SQLite database as of now into a file, and read it back.

    replace      overwrite an existing file, unless the database has lost a ladder
    with_secret  also copy the master secret into the file beside `path` where a database at `path` looks for it
    The file has its name only when the copy is complete, on the disk and equal to the database. Raises StoreError if it
    is not.
    Raises UsageError for a path that cannot be written, that of a file which the database uses, and for PostgreSQL,
    which has its own tool (pg_dump). Raises SecretError, before anything is copied, if the secret is missing or wrong.
    """
    if database.url.get_backend_name() != "sqlite":
        raise UsageError(f"PostgreSQL has its own backup tool; type: {dump_line(database.shown, path)}")
    secret = Path(f"{path}{SUFFIX}") if with_secret and secret_place(database) is not None else None
    for file in (path,) if secret is None else (path, secret):
        _check(database, file, replace)
    if secret is not None and not is_current(database):
        raise database.master.mismatch()
    with whole_file(path) as draft:
        try:
            contents = sqlite_copy.copy_to(database, draft, path)
            sqlite_copy.check_copy(draft, path, contents)
            if contents.damage and path.exists():
                raise StoreError(
                    f"{path}: the former backup was not replaced, since the database is damaged: "
                    f"{'; '.join(contents.damage)}; restore a backup, or copy into a new file"
                )
        except OSError as error:
            raise StoreError(f"{path}: the copy could not be written: {error.strerror}") from error
        finally:
            for suffix in ("-journal", "-wal", "-shm"):
                Path(f"{draft}{suffix}").unlink(missing_ok=True)
    _flush_name(path.parent)
    if secret is not None:
        database.master.copy_to(secret)
    return Backup(path.stat().st_size, contents.damage, secret)


def _flush_name(folder: Path) -> None:
    """Flush a folder to the disk, so that a new name in it is kept after a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check(database: Database, path: Path, replace: bool) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; create it, or choose another one")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; expected the name of a file")
    if _is_same(path, Path(database.url.database or "")):
        raise UsageError(f"{path} is the database itself; choose another file")
    if any(_is_same(path, used) for used in _used_files(database)):
        raise UsageError(f"{path} is a file that the database uses; choose another one")
    if path.exists():
        if not path.is_file():
            raise UsageError(f"{path} is not a regular file; expected a new name, or a backup to replace")
        if not replace:
            raise UsageError(f"{path} exists already; choose a new name, or add --replace")


def _used_files(database: Database) -> list[Path]:
    """The files that SQLite keeps beside a database, and those of its master secret, whether they exist or not."""
    file = Path(database.url.database or "").resolve()
    return [*(Path(f"{file}{suffix}") for suffix in ("-journal", "-wal", "-shm")), *database.master.files]


def _is_same(path: Path, used: Path) -> bool:
    """Whether two paths lead to the same file, which need not exist."""
    return os.path.realpath(path) == os.path.realpath(used) or (path.exists() and used.exists() and path.samefile(used))


def dump_line(shown: str, path: Path) -> str:
    """The pg_dump command line for a PostgreSQL database, without the password, which pg_dump asks for."""
    plain = shown.replace("postgresql+psycopg://", "postgresql://").replace(":***@", "@")
    return f"pg_dump --format=custom --file={shlex.quote(str(path))} {shlex.quote(plain)}"
