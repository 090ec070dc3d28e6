"""Opaque cursors: where a page ended, as text that goes into an address."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from typing import Any

from evenmatch.errors import UsageError

LONGEST = 1024
LARGEST = 2**62  # what a database can hold, and more


def write_cursor(*values: float | str) -> str:
    """Where a page ended."""
    return urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def read_cursor(text: str, *kinds: type) -> tuple[float | str, ...]:
    """What `write_cursor` wrote, of these types. Raises UsageError for anything else."""
    values = _parse(text)
    is_ours = isinstance(values, list) and [type(one) for one in values] == list(kinds)
    if not is_ours or not all(_fits(one) for one in values):
        raise UsageError(f"cursor {text[:50]!r}: accepted is the `next` of a page before, as it came")
    return tuple(values)


def _fits(value: float | str) -> bool:
    """Whether a database can hold it."""
    if isinstance(value, str):
        return "\0" not in value and value.encode(errors="ignore").decode() == value
    return math.isfinite(value) and (isinstance(value, float) or abs(value) < LARGEST)


def _parse(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """What stands in a cursor; None where it is none."""
    if len(text) > LONGEST or not text.isascii():
        return None
    try:
        return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, Error, RecursionError):
        return None
