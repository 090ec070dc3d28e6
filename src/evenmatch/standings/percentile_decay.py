"""Percentile decay: the shown percentile of an inactive player falls per day; a rule of presentation alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenmatch.durations import DAY
from evenmatch.history import Times
from evenmatch.standings.activity import ALL_TIME
from evenmatch.standings.rules import PERCENTILE, StandingsRules

WHOLE = 100  # percentiles: no fall is greater
DECIMALS = 9  # of a fall, before it is rounded down


def percentile_falls(last_completed: Times, as_of: int, rules: StandingsRules) -> NDArray[np.int64]:
    """The percentiles by which inactivity lowers what each player is shown, by the last completed match.

    Whole days after the grace days count; the product of days and rate is rounded down.
    """
    if rules.inactivity != PERCENTILE:
        return np.zeros(len(last_completed), np.int64)
    grace = round(min(rules.grace_days, ALL_TIME) * DAY)
    ended = np.clip(
        last_completed, as_of - (ALL_TIME + WHOLE) * DAY, as_of
    )  # who never completed one, or ahead of time
    days = np.maximum(as_of - grace - ended, 0) // DAY
    product = np.round(days * rules.percentile_decay, DECIMALS)  # 0.29 a day are 29 after 100 days, not 28.999…
    falls: NDArray[np.int64] = np.floor(np.minimum(product, WHOLE)).astype(np.int64)
    return falls


def lowered(percentile: NDArray[np.integer], falls: NDArray[np.int64], rules: StandingsRules) -> NDArray[np.int64]:
    """These percentiles after these falls, none of them lowered below the floor."""
    after: NDArray[np.int64] = np.maximum(percentile - falls, np.minimum(percentile, rules.percentile_floor))
    return after
