"""Moves of ratings without a match, for systems that store the rating as it is shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenmatch.history import Floats
from evenmatch.systems.system import FARTHEST, Parameters, Records


def move_shown(
    lowest: Callable[..., float] = lambda p: -FARTHEST, rounded: Callable[..., Floats] = lambda rating, p: rating
) -> Callable[..., Records]:
    """`move` for systems that store nothing derived from the rating.

    lowest   (parameters): the lowest rating that the system can hold
    rounded  (ratings, parameters): the ratings as the system rounds them
    """

    def move(state: Records, rating: Floats, parameters: Parameters) -> Records:
        moved = state.copy()
        moved["rating"] = np.maximum(rounded(rating, parameters), lowest(parameters))
        return moved

    return move
