"""The kind of a database, without opening it."""

from __future__ import annotations

from evenmatch.ledger.database_url import parse_url


def is_postgresql(text: str) -> bool:
    """Whether a path or URL is of a PostgreSQL database; SQLite is the other kind. Raises UsageError if it is none."""
    return parse_url(text).get_backend_name() == "postgresql"
