"""The interface of a transaction for the modules with SQL, and the head of a ladder's ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, ClassVar, NamedTuple

import sqlalchemy as sa
from numpy.typing import NDArray

from evenmatch.errors import DamageError, UnknownNameError
from evenmatch.ledger.plan_cache import PlanCache
from evenmatch.ledger.secrets import MasterSecret

Row = tuple[Any, ...]
Statement = tuple[str, tuple[object, ...]]  # SQL with `?` placeholders, and their values
Values = Sequence[object] | NDArray[Any]  # one for each row; of bytes of one length: an array of dtype V
NAMES = 0x6E616D65  # key of the advisory lock on player names
MASTER = 0x6D617374  # key of the advisory lock on the master secret


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


class Store(ABC):
    """A connection inside a transaction, and the operations in which SQLite and PostgreSQL differ.

    master  the master secret, with which some columns are sealed
    plans   the process's cache of plans
    uncommitted  the ladders to which this transaction has added corrections: it may still be rolled back
    shorten_idle_limit  an SQL expression that shortens the server's limit on idle time by the time that the statement
                        has waited for a lock, down to a sixth of the limit
    """

    shorten_idle_limit: ClassVar[str]

    def __init__(self, connection: sa.Connection, master: MasterSecret, plans: PlanCache) -> None:
        self.connection, self.master, self.plans = connection, master, plans
        self.uncommitted: set[int] = set()

    @property
    def driver(self) -> Any:  # noqa: ANN401 - of sqlite3 or psycopg
        """The connection of the driver: SQLAlchemy costs more than a small statement."""
        return self.connection.connection.driver_connection

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
        return self._head(name, self.lock_ladder(name, begin, f"{_HEAD} WHERE l.name = ?", name))

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

    @abstractmethod
    def insert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows with these columns."""

    @abstractmethod
    def upsert(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, same: bool = False) -> None:
        """Insert or replace rows by primary key; `same`: keep existing rows unchanged."""

    @abstractmethod
    def update(self, table: sa.Table, key: Sequence[str], columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Set columns of existing rows; each of `rows` has the values of `key`, which find it, and of `columns`.

        No two rows have the same key.
        """

    @abstractmethod
    def insert_columns(
        self, table: sa.Table, same: Mapping[str, object], columns: Mapping[str, Values], *, replacing: bool = False
    ) -> None:
        """Insert rows that are given by column.

        same  columns with the same value in every row
        replacing  replace existing rows, as `upsert` does
        """

    @abstractmethod
    def among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> list[Row]:
        """Run a SELECT with `IN ({})` for `values`, after `?` placeholders for `first`.

        Returns no rows if `values` is empty.
        """

    @abstractmethod
    def run_among(self, sql: str, first: Sequence[object], values: Sequence[int] | Sequence[str]) -> None:
        """Run a statement that returns no rows, with the placeholders of `among`; none if `values` is empty."""

    @abstractmethod
    def by_key(self, sql: str, first: Sequence[object], values: Sequence[str]) -> Statement:
        """A statement like that of `among`, for one or more values that each select at most one row.

        It does an index lookup for each value.
        """

    @abstractmethod
    def each(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Return the rows of each of these SELECTs, whose columns have the same types, in one round trip."""

    @abstractmethod
    def create_players(self, names: Sequence[str]) -> dict[str, int]:
        """Create a player for each of these sorted, different names; return the ids of those created.

        None of the names had a player when this transaction looked; another writer may have created one since.
        """

    @abstractmethod
    def lock_ladder(self, ladder: str, begin: Sequence[str], sql: str, *values: object) -> list[Row]:
        """Lock the ladder and all names against changes by others, then run a SELECT and return its rows.

        begin  statements to be run before
        """

    @abstractmethod
    def hold(self, lock: int) -> None:
        """Take the lock NAMES or MASTER exclusively until the transaction ends; NAMES also blocks recording."""

    @abstractmethod
    def share(self, lock: int) -> None:
        """Take the lock MASTER shared until the transaction ends; `lock` and Database.write take NAMES this way."""

    @abstractmethod
    def together(self, most: int) -> AbstractContextManager[object]:
        """Collect the writes inside the block and execute them when it ends.

        A write may depend on earlier writes to its own table, but not on writes to other tables.
        most  the largest number of rows of one insert or upsert in the block
        """

    @abstractmethod
    def all(self, sql: str, *values: object) -> list[Row]:
        """Run a SELECT with `?` placeholders and return its rows."""

    @abstractmethod
    def stream(self, sql: str, *values: object, at_once: int) -> Generator[Row, None, None]:
        """Run a SELECT and yield its rows one by one; the connection can run no other statement meanwhile.

        at_once  the most rows in memory at a time
        """

    @abstractmethod
    def run(self, sql: str, *values: object) -> None:
        """Run a statement with `?` placeholders."""


@cache
def key_of(table: sa.Table) -> str:
    """The names of the columns of a table's primary key, separated by commas."""
    return ", ".join(column.name for column in table.primary_key)


@cache
def conflict(table: sa.Table, columns: tuple[str, ...], same: bool) -> str:
    """The ON CONFLICT clause of an upsert; `same`: keep existing rows unchanged."""
    key = [column.name for column in table.primary_key]
    changed = [column for column in columns if column not in key]
    if same or not changed:
        return f" ON CONFLICT ({key_of(table)}) DO NOTHING"
    return f" ON CONFLICT ({key_of(table)}) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in changed)}"
