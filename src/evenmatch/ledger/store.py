"""A connection to the database inside a transaction, and the head of a ladder, where reading its data starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa

from evenmatch.errors import DamageError, UnknownNameError
from evenmatch.ledger.plan_cache import PlanCache
from evenmatch.ledger.rows import Row, Rows, Statement, Values
from evenmatch.ledger.secrets import MasterSecret


class Head(NamedTuple):
    """The head of a ladder's ledger: its last position and the current generation of ratings.

    position   of the last event;  corrected  of the last correction
    due        position from which a rebuild is needed; None: no rebuild needed
    planned    the last correction included in the generation
    time       effective time of its last rated match; None: no rated match
    names      counter of renamed, merged and erased players
    engine     fingerprint of the kernels that started the generation
    sample     of the ratings of the season's players, packed; None: none was taken
    learned    the system's records of the ladder, packed; None: as before the first match
    seal       of the last event, see seals.py; None: there is no event yet
    """

    ladder: int
    name: str
    position: int
    generation: int
    corrected: int
    due: int | None
    settings: str
    divided_at: int
    system: str
    engine: str
    planned: int
    time: int | None
    names: int
    sample: bytes | None = None
    learned: bytes | None = None
    seal: bytes | None = None


_HEAD = (
    "SELECT l.ladder, l.name, l.position, l.generation, l.corrected, l.due, l.settings, l.divided_at, "
    "g.system, g.engine, g.planned, g.time, COALESCE((SELECT value FROM counter WHERE name = 'names'), 0), g.sample, "
    "g.learned, l.seal "
    "FROM ladder l JOIN generation g ON g.ladder = l.ladder AND g.generation = l.generation"
)


@dataclass(frozen=True)
class Store:
    """A connection inside a transaction, with the bulk operations of its database.

    master  the master secret, with which some columns are sealed
    plans   the process's cache of plans
    uncommitted  the ladders to which this transaction has added corrections: it may still be rolled back
    """

    connection: sa.Connection
    rows: Rows
    master: MasterSecret
    plans: PlanCache
    uncommitted: set[int] = field(default_factory=set)

    def all(self, sql: str, *values: object) -> list[Row]:
        """Run a SELECT with `?` placeholders and return its rows."""
        return self.rows.all(self.connection, sql, *values)

    def among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> list[Row]:
        """Run a SELECT with `IN ({})` for `values`, after `?` placeholders for `first`; no rows without values."""
        return self.rows.among(self.connection, sql, first, values)

    def run_among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> None:
        """Run a statement that returns no rows, with the placeholders of `among`; none without values."""
        self.rows.run_among(self.connection, sql, first, values)

    def each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Return the rows of each of these SELECTs, whose columns have the same types, in one round trip."""
        return self.rows.each(self.connection, statements)

    def run(self, sql: str, *values: object) -> None:
        """Run a statement with `?` placeholders."""
        self.rows.run(self.connection, sql, *values)

    def insert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows with these columns."""
        self.rows.insert(self.connection, table, columns, rows)

    def upsert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, same: bool = False) -> None:
        """Insert or replace rows by primary key; `same`: keep existing rows unchanged."""
        self.rows.upsert(self.connection, table, columns, rows, same=same)

    def update(self, table: sa.Table, key: Sequence[str], columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Set columns of existing rows, which have the values of `key` and then of `columns`."""
        self.rows.update(self.connection, table, key, columns, rows)

    def insert_columns(
        self, table: sa.Table, same: Mapping[str, object], columns: Mapping[str, Values], *, replacing: bool = False
    ) -> None:
        """Insert rows that are given by column, see Rows.insert_columns."""
        self.rows.insert_columns(self.connection, table, same, columns, replacing=replacing)

    def together(self, most: int) -> AbstractContextManager[object]:
        """Collect the writes inside the block: see Rows.together."""
        return self.rows.together(self.connection, most)

    def heads(self) -> list[Head]:
        """The heads of all ladders, by name."""
        return [Head(*row) for row in self.all(f"{_HEAD} ORDER BY l.name")]

    def head(self, name: str) -> Head:
        """The head of a ladder. Raises UnknownNameError for an unknown ladder."""
        return self._head(name, self.all(f"{_HEAD} WHERE l.name = ?", name))

    def lock(self, name: str, begin: Sequence[str] = ()) -> Head:
        """Like `head`, and lock the ladder and names against other writers until the transaction ends.

        begin  statements that begin the transaction, if it has not begun yet
        """
        return self._head(name, self.rows.lock(self.connection, name, begin, f"{_HEAD} WHERE l.name = ?", name))

    def _head(self, name: str, rows: list[Row]) -> Head:
        if not rows:
            names = [row[0] for row in self.all("SELECT name FROM ladder ORDER BY name")]
            if name in names:
                raise DamageError(
                    f"the live generation of ladder {name!r} is missing; `evenmatch verify` shows what is damaged; "
                    "restore a backup"
                )
            raise UnknownNameError("ladder", name, names)
        return Head(*rows[0])
