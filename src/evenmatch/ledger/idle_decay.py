"""Rating decay of idle players: a pure function of states and of the numbers in the event."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenmatch.durations import DAY
from evenmatch.history import Floats, Times
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import RatingsDecayed
from evenmatch.standings.activity import ALL_TIME
from evenmatch.systems.system import Records, Rules

WEEK = 7 * DAY


def first_week(decay: RatingsDecayed, last_completed: Times) -> Times:
    """The time at which the first idle week of each player begins, by the time of the last completed match."""
    grace = round(min(decay.grace_days, ALL_TIME) * DAY)
    return np.maximum(last_completed, decay.began) + grace


def idle_weeks(decay: RatingsDecayed, last_completed: Times) -> Ids:
    """The idle weeks of each player that this decay counts."""
    first = first_week(decay, last_completed)
    ended, counted = (np.maximum(time - first, 0) // WEEK for time in (decay.until, decay.after))
    weeks: Ids = np.maximum(ended - counted, 0)
    return weeks


def decayed(decay: RatingsDecayed, rating: Floats, completed: Ids, last_completed: Times) -> Floats:
    """The ratings after a decay, of players with these ratings, completed matches and last of them."""
    decays = (completed >= max(decay.placement, 1)) & (rating > decay.floor)
    weeks = np.where(decays, idle_weeks(decay, np.where(decays, last_completed, decay.until)), 0)
    return np.where(weeks > 0, np.maximum(rating - weeks * decay.rate, decay.floor), rating)


def lower(records: Records, tally: NDArray[np.void], decay: RatingsDecayed, rules: Rules) -> NDArray[np.int64]:
    """Lower the ratings of idle players in place, by their records and tallies. Return the rows that fell."""
    rating = records["rating"]
    wanted = decayed(decay, rating, tally["completed"], tally["last_completed"])
    rows = np.flatnonzero(wanted < rating)
    moved = rules.system.move(records[rows], wanted[rows], rules.parameters)
    falls = moved["rating"] < rating[rows]  # a system may round, or hold nothing lower
    rows = rows[falls]
    records[rows] = moved[falls]
    return rows
