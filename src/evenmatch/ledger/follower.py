"""A database that is opened for reading alone, perhaps a hot standby."""

from __future__ import annotations

from evenmatch.errors import StoreError
from evenmatch.ledger.database import VERSION, Database
from evenmatch.ledger.database_url import parse_url


def open_follower(text: str, writes_at: str) -> Database:
    """Open the database at a path or URL; every write is refused with a FollowerError that names `writes_at`.

    Raises UsageError for an invalid path or URL, StoreError if it cannot be opened or has another schema version.
    """
    database = Database(parse_url(text), writes_at=writes_at)
    try:
        _check_version(database)
    except BaseException:
        database.close()
        raise
    return database


def _check_version(database: Database) -> None:
    version = database.version()
    if version != VERSION:
        raise StoreError(
            f"{database.shown} has schema {version or 'none'}, which a follower cannot upgrade; expected {VERSION}: "
            "start a process of this version that writes first, and wait until the standby has followed"
        )
