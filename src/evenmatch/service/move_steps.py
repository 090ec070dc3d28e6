"""The steps of a move: copy all rows while the source takes writes, follow its changes, compare, switch over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from evenmatch.errors import EvenmatchError, MoveError, StoreError
from evenmatch.ledger import live_schema, move_log  # noqa: F401 - the tables of live_schema join the others
from evenmatch.ledger.database import Database
from evenmatch.ledger.move_marks import (
    MoveMark,
    close_source,
    confirm,
    finish_source,
    finish_target,
    reopen_source,
    snapshot,
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
from evenmatch.service.replay.verification import Verification, verify

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
