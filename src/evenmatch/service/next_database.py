"""The database into which another one is moved, for a process that goes on with it when the move has ended."""

from __future__ import annotations

from pathlib import Path

from evenmatch.errors import MoveError, StoreError
from evenmatch.ledger.database import UNFINISHED, VERSION, Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.move_marks import MoveState, read_mark
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import events
from evenmatch.service import master_secret
from evenmatch.service.service import Service


class NextDatabase:
    """The target of a move, and whether it can be served.

    database  the source, which is served now;  address  path or URL of the target
    Raises UsageError for an invalid address, StoreError for a server that cannot be reached.
    """

    def __init__(self, database: Database, address: str) -> None:
        self._database, self._address = database, address
        next_database = Database(parse_url(address))
        try:
            if not _is_missing_file(next_database):
                next_database.version()
        finally:
            next_database.close()

    def is_moving(self) -> bool:
        """Whether the source is being moved, or was moved."""
        return self._state() is not None

    def open(self) -> Service | None:
        """Open the target when the source is marked as moved and the target as whole; None: not yet.

        Raises MoveError if the database at the address is not the target, SecretError if this process does not have
        the master secret of it, StoreError if it cannot be read.
        """
        if self._state() is not MoveState.MOVED:
            return None
        target = Database(parse_url(self._address))
        try:
            version = None if _is_missing_file(target) else target.version()
            if version == UNFINISHED:
                return None
            if version != VERSION or not self._has_all_events(target):
                raise MoveError(f"{target.shown} is not the database to which {self._database.shown} was moved")
            if not master_secret.is_current(target):
                raise target.master.mismatch()
        finally:
            target.close()
        return Service.open(self._address)

    def _state(self) -> MoveState | None:
        with self._database.read() as store:
            mark = read_mark(store)
        return None if mark is None else mark.state

    def _has_all_events(self, target: Database) -> bool:
        """Whether the last event of every ladder is in the target, with the same seal, and thus all before it."""
        with self._database.read() as store, target.read() as moved:
            for head in store.heads():
                if head.position and not _is_same_event(store, moved, head.ladder, head.position):
                    return False
        return True


def _is_same_event(store: Store, moved: Store, ladder: int, position: int) -> bool:
    try:
        return events.read_seal(store, ladder, position) == events.read_seal(moved, ladder, position)
    except StoreError:
        return False


def _is_missing_file(database: Database) -> bool:
    return database.url.get_backend_name() == "sqlite" and not Path(database.url.database or "").exists()
