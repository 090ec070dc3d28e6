"""The records in which systems keep what they learn of a ladder, and how it is shown to people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]


class Learned(NamedTuple):
    """A number that a system has learned of a ladder, with its 95 % interval (NaN where there is none)."""

    name: str
    meaning: str
    unit: str
    value: float
    low: float
    high: float


class LadderRecords(NamedTuple):
    """The records of ladders as kernels get them: all of them, and the two that a match reads and changes.

    pool  index of the record that the ladder shares with others;  own  index of the one that it has alone
    """

    records: Records
    pool: int
    own: int


NO_LADDER = np.dtype([("unused", "u1")])  # of systems that learn nothing of the ladder
