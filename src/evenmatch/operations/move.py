"""The steps of a move: copy all rows while the source takes writes, follow its changes, compare, switch over."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenmatch.corrections.verification import Verification, verify
from evenmatch.errors import EvenmatchError, MoveError, StoreError, UsageError
from evenmatch.ledger import (
    live_schema,  # noqa: F401 - the tables of live_schema join the others
    move_log,
    secret_checks,
)
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.move_marks import (
    MoveMark,
    MoveState,
    begin_source,
    close_source,
    confirm,
    drop_tables,
    finish_source,
    finish_target,
    is_empty,
    mark_target,
    read_mark,
    release_source,
    reopen_source,
    snapshot,
    take_over_target,
)
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.store import Store
from evenmatch.ledger.table_copy import (
    Counted,
    analyze,
    continue_numbers,
    copy_rows,
    count_rows,
    digest_rows,
    replace_rows,
)

SHORT = 0.3  # seconds: the writes of a round that takes longer are followed by another one before the switch-over
LONGEST = 5.0  # seconds that the last of these rounds may take
ROUNDS = 20  # most of them

# Opens the report of one part of the work, with its number of rows or events; yields a function to call with the
# completed part.
Reporting = Callable[[str, int | None], AbstractContextManager[Callable[..., None]]]


@dataclass(frozen=True)
class MovedTable:
    """A table that is equal in both databases. digest: of all its rows, hexadecimal."""

    table: str
    rows: int
    digest: str


class MoveSteps:
    """The steps of one run of a move, to be taken in their order. Each raises EvenmatchError.

    changed  rows that were copied because they changed after they had been copied or compared
    """

    def __init__(self, source: Database, target: Database, mark: MoveMark, reporting: Reporting) -> None:
        self._source, self._target, self._mark, self._reporting = source, target, mark, reporting
        self._tables = METADATA.sorted_tables
        self.changed = 0

    def copy(self) -> None:
        """Copy the rows that the target does not have, then what has changed meanwhile."""
        with self._source.read() as store:
            total = sum(count_rows(store, table) for table in self._tables)
        with self._target.read() as store:
            done = sum(count_rows(store, table) for table in self._tables)
        with self._reporting(f"copying {self._source.shown} to {self._target.shown}", total) as progress:
            count = _counter(progress, done)
            for table in self._tables:
                with self._source.read() as reading:
                    copy_rows(reading, self._target, self._mark, table, count)
        with self._target.write() as store:  # what was copied is durable with this transaction
            confirm(store, self._mark)
        analyze(self._target)
        self.follow()

    def follow(self) -> None:
        """Copy what changes until a round is short. Raises StoreError if the source changes too fast for that."""
        took = 0.0
        with self._reporting("copying what has changed meanwhile", None) as progress:
            for _ in range(ROUNDS):
                began = time.monotonic()
                with snapshot(self._source, self._mark) as reading:
                    self._apply(reading)
                progress(self.changed)
                took = time.monotonic() - began
                if took < SHORT:
                    return
        if took > LONGEST:
            raise StoreError(
                f"{self._source.shown} changes faster than {self._target.shown} takes the changes: the last round took "
                f"{took:.0f} s; expected {LONGEST:.0f} s at most, as at a quieter time"
            )

    def compare(self) -> tuple[MovedTable, ...]:
        """Compare all rows of the source, as of one moment, with those of the target."""
        moved = []
        with snapshot(self._source, self._mark) as reading:
            self._apply(reading)
            with self._target.read() as copied:
                total = 2 * sum(count_rows(copied, table) for table in self._tables)
                with self._reporting("comparing the rows of both", total) as progress:
                    count = _counter(progress, 0)
                    for table in self._tables:
                        expected, present = (digest_rows(store, table, count) for store in (reading, copied))
                        if expected != present:
                            raise StoreError(
                                f"table {table.name} of {self._target.shown} is not equal to that of "
                                f"{self._source.shown}; add --restart to copy it again"
                            )
                        moved.append(MovedTable(table.name, *expected))
        return tuple(moved)

    def verify(self) -> tuple[Verification, ...]:
        """Verify every ladder in the target."""
        with self._target.read() as store:
            heads = store.heads()
        results = []
        for head in heads:
            with self._reporting(f"verifying {head.name}", head.position) as progress:
                result = verify(self._target, head.name, progress)
            for finding in [*result.damage, *result.differences][:1]:
                raise StoreError(
                    f"ladder {head.name}: {finding}; the copy is like the original, in which evenmatch verify shows "
                    "all findings and what repairs them"
                )
            results.append(result)
        return tuple(results)

    def count(self) -> None:
        """Compare the numbers of rows as of one moment, which shows changes that were not logged."""
        with snapshot(self._source, self._mark) as reading:
            self._apply(reading)
            with self._target.read() as copied:
                for table in self._tables:
                    expected, present = count_rows(reading, table), count_rows(copied, table)
                    if expected != present:
                        raise StoreError(
                            f"table {table.name} of {self._target.shown} has {present:,} rows, that of "
                            f"{self._source.shown} {expected:,}; add --restart to copy it again"
                        )

    def switch(self, check: Callable[[], None]) -> float:
        """Close the source, copy what has changed last, and open the target; return the seconds without writes.

        The source is marked as moved before the target opens: no moment has two databases that take writes. If
        anything fails before, the source takes writes again.
        check  called when the source takes no writes; raises an EvenmatchError if the target must not be opened
        """
        close_source(self._source, self._mark)
        began = time.monotonic()
        try:
            with snapshot(self._source, self._mark) as reading:
                self._apply(reading)
                check()
                self._finish_copy(reading)
            with self._source.write() as store:
                finish_source(store, self._mark)
        except BaseException as error:
            self._reopen(error)
            raise
        with self._target.write() as store:
            finish_target(store, self._mark)
        return time.monotonic() - began

    def _finish_copy(self, reading: Store) -> None:
        with self._target.write() as writing:
            confirm(writing, self._mark)
            continue_numbers(reading, writing)
            if reading.heads() != writing.heads():
                raise StoreError(f"the last events in {self._target.shown} are not those of {self._source.shown}")

    def _reopen(self, cause: BaseException) -> None:
        try:
            with self._source.write(patient=True) as store:
                reopen_source(store, self._mark)
        except EvenmatchError as error:
            raise MoveError(f"{cause}; and {self._source.shown} could not be opened again: {error}") from cause

    def _apply(self, reading: Store) -> None:
        """Let the target be as this snapshot of the source, for which it must have all rows that have not changed."""
        for changes in move_log.read(reading):
            with self._target.write(patient=True) as writing:
                confirm(writing, self._mark)
                for name, keys in changes.keys.items():
                    self.changed += replace_rows(reading, writing, METADATA.tables[name], keys)
            with self._source.write(patient=True) as store:
                confirm(store, self._mark)
                move_log.remove(store, changes.entries)


def _counter(progress: Callable[..., None], done: int) -> Counted:
    def count(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done)

    return count


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
