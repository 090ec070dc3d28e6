"""Health of a ladder over time, measured and in sentences: inflation, players at the floor, quitters, calibration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.calibration import Point
from evenmatch.durations import HOUR
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats, History, Times
from evenmatch.lab.backtests.evaluation import REFUSED, rateable_history, refused_by, why_not
from evenmatch.lab.ladder.learning import LearnedAt, learned_over_time
from evenmatch.lab.queue.verdict import percent
from evenmatch.rating import check_range
from evenmatch.systems import loop
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

ENOUGH = 10  # fewest periods of a unit; otherwise a shorter unit is used
MONDAY = 4 * 24 * HOUR  # start of the first week after the epoch, which is a Thursday
GROUPS = 10  # points of a reliability curve, from 50 to 100 %
FLOOR = "floor"  # name of the parameter and of the factor in systems with a floor
HAIR = 1e-9

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LadderHealth:
    """Measurements of a ladder in N periods; NaN where there is no data.

    unit      hour, 6 hours, day, week, month, quarter or year: the longest with at least ten periods
    start     int64 (N,)    start of each period, microseconds, UTC; weeks begin on Monday
    matches   int64 (N,)    number of matches
    players   int64 (N,)    number of players who played
    mean      float64 (N,)  mean rating of these players after their last match of the period
    median    float64 (N,)  their median rating
    at_floor  float64 (N,)  share of these players at the floor; None if the system has no floor
    drawn     float64 (N,)  share of matches whose first place was shared
    quit      float64 (N,)  share of matches with an early leaver
    given     float64 (N,)  mean expected score of favourites
    scored    float64 (N,)  mean actual score of favourites
    favoured  int64 (N,)    matches with a favourite
    points    reliability curve of all favourites
    created   mean sum of the rating changes of a match
    moved     mean sum of their absolute values
    learned   what the system learned about the ladder, after each quarter of the matches; empty if it learns nothing
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
    learned: tuple[LearnedAt, ...] = ()

    @property
    def inflation(self) -> float | None:
        """Rise of the mean rating per 1,000 matches (least squares); None for fewer than two periods."""
        known = ~np.isnan(self.mean)
        if known.sum() < 2:
            return None
        count = np.cumsum(self.matches)[known] / 1000.0
        mean = self.mean[known]
        deviation = count - count.mean()
        return float((deviation * (mean - mean.mean())).sum() / (deviation**2).sum())


class FavouriteResults(NamedTuple):
    """Expected and actual score of each match's favourite; NaN if several teams share the highest expected score."""

    given: Floats
    scored: Floats


