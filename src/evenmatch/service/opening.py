"""Open a database that is there already."""

from __future__ import annotations

import shlex
from pathlib import Path

from evenmatch.errors import UsageError
from evenmatch.ledger.database import parse_url, without_password
from evenmatch.service.service import Service

__all__ = ("open_existing", "without_password")


def open_existing(text: str) -> Service:
    """The database at a path or URL. Raises UsageError for an SQLite file that is not there: it is not made."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise UsageError(
            f"{url.database}: there is no such database; accepted is one that is there, named by --db or EVENMATCH_DB. "
            f"To make it: evenmatch ladder create NAME --system S --db {shlex.quote(text)}"
        )
    return Service.open(text)
