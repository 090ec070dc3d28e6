"""Health of a rating system in simulated seasons, where true skill is known.

A ladder that was recorded is measured by `evenmatch.lab.ladder.health`, which needs no true skill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenmatch.calibration import bins_of, calibration_slopes
from evenmatch.durations import DAY
from evenmatch.history import Flags, Floats
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.fairness.audit import Contestant
from evenmatch.lab.ladder.health import floor_of
from evenmatch.lab.seasons.games import GAMES, Whole
from evenmatch.lab.seasons.season import START, SeasonRecord, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings

WITHIN = 5.0  # percentiles: nearer to the truth counts as found
NEWCOMER = 10  # matches after which a player is no newcomer any more
# Players count as newcomers whose first match falls into this part of a season: there is a ladder that they join, and
# time to follow them.
ARRIVAL = (0.2, 0.6)
FOLLOWED = 2 / 3  # share of the newcomers who have to play a number of matches for it to be measured
# Matches per player that Microsoft states for TrueSkill.
MICROSOFT = {"duel": 12, "team": 46, "squad": 91, "arena": 3}
TABLE_MATCHES = {"duel": 8000, "team": 8000, "squad": 5000, "arena": 1500}  # in a season of the table


class Approach(NamedTuple):
    """How near newcomers come to their true percentile, by the number of their matches from 1 to K.

    players    int64 (K,)    newcomers who played so many
    distance   float64 (K,)  mean distance of the shown percentile from the true one
    shortfall  float64 (K,)  by how much the shown percentile lies nearer to the middle than the true one, on average
    """

    players: Whole
    distance: Floats
    shortfall: Floats

    def to_data(self) -> dict[str, object]:
        """All numbers, for JSON."""
        numbers = {name: column.tolist() for name, column in self._asdict().items()}
        return numbers | {"found": self.found, "near": self.near}

    @property
    def shown(self) -> str:
        """Matches until newcomers are found, for a table."""
        return f"over {len(self.shortfall)}" if self.found is None else str(self.found)

    @property
    def found(self) -> int | None:
        """Matches until the mean shortfall is within 5 percentiles, and stays so on average; None: it never is."""
        return _until(np.abs(self.shortfall))

    @property
    def near(self) -> int | None:
        """Matches until the mean distance is within 5 percentiles, and stays so on average; None: it never is."""
        return _until(self.distance)


class SeasonHealth(NamedTuple):
    """Measurements of a season. A spread is the standard deviation of all ratings at the end.

    approach     of the newcomers
    correlation  rank correlation of rating and true skill, with the mean number of matches per player, over time
    mean_rise, median_rise  of the ratings in 1,000 matches, in points, over the second half of the season, among those
                 who have played in the first half
    spread       points
    at_floor     share of the players at the floor at the end; None: the system has none
    newcomers    mean change of rating of other players in a match with newcomers minus that in other matches,
                 thousandths of a spread; None: there are none
    slope        share of the system's log-odds that is true; below 1: its odds are too sure
    """

    approach: Approach
    correlation: tuple[tuple[float, float], ...]
    mean_rise: float
    median_rise: float
    spread: float
    at_floor: float | None
    newcomers: float | None
    slope: float

    def to_data(self) -> dict[str, object]:
        """All numbers, for JSON."""
        return self._asdict() | {"approach": self.approach.to_data()}

    def as_shown(self) -> list[str]:
        """The numbers of a table: correlation, rises, share at the floor, effect of newcomers, slope."""
        return [
            f"{self.correlation[-1][1]:.3f}",
            f"{self.mean_rise:+.3g}",
            f"{self.median_rise:+.3g}",
            "–" if self.at_floor is None else f"{self.at_floor:.0%}",
            "–" if self.newcomers is None else f"{self.newcomers:+.0f}",
            f"{self.slope:.2f}",
        ]


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
    """A season of the table: skill does not change, and everybody plays alone and about equally often."""
    still = dict.fromkeys(("learning", "drift", "eagerness", "days_off", "parties"), 0.0)
    made = SeasonSettings(game=game, players=200, matches=TABLE_MATCHES[game], seed=seed, newcomers=0.5)
    return replace(made, **still)  # type: ignore[arg-type]


def newcomer_approach(contestant: Contestant, settings: Sequence[SeasonSettings]) -> Approach:
    """Simulate these seasons and follow the newcomers of all of them, in any process."""
    return approach_of([simulate_season(each, contestant.rules) for each in settings])


def newcomer_table(
    contestants: Sequence[Contestant],
    workers: Workers,
    seeds: Sequence[int] = (1, 2),
    progress: Callable[[int, int], None] | None = None,
) -> dict[Contestant, dict[str, Approach]]:
    """How soon each system finds newcomers in the games of Microsoft's table that it can rate.

    progress  called with the number of finished cells and the number of all
    """
    cells = [(c, game) for c in contestants for game in MICROSOFT if c.rules.system.teams in (None, GAMES[game].teams)]
    futures = {
        workers.submit(newcomer_approach, c, [table_settings(game, seed) for seed in seeds]): (c, game)
        for c, game in cells
    }
    table: dict[Contestant, dict[str, Approach]] = {contestant: {} for contestant in contestants}
    for done, future in enumerate(as_completed(futures), 1):
        contestant, game = futures[future]
        table[contestant][game] = future.result()
        if progress is not None:
            progress(done, len(futures))
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
    """How many matches each slot's player has played before, int64 (S,)."""
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
    """Accounts that play their first match in the part of the season that is meant for it, bool (A,)."""
    first = np.full(len(record.person), record.rounds)
    np.minimum.at(first, record.history.columns.player, _rounds(record)[record.history.slot_match])
    low, high = (share * record.rounds for share in ARRIVAL)
    return (first >= low) & (first < high)