def health(matches: MatchTable, rules: Rules) -> LadderHealth:
    """Rate all matches from initial ratings and measure the ladder by period.

    Raises InputError if the rules cannot rate these matches or there are no matches.
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
    scores = favourites(history, result.expected)
    known = ~np.isnan(scores.given)
    count = np.diff(first)
    with np.errstate(invalid="ignore", divide="ignore"):
        per_favourite = [
            np.bincount(period[known], values[known], len(start)) / np.bincount(period[known], minlength=len(start))
            for values in scores
        ]
        drawn, quits = (
            np.bincount(period, flags, len(start)) / count for flags in (first_shared(history), _has_quitter(history))
        )
    gained = (result.journal.after - result.journal.before)[history.columns.keep]
    return LadderHealth(
        rules=rules,
        unit=unit,
        start=start,
        matches=count,
        players=np.array([len(rating) for rating in ratings], np.int64),
        mean=np.array([rating.mean() if len(rating) else np.nan for rating in ratings]),
        median=np.array([np.median(rating) if len(rating) else np.nan for rating in ratings]),
        at_floor=None
        if floor is None
        else np.array([(rating <= floor + HAIR).mean() if len(rating) else np.nan for rating in ratings]),
        drawn=drawn,
        quit=quits,
        given=per_favourite[0],
        scored=per_favourite[1],
        favoured=np.bincount(period[known], minlength=len(start)),
        points=reliability(scores),
        created=float(gained.sum() / len(history)),
        moved=float(np.abs(gained).sum() / len(history)),
        left_out=len(refused_by(rules, matches.history)),
        learned=() if rules.system.ladder is None else tuple(learned_over_time(matches, rules)),
    )


def rateable(matches: MatchTable, rules: Rules) -> History:
    """History in which the few matches that the rules cannot rate change no rating. Raises InputError for too many."""
    if not len(matches):
        raise InputError(f"{matches.source.name} has no matches: at least one is needed")
    if reason := why_not(matches.history, rules):
        raise InputError(
            f"{matches.source.name}: {rules.system.name} {reason}; rules must be able to rate "
            f"{1 - REFUSED:.0%} of the matches"
        )
    return rateable_history(matches.history, rules)


def periods(time: Times) -> tuple[str, Times, Counts]:
    """Return the unit, the start of each period and the period index of each of these ascending times."""
    for unit in reversed(_UNITS):
        first, last = (int(number) for number in _number(unit, time[[0, -1]]))
        if last - first + 1 >= ENOUGH or unit == _UNITS[0]:
            break
    start = _begin(unit, np.arange(first, last + 1))
    return unit, start, (_number(unit, time) - first).astype(np.int64)


_UNITS = ("hour", "6 hours", "day", "week", "month", "quarter", "year")
_LENGTHS = {"hour": HOUR, "6 hours": 6 * HOUR, "day": 24 * HOUR, "week": 7 * 24 * HOUR}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _number(unit: str, time: Times) -> Counts:
    """Period numbers of these times; 0 is the period that contains (for weeks: follows) the epoch."""
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
    """Lowest rating that the system gives; None if it has no floor."""
    floor = rules.values().get(FLOOR)
    declared = any(factor.name == FLOOR and factor.flag for factor in rules.system.factors)
    return float(floor) if declared and isinstance(floor, int | float) else None


def favourites(history: History, expected: Floats) -> FavouriteResults:
    """Expected and actual score of the team with the highest expected score, for each match."""
    c, starts = history.columns, history.columns.team_start[:-1]
    match = np.repeat(np.arange(len(history)), np.diff(c.team_start))
    highest = np.maximum.reduceat(expected, starts)
    ahead = expected >= highest[match] - HAIR
    unique = np.add.reduceat(ahead, starts, dtype=np.int64) == 1
    place = np.maximum.reduceat(np.where(ahead, c.place, 0), starts)[match]
    score = (c.place > place) + 0.5 * (c.place == place)
    rivals = np.diff(c.team_start) - 1
    scored = (np.add.reduceat(score, starts) - 0.5) / rivals
    return FavouriteResults(np.where(unique, highest, np.nan), np.where(unique, scored, np.nan))


def first_shared(history: History) -> Flags:
    """Whether the first place of each match was shared."""
    c, starts = history.columns, history.columns.team_start[:-1]
    match = np.repeat(np.arange(len(history)), np.diff(c.team_start))
    best = c.place == np.minimum.reduceat(c.place, starts)[match]
    return np.asarray(np.add.reduceat(best, starts, dtype=np.int64) > 1)


def reliability(found: FavouriteResults) -> tuple[Point, ...]:
    """Reliability curve of favourites: expected scores in steps of 5 %, with 95 % intervals."""
    known = found.given >= 0.5
    given, scored = found.given[known], found.scored[known]
    group = np.minimum(((given - 0.5) * 2 * GROUPS + HAIR).astype(int), GROUPS - 1)
    points = []
    for index in range(GROUPS):
        in_group = group == index
        count = int(in_group.sum())
        if count:
            predicted, observed = float(given[in_group].mean()), float(scored[in_group].mean())
            error = 1.96 * float(np.sqrt(predicted * (1.0 - predicted) / count))
            points.append(Point(predicted, observed, max(observed - error, 0.0), min(observed + error, 1.0), count))
    return tuple(points)


def _has_quitter(history: History) -> Flags:
    return np.logical_or.reduceat(history.columns.quit, history.match_slots[:-1])


def _ratings(history: History, after: Floats, first: Counts) -> Iterator[Floats]:
    """Yield for each period the ratings of its players after their last match; unrated appearances are ignored."""
    slots = history.match_slots[first]
    for begin, end in zip(slots[:-1].tolist(), slots[1:].tolist(), strict=True):
        rated = np.flatnonzero(history.columns.keep[begin:end])[::-1] + begin
        _, last = np.unique(history.columns.player[rated], return_index=True)
        yield after[rated[last]]


CALM = 0.01  # share of the mean rating: smaller changes count as no change
STEADY = 0.01  # share of the points that a match moves: a smaller surplus or loss is not reported
CROWD = 0.05  # share of the players at the floor above which a finding calls it a lot
FEW = 30  # fewest matches with a favourite for a finding on the odds
SURE = 2.0  # standard errors beyond which a difference is more than chance


def health_findings(found: LadderHealth) -> list[str]:
    """Findings as sentences, the most important first."""
    return [
        *_level(found),
        *_created(found),
        *_floor(found),
        *_shares(found),
        *_odds(found),
        *([f"{found.left_out:,} matches cannot be rated by these rules."] if found.left_out else []),
    ]


def span(found: LadderHealth) -> str:
    """Length of all periods together, for example "12 days"."""
    count = len(found.start)
    if found.unit == "6 hours":
        return f"{6 * count} hours"
    return f"{count} {found.unit}{'' if count == 1 else 's'}"


def _level(found: LadderHealth) -> list[str]:
    mean = found.mean[~np.isnan(found.mean)]
    if len(mean) < 2:
        return ["All matches are in one period: changes cannot be measured yet."]
    first, last = float(mean[0]), float(mean[-1])
    moved = last - first
    share = moved / first if first > 0 else None
    near = abs(share) < CALM if share is not None else moved == 0
    if near:
        return [f"The mean rating hardly moved in {span(found)}: {points(first)} at first, {points(last)} at last."]
    by = "" if share is None or abs(share) > 1 else f", by {abs(share):.1%},"
    sentence = f"The mean rating {'rose' if moved > 0 else 'fell'}{by} from {points(first)} to {points(last)}"
    sentence += f" in {span(found)}"
    rise = found.inflation
    if rise is not None and rise * moved > 0:
        sentence += f": about {points(abs(rise))} points {'more' if rise > 0 else 'less'} with every 1,000 matches"
    return [f"{sentence}."]


def _created(found: LadderHealth) -> list[str]:
    if abs(found.created) < STEADY * found.moved or not found.moved:
        return ["Winners gain what losers lose: matches neither create nor remove points."]
    share = percent(abs(found.created) / found.moved)
    sentence = (
        f"Of the {points(found.moved)} points that a match moves up and down, {points(abs(found.created))} ({share})"
    )
    return [f"{sentence} are {'created' if found.created > 0 else 'lost'}."]


def _floor(found: LadderHealth) -> list[str]:
    if found.at_floor is None:
        return []
    share = _last(found.at_floor)
    if share is None or share == 0:
        return ["No player who played lately is at the floor."]
    sentence = f"{share:.1%} of the players who played lately are at the floor"
    return [f"{sentence}. That is a lot: they have nothing to lose." if share > CROWD else f"{sentence}."]


def _shares(found: LadderHealth) -> list[str]:
    drawn, left = (_overall(shares, found) for shares in (found.drawn, found.quit))
    return [f"{drawn:.1%} of the matches were drawn, and in {left:.1%} of them a player left early."]


def _odds(found: LadderHealth) -> list[str]:
    count = int(found.favoured.sum())
    if count < FEW:
        return []
    known = found.favoured > 0
    given, scored = (
        float(np.average(scores[known], weights=found.favoured[known])) for scores in (found.given, found.scored)
    )
    error = np.sqrt(given * (1.0 - given) / count)
    sentence = f"Favourites were expected to score {given:.1%} and scored {scored:.1%}"
    if abs(scored - given) <= SURE * error:
        return [f"{sentence}: the odds are right."]
    return [f"{sentence}: the odds are {'too sure' if scored < given else 'too timid'}."]


def _overall(shares: Floats, found: LadderHealth) -> float:
    known = found.matches > 0
    return float(np.average(shares[known], weights=found.matches[known]))


def _last(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else None


def points(value: float) -> str:
    """Format rating points with at least three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
