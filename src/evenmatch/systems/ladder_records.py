"""Records of players and ladders: what systems learn of a ladder, how it is shown to people, fast copies of records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import FloatOrNaN

Records = NDArray[np.void]


class Learned(NamedTuple):
    """A number that a rating system has learned about a ladder.

    unit       `points` of the rating, or `share` (0 to 1)
    low, high  95 % interval, if the system estimates one
    """

    name: str
    meaning: str
    unit: str
    value: float
    low: FloatOrNaN
    high: FloatOrNaN


class LadderRecords(NamedTuple):
    """The records of ladders as kernels get them: all of them, and the two that a match reads and changes.

    pool  index of the record that the ladder shares with others;  own  index of the one that it has alone
    """

    records: Records
    pool: int
    own: int


def copy_records(records: Records) -> Records:
    """A copy of whole records: `copy` goes through those that hold arrays field by field, several times as slowly."""
    return records.view(f"V{records.itemsize}").copy().view(records.dtype)


def join_records(first: Records, second: Records) -> Records:
    """Records of one type in one array: `concatenate` would compare and copy their fields, several times as slowly."""
    kind = f"V{first.itemsize}"
    return np.concatenate((first.view(kind), second.view(kind))).view(first.dtype)


NO_LADDER = np.dtype([("unused", "u1")])  # of systems that learn nothing of the ladder
