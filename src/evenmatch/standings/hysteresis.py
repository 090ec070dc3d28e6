"""Divisions that do not flicker: up at once, down only when the percentile is clearly below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenmatch.standings.division import Division, division_of

NOWHERE = -1  # the recorded division of a player who has none


def settle(
    recorded: NDArray[np.int16], percentile: NDArray[np.integer], divisions: Sequence[Division], margin: int
) -> NDArray[np.int16]:
    """The division of each player from now on, an index into `divisions`, shape (P,).

    recorded    the division until now; where it is none of the table's, the percentile alone decides
    percentile  1..100
    margin      percentiles below the own division's lowest that are forgiven; 0 is the table alone
    A player rises as soon as the percentile reaches a higher division, and leaves their own only below its margin,
    then for the division of the percentile.
    """
    known = np.where((recorded >= 0) & (recorded < len(divisions)), recorded, NOWHERE)
    settled: NDArray[np.int16] = _outcomes(divisions, margin)[known, percentile]
    return settled


def _outcomes(divisions: Sequence[Division], margin: int) -> NDArray[np.int16]:
    """The new division by [recorded division, percentile 0..100]; the last row is NOWHERE's."""
    percentile = np.arange(101)
    plain = np.maximum(division_of(percentile, divisions), 0)  # 0 is nobody's percentile
    lowest = np.array([division.lowest for division in divisions])[:, None]
    own = np.arange(len(divisions))[:, None]
    kept = np.where((plain > own) | (percentile < lowest - margin), plain, own)
    return np.concatenate((kept, plain[None])).astype(np.int16)
