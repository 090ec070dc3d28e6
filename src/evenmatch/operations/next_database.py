"""The database into which another one is moved, for a process that goes on with it when the move has ended."""

from __future__ import annotations

from pathlib import Path

from evenmatch.errors import MoveError, StoreError
from evenmatch.ladders.standings import SharedViews
from evenmatch.ledger import event_rows
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.move_marks import MoveState, read_mark
from evenmatch.ledger.store import Store
from evenmatch.operations import master_secret
from evenmatch.operations.clock import DatabaseClock
from evenmatch.operations.service import Service


class NextDatabase:
    """The target of a move, and whether it can be served. Use `close` unless `open` has returned a service.

    database  the source, which is served now;  address  path or URL of the target
    views     of the target's standings, that the processes of this machine share; None: they share none
    is_moving  whether the source was being moved, or was moved, at the last `open`
    Raises UsageError for an invalid address, StoreError for a server that cannot be reached.
    """

    def __init__(self, database: Database, address: str, views: SharedViews | None = None) -> None:
        self._database, self._target, self._views = database, Database(parse_url(address)), views
        self.is_moving = False
        try:
            self._version()
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections of the target."""
        self._target.close()

    def open(self) -> Service | None:
        """The service of the target when the source is marked as moved and the target is open; None: not yet.

        Raises MoveError if the database at the address is not the target, SecretError if this process does not have
        the master secret of it, StoreError if one of both cannot be read.
        """
        with self._database.read() as store:
            mark = read_mark(store)
        self.is_moving = mark is not None
        if mark is None or mark.state is not MoveState.MOVED:
            return None
        version = self._version()
        if version == UNFINISHED:
            return None
        if version != VERSION or not self._has_all_events():
            raise MoveError(f"{self._target.shown} is not the database to which {self._database.shown} was moved")
        if not master_secret.is_current(self._target):
            raise self._target.master.mismatch()
        return Service(self._target, DatabaseClock(self._target.time), self._views)

    def _version(self) -> str | None:
        url = self._target.url
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
            return None
        return self._target.version()

    def _has_all_events(self) -> bool:
        """Whether the last event of every ladder is in the target, with the same seal, and thus all before it."""
        with self._database.read() as store, self._target.read() as moved:
            heads = [head for head in store.heads() if head.position]
            return all(_is_same_event(store, moved, head.ladder, head.position) for head in heads)


def _is_same_event(store: Store, moved: Store, ladder: int, position: int) -> bool:
    expected = event_rows.read_seal(store, ladder, position)
    try:
        return event_rows.read_seal(moved, ladder, position) == expected
    except StoreError:
        return False
