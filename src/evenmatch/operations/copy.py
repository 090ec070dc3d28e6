"""Copy a database into an empty one of the same or the other kind, while no service writes to the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenmatch.corrections.verification import Verification, verify
from evenmatch.errors import StoreError, UsageError
from evenmatch.ledger import secret_rows
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.secrets import write_text
from evenmatch.ledger.table_copy import (
    TableDigest,
    analyze,
    continue_numbers,
    copy_rows,
    count_rows,
    digest_rows,
    drop_tables,
    is_empty,
    set_version,
)

# Opens the progress report of one part of the work, with its number of rows or events; yields a function to call with
# the number completed.
Reporting = Callable[[str, int | None], AbstractContextManager[Callable[..., None]]]


@dataclass(frozen=True)
class DatabaseCopy:
    """A finished copy. source, target: names for messages; tables: digests by table, equal in both databases.

    ladders  the verification of each ladder in the target
    secret   where the target's processes find the master secret; None: it must be set, because the source has one
    """

    source: str
    target: str
    tables: dict[str, TableDigest]
    ladders: tuple[Verification, ...]
    secret: str | None
    needs_secret: bool


def copy_database(source: str, target: str, reporting: Reporting, *, restart: bool = False) -> DatabaseCopy:
    """Copy every row, compare all tables bit for bit, and verify every ladder in the target.

    A call that did not return can be repeated; it continues after the last copied row. Until the copy is complete, no
    process opens the target.
    restart  drop what an unfinished copy has left in the target
    Raises UsageError or SecretError, before anything is changed, if the copy cannot begin; StoreError if the source
    was written to meanwhile, or if either database cannot be read or written.
    """
    with _opened(source) as old, _opened(target) as new:
        _check_source(old, source)
        needs_secret = _check_secret(old, new)
        _prepare(new, restart=restart)
        _copy(old, new, reporting)
        tables, ladders = _compare(old, new, reporting), _verify(new, reporting)
        _copy_secret(old, new)
        with old.read() as reading, new.write() as writing:
            if any(count_rows(reading, table) != tables[table.name].rows for table in METADATA.sorted_tables):
                raise _changed(old)
            continue_numbers(reading, writing)
            set_version(writing, VERSION)
        return DatabaseCopy(old.shown, new.shown, tables, ladders, new.master.place, needs_secret)


@contextmanager
def _opened(text: str) -> Iterator[Database]:
    """Open a database without creating or upgrading it."""
    database = Database(parse_url(text))
    try:
        yield database
    finally:
        database.close()


def _changed(source: Database) -> StoreError:
    return StoreError(
        f"{source.shown} was written to during the copy; stop its services, then copy again with --restart"
    )


def _check_source(source: Database, typed: str) -> None:
    """Raise UsageError or StoreError unless the source is a whole database of this version."""
    if source.url.get_backend_name() == "sqlite" and not Path(source.url.database or "").exists():
        raise UsageError(f"{typed}: there is no such database; expected an existing one as --from")
    version = source.version()
    if version is None:
        raise UsageError(f"{source.shown} is empty; expected a database with ladders as --from")
    if version != VERSION:
        raise StoreError(f"{source.shown}: its schema is {version}; expected {VERSION}, that of this evenmatch")


def _check_secret(source: Database, target: Database) -> bool:
    """Return whether the source has sealed values. Raises SecretError if the target has a different secret."""
    with source.read() as store:
        check = secret_rows.read_check(store)
    if check is None:
        return False
    if target.master.text() is None and target.master.file is not None:
        source.master.sealer()  # raises SecretError: it will be copied
    elif not secret_rows.fits(target.master.sealer(), check):
        raise target.master.mismatch()
    return True


def _copy_secret(source: Database, target: Database) -> None:
    """Copy the master secret into the file beside an SQLite target, unless the target has it already."""
    text = source.master.text()
    if text is not None and target.master.text() is None and target.master.file is not None:
        write_text(target.master.file, text)


def _prepare(target: Database, *, restart: bool) -> None:
    """Create the schema of an empty target and close it to other processes. Raises UsageError if it is not empty."""
    version = target.version()
    if version == UNFINISHED and not restart:
        return
    if version is not None:
        with target.write(patient=True) as store:
            if version != UNFINISHED and not (version == VERSION and is_empty(store)):
                raise UsageError(f"{target.shown} is not empty; expected an empty database as --to")
            drop_tables(store)
    Database.open(target.address).close()  # creates the schema
    with target.write() as store:
        set_version(store, UNFINISHED)


def _copy(source: Database, target: Database, reporting: Reporting) -> None:
    with source.read() as reading, target.read() as copied:
        total, done = (sum(count_rows(store, table) for table in METADATA.sorted_tables) for store in (reading, copied))
    with reporting(f"copying {source.shown} to {target.shown}", total) as progress:
        count = _counter(progress, done)
        with source.read() as reading:
            for table in METADATA.sorted_tables:
                copy_rows(reading, target, table, count)
    with target.write() as store:  # makes all batches durable
        set_version(store, UNFINISHED)
    analyze(target)


def _compare(source: Database, target: Database, reporting: Reporting) -> dict[str, TableDigest]:
    tables: dict[str, TableDigest] = {}
    with source.read() as reading, target.read() as copied:
        total = 2 * sum(count_rows(copied, table) for table in METADATA.sorted_tables)
        with reporting("comparing rows", total) as progress:
            count = _counter(progress, 0)
            for table in METADATA.sorted_tables:
                expected, present = (digest_rows(store, table, count) for store in (reading, copied))
                if expected != present:
                    raise StoreError(
                        f"table {table.name} differs: {source.shown} was written to since the copy began; stop its "
                        "services, then copy again with --restart"
                    )
                tables[table.name] = present
    return tables


def _verify(target: Database, reporting: Reporting) -> tuple[Verification, ...]:
    """Verify every ladder in the target. Raises StoreError for the first finding."""
    with target.read() as store:
        heads = store.heads()
    results = []
    for head in heads:
        with reporting(f"verifying {head.name}", head.position) as progress:
            result = verify(target, head.name, progress)
        for finding in [*result.damage, *result.differences][:1]:
            raise StoreError(
                f"ladder {head.name}: {finding}; the original has the same fault: run evenmatch verify on it to see "
                "all findings and how to repair them"
            )
        results.append(result)
    return tuple(results)


def _counter(progress: Callable[..., None], done: int) -> Callable[[int], None]:
    """Return a function that adds up rows and reports the total."""

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done)

    progress(done)
    return count
