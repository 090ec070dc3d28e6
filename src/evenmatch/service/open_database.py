"""Open an existing database, or one to serve."""

from __future__ import annotations

import shlex
from pathlib import Path

from evenmatch.errors import UsageError
from evenmatch.ledger.database import Database
from evenmatch.ledger.database_url import parse_url, without_password
from evenmatch.ledger.follower import open_follower
from evenmatch.service.clock import DatabaseClock
from evenmatch.service.queries.shared_views import SharedViews
from evenmatch.service.service import Service

__all__ = ("open_existing", "open_served", "without_password")


def open_existing(text: str) -> Service:
    """Open the database at a path or URL. Raises UsageError for a missing SQLite file, which is not created."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise UsageError(
            f"{url.database}: there is no such database; name an existing one with --db or EVENMATCH_DB. "
            f"To create it: evenmatch ladder create NAME --system S --db {shlex.quote(text)}"
        )
    return Service.open(text)


def open_served(text: str, views: Path | None = None, writes_at: str | None = None) -> Service:
    """Open the database at a path or URL to serve it; create it if it does not exist, and nothing is only read.

    views      private folder of standings that the processes of this machine share; None: they share none
    writes_at  only read, and refuse writes with a FollowerError that names this place; None: write, too
    """
    database = Database.open(text) if writes_at is None else open_follower(text, writes_at)
    return Service(database, DatabaseClock(database.time), None if views is None else SharedViews(views))
