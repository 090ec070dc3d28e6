"""Divisions: bands of percentiles with names, as a small table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError


class Division(NamedTuple):
    """A band that begins at this percentile and ends where the next begins."""

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


def checked(divisions: Sequence[Division]) -> tuple[Division, ...]:
    """The same divisions. Raises InputError where they do not begin at 1 and rise, or a name is empty or used twice."""
    if not divisions or divisions[0].lowest != 1:
        begin = divisions[0].lowest if divisions else "nowhere"
        raise InputError(f"the lowest division begins at {begin}; accepted is 1, so that everybody has a division")
    for division, above in pairwise(divisions):
        if above.lowest <= division.lowest:
            raise InputError(
                f"division {above.name!r} begins at {above.lowest}, {division.name!r} before it at {division.lowest}; "
                "accepted are rising percentiles"
            )
    if divisions[-1].lowest > 100:
        raise InputError(f"division {divisions[-1].name!r} begins at {divisions[-1].lowest}; accepted is up to 100")
    names = [division.name for division in divisions]
    wrong = next((name for name in names if not name or names.count(name) > 1), None)
    if wrong is not None:
        raise InputError(f"division name {wrong!r} is empty or used twice; accepted are different names")
    return tuple(divisions)


def division_of(percentile: NDArray[np.integer], divisions: Sequence[Division]) -> NDArray[np.intp]:
    """The index of each percentile's division."""
    return np.searchsorted([division.lowest for division in divisions], percentile, side="right") - 1
