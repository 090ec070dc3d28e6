"""Percentiles 1..100 as players see them, and the fractional ones that queues use (systems.md section 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats
from evenmatch.standings.distribution import Population


def percentiles(rating: Floats, active: Flags) -> NDArray[np.int64]:
    """Each player's percentile against the active players, int64 (P,), 1..100.

    The lowest active player is always at 1, the highest at 100, ties are equal: five players without ties stand at
    1, 26, 51, 76, 100. A player who is not active is measured against those who are.
    """
    return _active(rating, active).percentiles(rating)


def queue_percentiles(rating: Floats, active: Flags) -> Floats:
    """Fractional mid-rank percentiles, float64 (P,), 0..100: 100 · (below + equal/2) / active players; 50 among none.

    A crowd at the same rating stands in the middle of its own width, so it is no gap to those above it.
    """
    return _active(rating, active).queue_percentiles(rating)


def _active(rating: Floats, active: Flags) -> Population:
    return Population(np.sort(rating[active]))
