"""Health of a rating system in simulated seasons, where true skill is known.

`evenmatch.lab.ladder.health` measures recorded ladders, where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from evenmatch.calibration import bins_of, calibration_slopes
from evenmatch.durations import DAY
from evenmatch.history import Flags, Floats
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.fairness.audit import Contestant, Kept, Progress, finish
from evenmatch.lab.ladder.health import floor_of
from evenmatch.lab.seasons.games import Whole
from evenmatch.lab.seasons.season import START, SeasonRecord, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.standings.distribution import Population, queue_percentiles

WITHIN = 5.0  # percentiles from the truth at which a player counts as found
NEWCOMER = 10  # matches during which a player counts as a newcomer to others
# Newcomers play their first match in this part of a season: the ladder has settled by then, and time is left to follow
# them.
ARRIVAL = (0.2, 0.6)
FOLLOWED = 2 / 3  # of the newcomers: numbers of matches that fewer of them reach are not measured
MICROSOFT = {"duel": 12, "team": 46, "squad": 91, "arena": 3}  # matches per player that Microsoft states for TrueSkill
TABLE_MATCHES = {"duel": 8000, "team": 8000, "squad": 5000, "arena": 1500}  # in a season of the table


class Approach(NamedTuple):
    """Distance of newcomers from their true percentile after 1 to K matches.

    players    int64 (K,)    newcomers with that many matches
    distance   float64 (K,)  mean distance between the shown and the true percentile
    shortfall  float64 (K,)  mean distance by which the shown percentile is too close to the middle
    """

    players: Whole
    distance: Floats
    shortfall: Floats

    @classmethod
    def read(cls, values: Sequence[Any]) -> Self:
        """Read the columns from lists."""
        return cls(*map(np.array, values))

    def to_data(self) -> dict[str, object]:
        """All numbers, for JSON."""
        numbers = {name: column.tolist() for name, column in self._asdict().items()}
        return numbers | {"found": self.found, "near": self.near}

    @property
    def shown(self) -> str:
        """The number of matches until newcomers are found, for a table."""
        return f"over {len(self.shortfall)}" if self.found is None else str(self.found)

    @property
    def found(self) -> int | None:
        """Matches until the mean shortfall is within 5 percentiles and stays so on average; None: it never does."""
        return _until(np.abs(self.shortfall))

    @property
    def near(self) -> int | None:
        """Matches until the mean distance is within 5 percentiles and stays so on average; None: it never does."""
        return _until(self.distance)


class SeasonHealth(NamedTuple):
    """Measurements of a season. A spread is the standard deviation of all ratings at the end.

    approach     of the newcomers
    correlation  over time: mean number of matches per player, and rank correlation of rating and true skill
    mean_rise, median_rise  of the ratings, in points per 1,000 matches, over the second half of the season, among the
                 players of the first half
    spread       in points
    at_floor     share of the players at the floor at the end; None: the system has no floor
    newcomers    mean rating change of other players in a match with newcomers, minus that in other matches, in
                 thousandths of a spread; None: nothing to compare
    slope        share of the system's log-odds that is true; below 1, its odds are too sure
    """

    approach: Approach
    correlation: tuple[tuple[float, float], ...]
    mean_rise: float
    median_rise: float
    spread: float
    at_floor: float | None
    newcomers: float | None
    slope: float

    @classmethod
    def read(cls, values: Sequence[Any]) -> Self:
        """Read the fields from lists."""
        return cls(Approach.read(values[0]), *values[1:])


def measure_season(record: SeasonRecord) -> SeasonHealth:
    """Measure a season."""
    half = len(record.history) // 2
    own = np.arange(len(record.person)) < record.settings.players
    ratings = record.state.rating[own & (record.state.played > 0)]
    spread = max(float(ratings.std()), 1e-12)
    floor = floor_of(record.rules)
    late = slice(record.history.columns.team_start[half], None)
    weight = np.ones(len(record.truth[late]))
    bins = bins_of(record.expected[late], record.truth[late], weight, np.zeros(len(weight), np.int64), 1)
    return SeasonHealth(
        approach_of([record]),
        tuple(_correlations(record, own)),
        _rise(record, own, np.mean),
        _rise(record, own, np.median),
        spread,
        None if floor is None else float((ratings <= floor).mean()),
        _newcomer_effect(record, half, spread),
        float(calibration_slopes(bins)[0]),
    )


def season_health(contestant: Contestant, settings: SeasonSettings) -> SeasonHealth:
    """Simulate an honest season and measure it, in any process."""
    return measure_season(simulate_season(settings, contestant.rules))


def table_settings(game: str, seed: int) -> SeasonSettings:
    """Settings for a season of the table: skill does not change, and players play alone and about equally often."""
    still = dict.fromkeys(("learning", "drift", "eagerness", "days_off", "parties"), 0.0)
    made = SeasonSettings(game=game, players=200, matches=TABLE_MATCHES[game], seed=seed, newcomers=0.5)
    return replace(made, **still)  # type: ignore[arg-type]


def newcomer_approach(contestant: Contestant, *settings: SeasonSettings) -> Approach:
    """Simulate these seasons and follow their newcomers, in any process."""
    return approach_of([simulate_season(each, contestant.rules) for each in settings])


NewcomerTable = dict[Contestant, dict[str, Approach]]


def newcomer_table(
    contestants: Sequence[Contestant],
    workers: Workers,
    seeds: Sequence[int] = (1, 2),
    kept: Kept | None = None,
    progress: Progress | None = None,
) -> NewcomerTable:
    """Measure how soon each system finds newcomers, in the games of Microsoft's table that it rates.

    progress  called with the number of finished cells and of all
    """
    cells = [(contestant, game) for contestant in contestants for game in MICROSOFT if contestant.rates(game)]
    tasks = [(contestant, *(table_settings(game, seed) for seed in seeds)) for contestant, game in cells]
    found = finish(newcomer_approach, Approach.read, tasks, workers, kept, progress)
    table: NewcomerTable = {contestant: {} for contestant in contestants}
    for (contestant, game), task in zip(cells, tasks, strict=True):
        table[contestant][game] = found[task]
    return table


def approach_of(records: Sequence[SeasonRecord]) -> Approach:
    """Follow the newcomers of several seasons from match to match."""
    followed, count = [], 0
    for record in records:
        newcomer = _newcomers(record)
        count += int(newcomer.sum())
        shown, truth = _percentiles(record)
        mine = newcomer[record.history.columns.player]
        below = (shown - truth) * np.sign(50.0 - truth)
        followed.append(np.stack((matches_before(record), np.abs(shown - truth), below))[:, mine])
    number, distance, shortfall = np.concatenate(followed, 1)
    players = np.bincount(number.astype(np.int64))
    players = players[: max(1, int((players >= max(1.0, FOLLOWED * count)).sum()))]
    means = (np.bincount(number.astype(np.int64), values)[: len(players)] / players for values in (distance, shortfall))
    return Approach(players, *means)


def matches_before(record: SeasonRecord) -> Whole:
    """Number of earlier matches of each slot's player, int64 (S,)."""
    player = record.history.columns.player
    order = np.argsort(player, kind="stable")
    count = np.bincount(player, minlength=len(record.person))
    number = np.empty(len(player), np.int64)
    number[order] = np.arange(len(player)) - np.repeat(np.cumsum(count) - count, count)
    return number


