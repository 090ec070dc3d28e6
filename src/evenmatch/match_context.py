"""The context of a match: what it was played on, as values by column, such as {"map": "dust", "mode": "duel"}."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from evenmatch.errors import InputError

Context = Mapping[str, str]
NO_CONTEXT: Context = MappingProxyType({})
MOST = 4  # columns of a match, and of those that a ladder reads
LONGEST_VALUE = 64  # characters
COLUMN = r"[A-Za-z_][A-Za-z0-9_]{0,31}"
# Columns with a meaning of their own in tables of matches, in the order in which these list them.
TAKEN = (
    *("match_id", "played_at", "ladder", "team", "player", "place", "team_score", "score"),
    *("seconds", "quit", "performance", "duration", "keep", "entry"),
)


def check_column(name: str) -> None:
    """Raise InputError for a name that no context column can have."""
    if re.fullmatch(COLUMN, name) is None:
        expected = "expected up to 32 letters from A to Z, digits and underscores, not first a digit"
        raise InputError(f"context column {name[:40]!r}: {expected}")
    if name in TAKEN:
        raise InputError(f"context column {name!r} has a meaning of its own; expected another name")


def check_context(context: Context) -> None:
    """Raise InputError for a context that cannot be stored."""
    if len(context) > MOST:
        raise InputError(f"the context has {len(context)} columns; expected at most {MOST}")
    for name, value in context.items():
        check_column(name)
        if len(value) > LONGEST_VALUE or not value.isprintable():
            raise InputError(
                f"context column {name!r} is {value[:20]!r}; expected at most {LONGEST_VALUE} printable characters"
            )


def write_context(context: Context) -> str | None:
    """The JSON text that is stored: equal contexts give equal text. An empty value is unknown; None: all are."""
    known = {name: value for name, value in context.items() if value}
    return json.dumps(known, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if known else None


def read_context(text: str | None) -> dict[str, str]:
    """Parse what `write_context` returned. Raises ValueError if it is damaged."""
    context = {} if text is None else json.loads(text)
    if not isinstance(context, dict) or not all(isinstance(value, str) for value in context.values()):
        raise ValueError(f"the context is {text!r}")
    return context


def read_declared(columns: object) -> tuple[str, ...]:
    """The context columns that a ladder declares. Raises TypeError or ValueError if they are none."""
    if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"context is {columns!r}")
    if len(set(columns)) < len(columns) or len(columns) > MOST:
        raise ValueError(f"context is {columns!r}")
    for name in columns:
        check_column(name)
    return tuple(columns)