def _percentiles(record: SeasonRecord) -> tuple[Floats, Floats]:
    """Shown and true percentile of each slot after the match, among all players at the next snapshot; float64 (S,)."""
    player, rounds = record.history.columns.player, _rounds(record)[record.history.slot_match]
    which = np.searchsorted([snapshot.round for snapshot in record.snapshots], rounds)
    shown, truth = np.empty(len(player)), np.empty(len(player))
    for index, snapshot in enumerate(record.snapshots):
        now, known = which == index, snapshot.played > 0
        shown[now] = _rank(record.after[now], snapshot.rating[known])
        truth[now] = _rank(snapshot.skill[player[now]], snapshot.skill[known])
    return shown, truth


def _rank(values: Floats, population: Floats) -> Floats:
    """Percentile of each value in a population, 0..100; equals count half."""
    ordered = np.sort(population)
    ranks: Floats = 50.0 * (ordered.searchsorted(values, "left") + ordered.searchsorted(values, "right")) / len(ordered)
    return ranks


def _until(values: Floats) -> int | None:
    """The first number of matches, from 1, with a value within bounds and a mean of it and all later ones as well."""
    later = np.cumsum(values[::-1])[::-1] / np.arange(len(values), 0, -1)
    good = np.flatnonzero((values <= WITHIN) & (later <= WITHIN))
    return int(good[0]) + 1 if len(good) else None


def _correlations(record: SeasonRecord, own: Flags) -> Iterator[tuple[float, float]]:
    for snapshot in record.snapshots:
        known = own & (snapshot.played > 0)
        rating, skill = (_rank(values[known], values[known]) for values in (snapshot.rating, snapshot.skill))
        if rating.std() > 0.0:
            yield float(snapshot.played[known].mean()), float(np.corrcoef(rating, skill)[0, 1])


def _rise(record: SeasonRecord, own: Flags, middle: Callable[[Floats], np.floating]) -> float:
    """Rise of a middle of ratings in 1,000 matches, by least squares over the second half of a season."""
    late = [snapshot for snapshot in record.snapshots if snapshot.round >= (record.rounds - 1) / 2]
    if len(late) < 2:
        return float("nan")
    matches = np.searchsorted(_rounds(record), [snapshot.round for snapshot in late], "right") / 1000.0
    known = own & (late[0].played > 0)
    level = [float(middle(snapshot.rating[known])) for snapshot in late]
    return float(np.polyfit(matches, level, 1)[0])


def _newcomer_effect(record: SeasonRecord, half: int, spread: float) -> float | None:
    """What a match with newcomers changes for others, in the second half of a season."""
    h = record.history
    new = matches_before(record) < NEWCOMER
    with_newcomer = np.bincount(h.slot_match, new, len(h))[h.slot_match] > 0
    other = ~new & (h.slot_match >= half)
    among, without = other & with_newcomer, other & ~with_newcomer
    if not among.any() or not without.any():
        return None
    gain = (record.after - record.before) / spread * 1000.0
    return float(gain[among].mean() - gain[without].mean())
