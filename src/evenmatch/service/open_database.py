"""Open an existing database."""

from __future__ import annotations

import shlex
from pathlib import Path

from evenmatch.errors import UsageError
from evenmatch.ledger.database_url import parse_url, without_password
from evenmatch.service.service import Service

__all__ = ("open_existing", "without_password")


def open_existing(text: str) -> Service:
    """Open the database at a path or URL. Raises UsageError for a missing SQLite file, which is not created."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise UsageError(
            f"{url.database}: there is no such database; name an existing one with --db or EVENMATCH_DB. "
            f"To create it: evenmatch ladder create NAME --system S --db {shlex.quote(text)}"
        )
    return Service.open(text)
