"""Divisions: named bands of percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from evenmatch.errors import InputError


class Division(NamedTuple):
    """A band from this percentile up to the beginning of the next division."""

    name: str
    lowest: int


DIVISIONS: tuple[Division, ...] = (
    Division("Bronze", 1),
    Division("Silver", 21),
    Division("Gold", 46),
    Division("Platinum", 71),
    Division("Diamond", 91),
    Division("Champion", 99),
)
FIFTY: tuple[Division, ...] = tuple(Division(str(level), 2 * level - 1) for level in range(1, 51))


def division_at(percentile: int, divisions: Sequence[Division]) -> Division:
    """Return the division that a percentile, 1..100, belongs to."""
    return next(division for division in reversed(divisions) if percentile >= division.lowest)


def checked(divisions: Sequence[Division]) -> tuple[Division, ...]:
    """Validate divisions: they must begin at 1 and ascend, with unique non-empty names; else InputError."""
    if not divisions or divisions[0].lowest != 1:
        begin = divisions[0].lowest if divisions else "nowhere"
        raise InputError(f"the lowest division begins at {begin}; expected 1, so that every player has a division")
    for division, above in pairwise(divisions):
        if above.lowest <= division.lowest:
            raise InputError(
                f"division {above.name!r} begins at {above.lowest}, {division.name!r} before it at {division.lowest}; "
                "expected ascending percentiles"
            )
    if divisions[-1].lowest > 100:
        raise InputError(f"division {divisions[-1].name!r} begins at {divisions[-1].lowest}; expected at most 100")
    names = [division.name for division in divisions]
    invalid = next((name for name in names if not name or names.count(name) > 1), None)
    if invalid is not None:
        raise InputError(f"division name {invalid!r} is empty or used twice; expected unique names")
    return tuple(divisions)
