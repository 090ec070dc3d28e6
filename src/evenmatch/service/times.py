"""Times as text, for people and files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_time(micros: int) -> str:
    """Microseconds since the epoch as ISO 8601 in UTC: 2026-11-21T18:30:00Z."""
    return f"{(_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat()}Z"