def _rounds(record: SeasonRecord) -> Whole:
    """The round of each match, int64 (M,)."""
    step = int(record.settings.weeks * 7 * DAY / record.rounds)
    return (record.history.columns.time - START) // step - 1


def _newcomers(record: SeasonRecord) -> Flags:
    """Accounts whose first match falls into the arrival part of the season, bool (A,)."""
    first = np.full(len(record.person), record.rounds)
    np.minimum.at(first, record.history.columns.player, _rounds(record)[record.history.slot_match])
    low, high = (share * record.rounds for share in ARRIVAL)
    return (first >= low) & (first < high)


def _percentiles(record: SeasonRecord) -> tuple[Floats, Floats]:
    """Shown and true percentile of each slot after the match, among the players at the next snapshot; float64 (S,)."""
    player, rounds = record.history.columns.player, _rounds(record)[record.history.slot_match]
    which = np.searchsorted([snapshot.round for snapshot in record.snapshots], rounds)
    shown, truth = np.empty(len(player)), np.empty(len(player))
    for index, snapshot in enumerate(record.snapshots):
        now, known = which == index, snapshot.played > 0
        shown[now] = Population(np.sort(snapshot.rating[known])).queue_percentiles(record.after[now])
        truth[now] = queue_percentiles(snapshot.skill, known)[player[now]]
    return shown, truth


def _until(values: Floats) -> int | None:
    """The first number of matches, from 1, whose value is within bounds, as is the mean from there on."""
    later = np.cumsum(values[::-1])[::-1] / np.arange(len(values), 0, -1)
    good = np.flatnonzero((values <= WITHIN) & (later <= WITHIN))
    return int(good[0]) + 1 if len(good) else None


def _correlations(record: SeasonRecord, own: Flags) -> Iterator[tuple[float, float]]:
    for snapshot in record.snapshots:
        known = own & (snapshot.played > 0)
        rating, skill = (queue_percentiles(values, known)[known] for values in (snapshot.rating, snapshot.skill))
        if rating.std() > 0.0:
            yield float(snapshot.played[known].mean()), float(np.corrcoef(rating, skill)[0, 1])


def _rise(record: SeasonRecord, own: Flags, middle: Callable[[Floats], np.floating]) -> float:
    """Rise of the mean or median rating per 1,000 matches, by least squares over the second half of a season."""
    late = [snapshot for snapshot in record.snapshots if snapshot.round >= (record.rounds - 1) / 2]
    if len(late) < 2:
        return float("nan")
    matches = np.searchsorted(_rounds(record), [snapshot.round for snapshot in late], "right") / 1000.0
    known = own & (late[0].played > 0)
    level = [float(middle(snapshot.rating[known])) for snapshot in late]
    return float(np.polyfit(matches, level, 1)[0])


def _newcomer_effect(record: SeasonRecord, half: int, spread: float) -> float | None:
    """Return the effect of newcomers on the ratings of others, in the second half of a season."""
    h = record.history
    new = matches_before(record) < NEWCOMER
    with_newcomer = np.bincount(h.slot_match, new, len(h))[h.slot_match] > 0
    other = ~new & (h.slot_match >= half)
    among, without = other & with_newcomer, other & ~with_newcomer
    if not among.any() or not without.any():
        return None
    gain = (record.after - record.before) / spread * 1000.0
    return float(gain[among].mean() - gain[without].mean())
