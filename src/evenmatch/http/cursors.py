"""Opaque page cursors: the position where a page ended, as URL-safe text."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from typing import Annotated, Any

from fastapi import Query

from evenmatch.errors import UsageError
from evenmatch.players.matches import END_OF_LIST, ListKey

LONGEST = 1024
FIRST_PAGE = END_OF_LIST  # of a list of matches
LARGEST = 2**62  # more than any id, within the range of a 64-bit integer


def write_cursor(*values: float | str) -> str:
    """Encode the position where a page ended."""
    return urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def read_cursor(text: str, *kinds: type) -> tuple[float | str, ...]:
    """Decode a cursor of `write_cursor` with values of these types. Raises UsageError for other text."""
    values = _parse(text)
    is_ours = isinstance(values, list) and [type(value) for value in values] == list(kinds)
    if not is_ours or not all(_fits(value) for value in values):
        raise UsageError(f"cursor {text[:50]!r}: expected the `next` of a previous page, unchanged")
    return tuple(values)


def list_key(text: str | None) -> ListKey:
    """The key in lists of matches that a cursor stands for; None: the end. Raises as `read_cursor`."""
    if text is None:
        return FIRST_PAGE
    played_at, position = read_cursor(text, int, int)
    return ListKey(int(played_at), int(position))


def _fits(value: float | str) -> bool:
    """Whether a database can store the value."""
    if isinstance(value, str):
        return "\0" not in value and value.encode(errors="ignore").decode() == value
    return math.isfinite(value) and (isinstance(value, float) or abs(value) < LARGEST)


def _parse(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """The decoded JSON of a cursor; None if the text is not a cursor."""
    if len(text) > LONGEST or not text.isascii():
        return None
    try:
        return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, Error, RecursionError):
        return None


Limit = Annotated[int, Query(ge=1, le=500, description="Most items on a page.")]
Cursor = Annotated[str | None, Query(description="The `next` of the previous page.")]
