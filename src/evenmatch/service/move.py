"""Move a whole database into another one, of the same or the other kind, and compare both bit for bit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenmatch.errors import EvenmatchError, MoveError, StoreError, UsageError
from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.move_marks import (
    MoveMark,
    MoveState,
    close_source,
    drop_tables,
    finish_target,
    is_empty,
    mark_target,
    open_source,
    read_mark,
)
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.table_copy import Counted, analyze, continue_numbers, copy_rows, count_rows, digest
from evenmatch.ledger.tables import secret_checks
from evenmatch.service.replay.verification import Verification, verify

# Opens the report of one part of the work, with its number of rows or events; yields a function to call with the
# completed part.
Reporting = Callable[[str, int | None], AbstractContextManager[Callable[..., None]]]


@dataclass(frozen=True)
class MovedTable:
    """A table that is equal in both databases. digest: of all its rows, hexadecimal."""

    table: str
    rows: int
    digest: str


@dataclass(frozen=True)
class Move:
    """The result of a move.

    source, target  as one would type them, without passwords
    ladders  the verification of each, in the target
    secret   where the processes on the target look for the master secret; None: nowhere, or they need none
    needs_secret  whether values are sealed
    """

    source: str
    target: str
    tables: tuple[MovedTable, ...]
    ladders: tuple[Verification, ...]
    secret: str | None
    needs_secret: bool


def move(source: str, target: str, reporting: Reporting, *, restart: bool = False) -> Move:
    """Copy a database into an empty one, compare them, verify the ladders, and let the source refuse writes for ever.

    The source refuses writes as soon as copying begins. A call that did not return can be repeated, and goes on.
    restart  drop what an unfinished move has copied into the target
    Raises UsageError, StoreError or SecretError, before anything is changed, if the move cannot begin; MoveError if it
    began and is not finished.
    """
    with _opened(source) as old, _opened(target) as new:
        _check_source(old, source)
        _check_secret(old, new)
        mark = _begin(old, new, restart=restart)
        try:
            _copy(old, new, reporting)
            tables = _compare(old, new, reporting)
            ladders = _verify(new, reporting)
            _finish(old, new, mark)
        except EvenmatchError as error:
            raise MoveError(
                f"{error}. The move is not finished, and {old.shown} takes no writes meanwhile: type the same command "
                "again to go on, or add --cancel to end the move"
            ) from error
        return Move(old.shown, new.shown, tables, ladders, new.master.place, _stored_check(old) is not None)


def cancel(source: str, target: str, confirm: Callable[[str], None]) -> None:
    """Let the source of a move take writes again, and drop what was copied into the target.

    confirm  called with a question if the move was finished; raises an exception if the answer is no
    """
    with _opened(source) as old, _opened(target) as new:
        _check_source(old, source)
        mark = _mark_of(old)
        if mark is None:
            raise UsageError(f"{old.shown} is not being moved, so that there is nothing to cancel")
        if mark.other != _address(new):
            raise UsageError(f"{old.shown} is the source of a move to {mark.other}; expected --to {mark.other}")
        try:
            is_unfinished, failure = _is_unfinished(new, mark), None
        except StoreError as error:  # it may be lost for ever, and the source must go on
            is_unfinished, failure = False, error
        if mark.state is MoveState.MOVED and not is_unfinished:
            confirm(
                f"{old.shown} was moved to {mark.other}, which may have taken writes since. Let the old database take "
                "writes again, without them?"
            )
        with old.write() as store:
            open_source(store)
        if failure is not None:
            raise StoreError(f"{old.shown} takes writes again, but the target could not be emptied: {failure}")
        if is_unfinished:
            with new.write(patient=True) as store:
                drop_tables(store)


def check_served(database: Database) -> None:
    """Raise MoveError if the database is the source of a move: its processes could only refuse writes."""
    mark = _mark_of(database)
    if mark is not None and mark.state is MoveState.MOVED:
        raise MoveError(f"{database.shown} was moved to {mark.other}; serve that one")
    if mark is not None:
        raise MoveError(f"{database.shown} is being moved to {mark.other}; serve that one when the move is finished")


@contextmanager
def _opened(text: str) -> Iterator[Database]:
    """The database, neither created nor upgraded."""
    database = Database(parse_url(text))
    try:
        yield database
    finally:
        database.close()


def _check_source(source: Database, typed: str) -> None:
    """Raise UsageError or StoreError unless the source is a whole database of this version."""
    if source.url.get_backend_name() == "sqlite" and not Path(source.url.database or "").exists():
        raise UsageError(f"{typed}: there is no such database; expected an existing one as --from")
    version = source.version()
    if version is None:
        raise UsageError(f"{source.shown} is empty; expected a database with ladders as --from")
    if version == UNFINISHED:
        raise MoveError(f"{source.shown}: a move into this database is not finished, so that it cannot be moved itself")
    if version != VERSION:
        raise StoreError(
            f"{source.shown}: its schema is {version}; expected {VERSION}, that of this evenmatch. Upgrade it first: "
            "end the processes of the other version, and start evenmatch serve once"
        )


def _stored_check(source: Database) -> bytes | None:
    with source.read() as store:
        return secret_checks.read(store)


def _check_secret(source: Database, target: Database) -> None:
    """Raise SecretError if the processes on the target would have another master secret than the source."""
    stored, place = _stored_check(source), target.master.place
    is_missing = place is None or (place == str(target.master.file) and not Path(place).exists())
    if stored is None:
        return
    if is_missing and target.master.file is not None:
        source.master.sealer()  # raises SecretError: it will be copied
    if not is_missing and not target.master.sealer().is_checked_by(stored):
        raise target.master.mismatch()


def _copy_secret(source: Database, target: Database) -> None:
    """Put the master secret beside an SQLite database, if it is beside the source."""
    beside, place = target.master.file, source.master.place
    if beside is not None and target.master.place == str(beside) and not beside.exists() and place is not None:
        target.master.write(Path(place).read_text(encoding="utf-8").strip())


def _address(database: Database) -> str:
    is_sqlite = database.url.get_backend_name() == "sqlite"
    return str(Path(database.url.database or "").resolve()) if is_sqlite else database.shown


def _mark_of(database: Database) -> MoveMark | None:
    with database.read() as store:
        return read_mark(store)


def _is_unfinished(target: Database, mark: MoveMark) -> bool:
    """Whether this move into the target is not finished."""
    own = _mark_of(target)
    return own is not None and (own.state, own.move) == (MoveState.UNFINISHED, mark.move)


def _begin(source: Database, target: Database, *, restart: bool) -> MoveMark:
    """The mark of the source, after both were marked, unless the move had begun before."""
    known = _mark_of(source)
    is_going_on = known is not None and _is_unfinished(target, known)
    if known is not None and known.state is MoveState.MOVED:
        if not is_going_on:
            raise MoveError(f"{source.shown} was moved to {known.other} before; serve that one")
        return known  # all was copied and verified
    if known is not None and known.other != _address(target) and not restart:
        raise UsageError(
            f"{source.shown} is being moved to {known.other}; expected --to {known.other}, or --restart to move it to "
            "another database"
        )
    if restart and target.version() == UNFINISHED:
        with target.write(patient=True) as store:
            drop_tables(store)
    elif known is not None and is_going_on:
        return known
    _check_target(target)
    return _mark_both(source, target)


def _check_target(target: Database) -> None:
    """Raise UsageError or MoveError unless the target is empty."""
    version = target.version()
    if version is None:
        return
    with target.read() as store:
        has_rows = not is_empty(store) if version in (VERSION, UNFINISHED) else True
        mark = read_mark(store)
    if version == UNFINISHED and has_rows and mark is not None:
        raise MoveError(
            f"{target.shown} contains a part of another move, from {mark.other}; finish that, or add --restart to drop "
            "what was copied"
        )
    if has_rows or (mark is not None and mark.state is not MoveState.UNFINISHED):
        raise UsageError(f"{target.shown} is not empty; expected an empty database as --to")


def _mark_both(source: Database, target: Database) -> MoveMark:
    number = secrets.token_hex(8)
    if target.version() is None:
        Database.open(target.address).close()  # creates the schema
    with target.write() as store:
        mark_target(store, MoveMark(number, MoveState.UNFINISHED, _address(source)))
    mark = MoveMark(number, MoveState.COPYING, _address(target))
    try:
        close_source(source, mark)
    except EvenmatchError:
        with target.write(patient=True) as store:
            drop_tables(store)
        raise
    return mark


def _copy(source: Database, target: Database, reporting: Reporting) -> None:
    tables = METADATA.sorted_tables
    counts = {table.name: count_rows(source, table) for table in tables}
    done = {table.name: count_rows(target, table) for table in tables}
    with reporting(f"copying {source.shown} to {target.shown}", sum(counts.values())) as progress:
        count = _counter(progress, sum(done.values()))
        for table in tables:
            copy_rows(source, target, table, count)
            continue_numbers(source, target, table)
    analyze(target)


def _compare(source: Database, target: Database, reporting: Reporting) -> tuple[MovedTable, ...]:
    tables = METADATA.sorted_tables
    counts = {table.name: count_rows(source, table) for table in tables}
    moved = []
    with reporting("comparing the rows of both", 2 * sum(counts.values())) as progress:
        count = _counter(progress, 0)
        for table in tables:
            digests = [digest(database, table, count) for database in (source, target)]
            if digests[0] != digests[1]:
                raise StoreError(f"table {table.name} of {target.shown} is not equal to that of {source.shown}")
            moved.append(MovedTable(table.name, counts[table.name], digests[0]))
    return tuple(moved)


def _counter(progress: Callable[..., None], done: int) -> Counted:
    def count(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done)

    return count


def _verify(target: Database, reporting: Reporting) -> tuple[Verification, ...]:
    with target.read() as store:
        heads = store.heads()
    results = []
    for head in heads:
        with reporting(f"verifying {head.name}", head.position) as progress:
            result = verify(target, head.name, progress)
        for finding in [*result.damage, *result.differences][:1]:
            raise StoreError(
                f"ladder {head.name}: {finding}; the copy is like the original, in which evenmatch verify shows all "
                "findings and what repairs them"
            )
        results.append(result)
    return tuple(results)


def _finish(source: Database, target: Database, mark: MoveMark) -> None:
    """Mark the source as moved, then make the target a database like any other.

    In this order no moment has two databases that take writes.
    """
    _copy_secret(source, target)
    with target.write() as store:  # what was copied is durable with this transaction
        mark_target(store, MoveMark(mark.move, MoveState.UNFINISHED, _address(source)))
    close_source(source, mark._replace(state=MoveState.MOVED))
    with target.write() as store:
        finish_target(store)
