"""Opaque page cursors: the position where a page ended, as URL-safe text."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Query

from evenmatch.errors import UsageError
from evenmatch.players.matches import END_OF_LIST, ListKey

T = TypeVar("T")
LONGEST = 1024  # characters of a cursor
FIRST_PAGE = END_OF_LIST  # of a list of matches
LARGEST = 2**62  # above every id, and within 64 bits


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
    """Decode a cursor of a list of matches; None: the first page. Raises UsageError like `read_cursor`."""
    if text is None:
        return FIRST_PAGE
    played_at, position = read_cursor(text, int, int)
    return ListKey(int(played_at), int(position))


def number_of(text: str | None) -> int | None:
    """Decode a cursor of one number; None: the first page. Raises UsageError like `read_cursor`."""
    return None if text is None else int(read_cursor(text, int)[0])


def split_page(
    found: Sequence[T], limit: int, key: Callable[[T], tuple[float | str, ...]]
) -> tuple[Sequence[T], str | None]:
    """Return the first `limit` of the items found, and the cursor of the next page; None: there are no more items.

    key  the position in the list of an item
    """
    page = found[:limit]
    return page, write_cursor(*key(page[-1])) if len(found) > limit else None


def _fits(value: float | str) -> bool:
    """Whether a database can store the value."""
    if isinstance(value, str):
        return "\0" not in value and value.encode(errors="ignore").decode() == value
    return math.isfinite(value) and (isinstance(value, float) or abs(value) < LARGEST)


def _parse(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The decoded JSON of a cursor; None if the text is not a cursor."""
    if len(text) > LONGEST or not text.isascii():
        return None
    try:
        return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, Error, RecursionError):
        return None


Limit = Annotated[int, Query(ge=1, le=500, description="Most items on a page.")]
Cursor = Annotated[str | None, Query(description="The `next` of the previous page.")]
