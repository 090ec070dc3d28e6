"""Move a whole database into another one, of the same or the other kind, while it is in use."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenmatch.errors import EvenmatchError, MoveError, StoreError, UsageError
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.move_marks import (
    MoveMark,
    MoveState,
    begin_source,
    drop_tables,
    finish_target,
    is_empty,
    mark_target,
    read_mark,
    release_source,
    take_over_target,
)
from evenmatch.ledger.tables import secret_checks
from evenmatch.service.move_steps import MovedTable, MoveSteps, Reporting
from evenmatch.service.replay.verification import Verification


@dataclass(frozen=True)
class Move:
    """The result of a move.

    source, target  as one would type them, without passwords
    tables   as they were compared; empty if an earlier run did that
    changed  rows that changed while they were copied or after they were compared, each compared by itself
    ladders  the verification of each, in the target; empty if an earlier run did that
    pause    seconds in which neither database took writes; None: an earlier run of the command began them
    secret   where the processes on the target look for the master secret; None: nowhere, or they need none
    needs_secret  whether values are sealed
    """

    source: str
    target: str
    tables: tuple[MovedTable, ...]
    changed: int
    ladders: tuple[Verification, ...]
    pause: float | None
    secret: str | None
    needs_secret: bool


def move(source: str, target: str, reporting: Reporting, *, restart: bool = False) -> Move:
    """Copy a database into an empty one, compare them, verify the ladders, and let the source refuse writes for ever.

    The source takes writes until the last of them are copied. A call that did not return can be repeated, and goes on.
    restart  drop what an unfinished move has copied into the target
    Raises UsageError, StoreError or SecretError, before anything is changed, if the move cannot begin; MoveError if it
    began and is not finished.
    """
    with _opened(source) as old, _opened(target) as new:
        _check_source(old, source)
        _check_secret(old, new)
        mark = _begin(old, new, restart=restart)
        steps = MoveSteps(old, new, mark, reporting)
        tables: tuple[MovedTable, ...] = ()
        ladders: tuple[Verification, ...] = ()
        pause = None
        try:
            if mark.state is MoveState.MOVED:  # all was compared and verified
                _finish(new, mark)
            else:
                steps.copy()
                tables, ladders = steps.compare(), steps.verify()
                steps.count()
                steps.follow()
                _copy_secret(old, new)
                pause = steps.switch(lambda: _check_last(old, new, source))
        except EvenmatchError as error:
            raise MoveError(
                f"{error}. The move is not finished, and {old.shown} {_describe(old)}: type the same command again to "
                "go on, or add --cancel to end the move"
            ) from error
        needs_secret = _stored_check(old) is not None
        return Move(old.shown, new.shown, tables, steps.changed, ladders, pause, new.master.place, needs_secret)


def cancel(source: str, target: str, confirm: Callable[[str], None]) -> None:
    """Let the source of a move take writes again, if it does not, and drop what was copied into the target.

    confirm  called with a question if the move was finished; raises an exception if the answer is no
    """
    with _opened(source) as old, _opened(target) as new:
        _check_source(old, source)
        mark = _mark_of(old)
        if mark is None:
            raise UsageError(f"{old.shown} is not being moved, so that there is nothing to cancel")
        if mark.other != _address(new):
            raise UsageError(f"{old.shown} is the source of a move to {mark.other}; expected --to {mark.other}")
        failure = None
        try:
            is_unfinished = _is_unfinished(new, mark)
            if is_unfinished:  # no other run of the command can finish the move from now on
                with new.write(patient=True) as store:
                    take_over_target(store, mark._replace(run=secrets.token_hex(8)))
        except MoveError:
            raise
        except StoreError as error:  # it may be lost for ever, and the source must go on
            is_unfinished, failure = False, error
        if mark.state is MoveState.MOVED and not is_unfinished:
            confirm(
                f"{old.shown} was moved to {mark.other}, which may have taken writes since. Let the old database take "
                "writes again, without them?"
            )
        release_source(old)
        if failure is not None:
            raise StoreError(f"{old.shown} takes writes again, but the target could not be emptied: {failure}")
        if is_unfinished:
            with new.write(patient=True) as store:
                drop_tables(store)


def check_served(database: Database) -> None:
    """Raise MoveError if the database was moved: its processes could only refuse writes."""
    mark = _mark_of(database)
    if mark is not None and mark.state is MoveState.MOVED:
        raise MoveError(f"{database.shown} was moved to {mark.other}; serve that one")


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
    """The mark of the source, after both were marked; if the move had begun before, with a new run."""
    known = _mark_of(source)
    is_going_on = known is not None and _is_unfinished(target, known)
    if known is not None and known.state is MoveState.MOVED and not is_going_on:
        raise MoveError(f"{source.shown} was moved to {known.other} before; serve that one")
    if known is not None and known.state is not MoveState.MOVED:
        if known.other != _address(target) and not restart:
            raise UsageError(
                f"{source.shown} is being moved to {known.other}; expected --to {known.other}, or --restart to move it "
                "to another database"
            )
        if restart and target.version() == UNFINISHED:
            is_going_on = False
    if known is not None and is_going_on:
        return _go_on(source, target, known)
    if restart and target.version() == UNFINISHED:
        with target.write(patient=True) as store:
            drop_tables(store)
    _check_target(target)
    return _mark_both(source, target)


def _go_on(source: Database, target: Database, known: MoveMark) -> MoveMark:
    is_moved = known.state is MoveState.MOVED
    mark = known._replace(state=known.state if is_moved else MoveState.COPYING, run=secrets.token_hex(8))
    with target.write(patient=True) as store:
        take_over_target(store, mark)
    if not is_moved:
        begin_source(source, mark)
    return mark


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
    number, run = secrets.token_hex(8), secrets.token_hex(8)
    if target.version() is None:
        Database.open(target.address).close()  # creates the schema
    with target.write() as store:
        mark_target(store, MoveMark(number, MoveState.UNFINISHED, _address(source), run))
    mark = MoveMark(number, MoveState.COPYING, _address(target), run)
    try:
        begin_source(source, mark)
    except EvenmatchError:
        with target.write(patient=True) as store:
            drop_tables(store)
        raise
    return mark


def _check_last(source: Database, target: Database, typed: str) -> None:
    """Raise an error if the source was upgraded, or its master secret replaced, since the move began."""
    _check_source(source, typed)
    _check_secret(source, target)


def _finish(target: Database, mark: MoveMark) -> None:
    with target.write() as store:
        finish_target(store, mark)


def _describe(source: Database) -> str:
    """The state of the source of a move that failed, for the end of a message."""
    try:
        mark = _mark_of(source)
    except StoreError:
        return "cannot be reached"
    is_open = mark is None or mark.state is MoveState.COPYING
    return "goes on taking writes" if is_open else "takes no writes meanwhile"
