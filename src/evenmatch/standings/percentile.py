"""Percentiles 1..100 as players see them, and the fractional ones that queues use (systems.md section 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats


def percentiles(rating: Floats, active: Flags) -> NDArray[np.int64]:
    """Each player's percentile against the active players, int64 (P,), 1..100.

    The lowest active player is always at 1, the highest at 100, ties are equal: five players without ties stand at
    1, 26, 51, 76, 100. A player who is not active is measured against those who are.
    """
    below, above = _below_above(rating, active)
    others = below + above
    return np.where(others == 0, 1, np.minimum(100, 1 + 100 * below // np.maximum(others, 1)))


def queue_percentiles(rating: Floats, active: Flags) -> Floats:
    """Fractional mid-rank percentiles, float64 (P,), 0..100: 100 · (below + equal/2) / active players; 50 among none.

    A crowd at the same rating stands in the middle of its own width, so it is no gap to those above it.
    """
    below, above = _below_above(rating, active)
    population = int(active.sum())
    if population == 0:
        return np.full(len(rating), 50.0)
    return 100 * (below + (population - below - above) / 2) / population


def _below_above(rating: Floats, active: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many active players are strictly lower and strictly higher than each player."""
    ladder = np.sort(rating[active])
    below = np.searchsorted(ladder, rating, side="left")
    return below, len(ladder) - np.searchsorted(ladder, rating, side="right")
