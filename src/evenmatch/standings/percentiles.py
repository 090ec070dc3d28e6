"""Percentiles 1..100 shown to players, and fractional percentiles for queues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats
from evenmatch.standings.distribution import Population


def percentiles(rating: Floats, active: Flags) -> NDArray[np.int64]:
    """Each player's percentile 1..100 among the active players, int64 (P,).

    The lowest active player has 1, the highest 100, ties are equal: five players without ties have 1, 26, 51, 76, 100.
    Inactive players are compared with the active ones.
    """
    return _active(rating, active).percentiles(rating)


def queue_percentiles(rating: Floats, active: Flags) -> Floats:
    """Fractional mid-rank percentiles, float64 (P,), 0..100: 100 · (below + equal/2) / active players; 50 if none.

    Many players with one rating get the middle of the range they occupy, so there is no gap to the players above.
    """
    return _active(rating, active).queue_percentiles(rating)


def _active(rating: Floats, active: Flags) -> Population:
    return Population(np.sort(rating[active]))
