"""Paths and URLs of databases: parsing, and display without passwords."""

from __future__ import annotations

import re

from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from evenmatch.errors import UsageError

PASSWORD = re.compile(r"(?<=://)([^:/]*:)[^@]*(?=@)|([?&]\w*password=)[^&]*")
EXPECTED = (
    "expected a file such as evenmatch.db, or a URL such as sqlite:///evenmatch.db or postgresql://user@host/name"
)


def parse_url(text: str) -> URL:
    """Parse a database path (SQLite) or URL. Raises UsageError if it is neither."""
    if not text.strip():
        raise UsageError(f"the database name is empty; {EXPECTED}")
    if "://" not in text:
        url = URL.create("sqlite", database=text)
    else:
        try:
            url = make_url(text)
        except (exc.ArgumentError, ValueError):  # also for an invalid port
            raise UsageError(f"{without_password(text)!r} is not a database; {EXPECTED}") from None
    backend = url.get_backend_name()
    if backend == "postgres":
        backend = "postgresql"
    drivers = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
    if backend not in drivers:
        raise UsageError(f"{url.render_as_string(hide_password=True)!r} is not a supported database; {EXPECTED}")
    if backend == "sqlite" and (url.database in (None, "", ":memory:") or str(url.database).startswith("file:")):
        raise UsageError(f"{text!r} is not a file; {EXPECTED}")
    return url.set(drivername=drivers[backend])


def shown_url(url: URL) -> str:
    """The URL of a PostgreSQL database for messages, without driver and password."""
    return without_password(url.set(drivername="postgresql").render_as_string(hide_password=True))


def without_password(text: str) -> str:
    """Remove the password from a URL, even from a malformed one."""
    return PASSWORD.sub(r"\1\2***", text)
