"""Divisions: named bands of percentiles, with hysteresis: promotion at once, demotion only below a margin."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


NOWHERE = -1  # recorded division of a player without one


def settle(
    recorded: NDArray[np.int16], percentile: NDArray[np.integer], divisions: Sequence[Division], margin: int
) -> NDArray[np.int16]:
    """The new division of each player, an index into `divisions`, shape (P,).

    recorded    the previous division; if it is not a valid index, only the percentile decides
    percentile  1..100
    margin      a player keeps a division down to this many percentiles below its lowest; 0: no hysteresis
    A player is promoted as soon as the percentile reaches a higher division. Below the margin the player moves to the
    division of the percentile.
    """
    known = np.where((recorded >= 0) & (recorded < len(divisions)), recorded, NOWHERE)
    settled: NDArray[np.int16] = _outcomes(divisions, margin)[known, percentile]
    return settled


def kept_down_to(division: str, percentile: int, divisions: Sequence[Division], margin: int) -> int | None:
    """Return the lowest percentile at which a player keeps a division that is above the one of their percentile.

    None: their division is not above it.
    """
    lowest = next(known.lowest for known in divisions if known.name == division)
    return max(lowest - margin, 1) if percentile < lowest else None


def _outcomes(divisions: Sequence[Division], margin: int) -> NDArray[np.int16]:
    """Table of the new division by [recorded division, percentile 0..100]; the last row is for NOWHERE."""
    percentile = np.arange(101)
    plain = np.maximum(division_of(percentile, divisions), 0)  # percentile 0 does not occur
    lowest = np.array([division.lowest for division in divisions])[:, None]
    own = np.arange(len(divisions))[:, None]
    kept = np.where((plain > own) | (percentile < lowest - margin), plain, own)
    return np.concatenate((kept, plain[None])).astype(np.int16)


def division_of(percentile: NDArray[np.integer], divisions: Sequence[Division]) -> NDArray[np.intp]:
    """The index of the division of each percentile."""
    return np.searchsorted([division.lowest for division in divisions], percentile, side="right") - 1
