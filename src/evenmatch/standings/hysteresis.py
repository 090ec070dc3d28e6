"""Hysteresis for divisions: promotion at once, demotion only when the percentile is clearly below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenmatch.standings.division import Division

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

    None: it is not above.
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
