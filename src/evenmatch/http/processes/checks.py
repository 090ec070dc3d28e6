"""Where several serving processes at one port are possible."""

from __future__ import annotations

import sys

from evenmatch.errors import UsageError
from evenmatch.service.database_kind import is_postgresql


def check_supported(workers: int, database: str, next_database: str | None = None) -> None:
    """Raise UsageError where several serving processes cannot share a database, of this path or URL."""
    if workers == 1:
        return
    if sys.platform == "win32":
        raise UsageError(f"--workers is {workers}; expected 1, since this system cannot share a listening socket")
    if not is_postgresql(database):
        raise UsageError(
            f"--workers is {workers}, and the database is an SQLite file; expected 1. SQLite has one writer at a time, "
            "which one process keeps busy, and tells other processes of no change. Take PostgreSQL for several "
            "(evenmatch move copies the database), or leave --workers and EVENMATCH_WORKERS out"
        )
    if next_database is not None and not is_postgresql(next_database):
        raise UsageError(
            f"--workers is {workers}, and --next-db is an SQLite file; expected 1, or a postgresql:// URL: one process "
            "at a time serves a file"
        )
