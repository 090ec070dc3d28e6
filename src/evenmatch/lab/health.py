"""The health of a ladder over time: whether its numbers rise, who sits at the floor, who quits, how its odds hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats, History, Times
from evenmatch.lab.judging import REFUSED, rateable_history, refused_by, why_not
from evenmatch.lab.metrics import Point
from evenmatch.rating import check_range
from evenmatch.systems import loop
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

HOUR = 3_600_000_000  # microseconds
ENOUGH = 10  # periods: a unit of which there are fewer is too coarse
MONDAY = 4 * 24 * HOUR  # the first one after the epoch's Thursday
GROUPS = 10  # points of a reliability curve, from 50 to 100 %
FLOOR = "floor"  # what the parameter and the factor of systems with a floor are called
HAIR = 1e-9

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Health:
    """How a ladder did, period by period; N of them, NaN where there is nothing to measure.

    unit      hour, 6 hours, day, week, month, quarter or year: the longest of which there are ten
    start     int64 (N,)    when each begins, microseconds, UTC; weeks begin on Monday
    matches   int64 (N,)    players: int64 (N,), those who played in it
    mean      float64 (N,)  of the ratings of those who played in it, after their last match there; and their median
    at_floor  float64 (N,)  share of them who stand at the floor; None where the system has none
    drawn     float64 (N,)  share of matches in which the first place was shared
    quit      float64 (N,)  share of matches that somebody left early
    given     float64 (N,)  what favourites were given on average, as an expected score;  scored: what they scored
    favoured  int64 (N,)    matches with a favourite
    points    the reliability curve of all favourites
    created   points of rating that a match adds to all its players together, on average
    moved     points that it moves, up and down
    left_out  matches that the rules cannot rate
    """

    rules: Rules
    unit: str
    start: Times
    matches: Counts
    players: Counts
    mean: Floats
    median: Floats
    at_floor: Floats | None
    drawn: Floats
    quit: Floats
    given: Floats
    scored: Floats
    favoured: Counts
    points: tuple[Point, ...]
    created: float
    moved: float
    left_out: int

    @property
    def inflation(self) -> float | None:
        """By how much the mean rating rises in a thousand matches: the straight line that fits best; None: no line."""
        known = ~np.isnan(self.mean)
        if known.sum() < 2:
            return None
        count = np.cumsum(self.matches)[known] / 1000.0
        mean = self.mean[known]
        apart = count - count.mean()
        return float((apart * (mean - mean.mean())).sum() / (apart**2).sum())


class Favourites(NamedTuple):
    """What the favourite of each match was given and scored; NaN where two or more are ahead of the others."""

    given: Floats
    scored: Floats


def health(matches: MatchTable, rules: Rules) -> Health:
    """Rate a history from newcomers on, and look at it period by period.

    Raises InputError where the rules cannot rate these matches, or there are none.
    """
    history = rateable(matches, rules)
    state = rules.newcomers(history.players)
    result = loop.replay(rules, history, state, journal=True)
    check_range(rules, history, state, result, matches.player_names.__getitem__, lambda m: matches.match_id[m].as_py())
    assert result.journal is not None
    unit, start, period = periods(history.columns.time)
    first = np.searchsorted(period, np.arange(len(start) + 1))  # of each period's matches
    ratings = list(_ratings(history, result.journal.after, first))
    floor = floor_of(rules)
    found = favourites(history, result.expected)
    known = ~np.isnan(found.given)
    count = np.diff(first)
    with np.errstate(invalid="ignore", divide="ignore"):
        per_favourite = [
            np.bincount(period[known], values[known], len(start)) / np.bincount(period[known], minlength=len(start))
            for values in found
        ]
        drawn, quits = (
            np.bincount(period, flags, len(start)) / count for flags in (first_shared(history), _left(history))
        )
    gained = (result.journal.after - result.journal.before)[history.columns.keep]
    return Health(
        rules=rules,
        unit=unit,
        start=start,
        matches=count,
        players=np.array([len(one) for one in ratings], np.int64),
        mean=np.array([one.mean() if len(one) else np.nan for one in ratings]),
        median=np.array([np.median(one) if len(one) else np.nan for one in ratings]),
        at_floor=None
        if floor is None
        else np.array([(one <= floor + HAIR).mean() if len(one) else np.nan for one in ratings]),
        drawn=drawn,
        quit=quits,
        given=per_favourite[0],
        scored=per_favourite[1],
        favoured=np.bincount(period[known], minlength=len(start)),
        points=reliability(found),
        created=float(gained.sum() / len(history)),
        moved=float(np.abs(gained).sum() / len(history)),
        left_out=len(refused_by(rules, matches.history)),
    )


def rateable(matches: MatchTable, rules: Rules) -> History:
    """The same matches; of those few that the rules cannot rate nothing is learned. Raises InputError for too many."""
    if not len(matches):
        raise InputError(f"{matches.source.name} has no matches; accepted are one or more")
    if reason := why_not(matches.history, rules):
        raise InputError(
            f"{matches.source.name}: {rules.system.name} {reason}; accepted are rules that can rate "
            f"{1 - REFUSED:.0%} of the matches"
        )
    return rateable_history(matches.history, rules)


def periods(time: Times) -> tuple[str, Times, Counts]:
    """The unit, when each period begins, and the period of each of these times, which ascend."""
    for unit in reversed(_UNITS):
        first, last = (int(one) for one in _number(unit, time[[0, -1]]))
        if last - first + 1 >= ENOUGH or unit == _UNITS[0]:
            break
    start = _begin(unit, np.arange(first, last + 1))
    return unit, start, (_number(unit, time) - first).astype(np.int64)


_UNITS = ("hour", "6 hours", "day", "week", "month", "quarter", "year")
_LENGTHS = {"hour": HOUR, "6 hours": 6 * HOUR, "day": 24 * HOUR, "week": 7 * 24 * HOUR}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _number(unit: str, time: Times) -> Counts:
    """The period of these times, counted from the one that holds (for weeks: follows) the epoch."""
    if unit in _LENGTHS:
        return (time - (MONDAY if unit == "week" else 0)) // _LENGTHS[unit]
    months = time.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    return np.asarray(months // _MONTHS[unit], np.int64)


def _begin(unit: str, number: Counts) -> Times:
    if unit in _LENGTHS:
        return number * _LENGTHS[unit] + (MONDAY if unit == "week" else 0)
    months = (number * _MONTHS[unit]).astype("datetime64[M]")
    return np.asarray(months.astype("datetime64[us]").astype(np.int64))


def floor_of(rules: Rules) -> float | None:
    """The rating below which nobody falls; None where the system has none."""
    floor = rules.values().get(FLOOR)
    declared = any(factor.name == FLOOR and factor.flag for factor in rules.system.factors)
    return float(floor) if declared and isinstance(floor, int | float) else None


def favourites(history: History, expected: Floats) -> Favourites:
    """The team of each match with the highest expected score: that, and the score that it had."""
    c, starts = history.columns, history.columns.team_start[:-1]
    match = np.repeat(np.arange(len(history)), np.diff(c.team_start))
    most = np.maximum.reduceat(expected, starts)
    ahead = expected >= most[match] - HAIR
    alone = np.add.reduceat(ahead, starts, dtype=np.int64) == 1
    place = np.maximum.reduceat(np.where(ahead, c.place, 0), starts)[match]
    score = (c.place > place) + 0.5 * (c.place == place)
    rivals = np.diff(c.team_start) - 1
    scored = (np.add.reduceat(score, starts) - 0.5) / rivals
    return Favourites(np.where(alone, most, np.nan), np.where(alone, scored, np.nan))


def first_shared(history: History) -> Flags:
    """Whether the first place of each match was shared."""
    c, starts = history.columns, history.columns.team_start[:-1]
    match = np.repeat(np.arange(len(history)), np.diff(c.team_start))
    best = c.place == np.minimum.reduceat(c.place, starts)[match]
    return np.asarray(np.add.reduceat(best, starts, dtype=np.int64) > 1)


def reliability(found: Favourites) -> tuple[Point, ...]:
    """How often favourites scored, by what they were given: groups of 5 %, with 95 % intervals of so many matches."""
    known = found.given >= 0.5
    given, scored = found.given[known], found.scored[known]
    group = np.minimum(((given - 0.5) * 2 * GROUPS + HAIR).astype(int), GROUPS - 1)
    points = []
    for at in range(GROUPS):
        here = group == at
        count = int(here.sum())
        if count:
            predicted, observed = float(given[here].mean()), float(scored[here].mean())
            error = 1.96 * float(np.sqrt(predicted * (1.0 - predicted) / count))
            points.append(Point(predicted, observed, max(observed - error, 0.0), min(observed + error, 1.0), count))
    return tuple(points)


def _left(history: History) -> Flags:
    return np.logical_or.reduceat(history.columns.quit, history.match_slots[:-1])


def _ratings(history: History, after: Floats, first: Counts) -> Iterator[Floats]:
    """The ratings of those who played in each period for their own rating, after the last match of each there."""
    slots = history.match_slots[first]
    for begin, end in zip(slots[:-1].tolist(), slots[1:].tolist(), strict=True):
        kept = np.flatnonzero(history.columns.keep[begin:end])[::-1] + begin
        _, last = np.unique(history.columns.player[kept], return_index=True)
        yield after[kept[last]]
