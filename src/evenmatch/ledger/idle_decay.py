"""Rating decay of idle players: a pure function of states and of the numbers in the event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.durations import DAY
from evenmatch.history import Floats, Times
from evenmatch.ledger.codec import Ids
from evenmatch.standings.activity import ALL_TIME
from evenmatch.systems.system import Records, Rules

WEEK = 7 * DAY


class PlannedDecay(NamedTuple):
    """The decay of idle players at a position. Times are microseconds since the epoch.

    system      only ratings of this system decay
    began       when the rule was set; earlier idle time does not count
    after       an earlier decay counted the weeks that ended up to this time
    until       weeks that ended up to this time count
    grace_days  idle days before the first week
    rate        points lost per whole week
    floor       no rating falls below it
    placement   completed matches that a player must have, at least 1
    """

    position: int
    system: str
    began: int
    after: int
    until: int
    grace_days: float
    rate: float
    floor: float
    placement: int

    def first_week(self, last_completed: Times) -> Times:
        """The time at which the first idle week of each player begins, by the time of the last completed match."""
        grace = round(min(self.grace_days, ALL_TIME) * DAY)
        return np.maximum(last_completed, self.began) + grace

    def weeks(self, last_completed: Times) -> Ids:
        """The idle weeks of each player that this decay counts."""
        first = self.first_week(last_completed)
        ended, counted = (np.maximum(time - first, 0) // WEEK for time in (self.until, self.after))
        weeks: Ids = np.maximum(ended - counted, 0)
        return weeks

    def ratings(self, rating: Floats, completed: Ids, last_completed: Times) -> Floats:
        """The ratings after this decay, given the ratings, numbers of completed matches and times of the last one."""
        decays = (completed >= max(self.placement, 1)) & (rating > self.floor)
        weeks = np.where(decays, self.weeks(np.where(decays, last_completed, self.until)), 0)
        return np.where(weeks > 0, np.maximum(rating - weeks * self.rate, self.floor), rating)


def lower(records: Records, tally: NDArray[np.void], decay: PlannedDecay, rules: Rules) -> NDArray[np.int64]:
    """Lower the ratings of idle players in place, by their records and tallies. Return the rows that fell."""
    rating = records["rating"]
    wanted = decay.ratings(rating, tally["completed"], tally["last_completed"])
    rows = np.flatnonzero(wanted < rating)
    moved = rules.system.move(records[rows], wanted[rows], rules.parameters)
    falls = moved["rating"] < rating[rows]  # a system may round, or hold nothing lower
    rows = rows[falls]
    records[rows] = moved[falls]
    return rows
