"""What if: the standings of a ladder by other rules beside those by its own, from the same matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats, History
from evenmatch.lab import findings
from evenmatch.lab.backtest import LEAST, SEED
from evenmatch.lab.cells import Cells, divide
from evenmatch.lab.findings import Judged, Resamples, Variant
from evenmatch.lab.health import rateable
from evenmatch.lab.judging import refused_by, replay_and_judge
from evenmatch.lab.metrics import Measure
from evenmatch.lab.order import neutral
from evenmatch.rating import check_range
from evenmatch.standings.activity import Activity
from evenmatch.standings.board import Board, StandingsRules, snapshot
from evenmatch.systems import loop
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

WARM_UP = 0.5  # share of the matches that is learned from but not judged
NOW, THEN = "now", "then"

Ranks = NDArray[np.int64]


class Mover(NamedTuple):
    """A player whom both rules list, and where."""

    player: str
    rank_now: int
    rank_then: int
    rating_now: float
    rating_then: float
    percentile_now: int
    percentile_then: int
    division_now: str
    division_then: str

    @property
    def up(self) -> int:
        """By how many places they rise; negative where they fall."""
        return self.rank_now - self.rank_then


@dataclass(frozen=True, eq=False)
class Side:
    """Everybody by one of the rules, (P,) by number in the table.

    rank        int64, 1 is best, ties share one; 0: not listed
    percentile  int64 1..100 and division, an index; of the listed
    left_out    matches that the rules cannot rate
    """

    rules: Rules
    rating: Floats
    rank: Ranks
    percentile: NDArray[np.int64]
    division: NDArray[np.int64]
    left_out: int

    @property
    def listed(self) -> Flags:
        """Who stands in the standings."""
        return np.asarray(self.rank > 0)


class Score(NamedTuple):
    """How rules predict the later half of the matches: see lab.metrics."""

    log_loss: float
    accuracy: float | None
    calibration_slope: float | None


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The same matches by two rules.

    alike       Spearman's correlation of the ranks of those whom both list, −1..1; NaN where fewer than two are
    scores      now and then, over `judged` matches; None where these are too few to tell rules apart
    difference  of the log loss: then less now, with its 95 % interval; below 0: the other rules predict better
    """

    matches: MatchTable
    standings: StandingsRules
    now: Side
    then: Side
    alike: float
    judged: int
    scores: tuple[Score, Score] | None
    difference: Measure | None

    @property
    def both(self) -> Flags:
        """Whom both list."""
        return np.asarray(self.now.listed & self.then.listed)

    @property
    def changed_division(self) -> float | None:
        """The share of those whom both list whose division would be another."""
        both = self.both
        return float((self.now.division != self.then.division)[both].mean()) if both.any() else None

    def movers(self, most: int) -> list[Mover]:
        """Those who move farthest by percentile, then by rank, so many at most; nobody who would stay."""
        apart = np.abs(self.now.percentile - self.then.percentile)
        places = np.abs(self.now.rank - self.then.rank)
        moved = np.flatnonzero(self.both & ((apart > 0) | (places > 0)))
        return self.told(moved[np.lexsort((moved, -places[moved], -apart[moved]))][:most])

    def best(self, most: int) -> list[Mover]:
        """The best by the present rules."""
        both = np.flatnonzero(self.both)
        return self.told(both[np.argsort(self.now.rank[both], kind="stable")][:most])

    def sample(self, most: int) -> list[Mover]:
        """So many of those whom both list at most, by their present rank, evenly spread over it."""
        both = np.flatnonzero(self.both)
        both = both[np.argsort(self.now.rank[both], kind="stable")]
        chosen = np.unique(np.linspace(0, len(both) - 1, min(most, len(both))).round().astype(int))
        return self.told(both[chosen])

    def told(self, players: NDArray[np.integer]) -> list[Mover]:
        """These players (by number) in both standings."""
        names, divisions = self.matches.player_names, [one.name for one in self.standings.divisions]
        now, then = self.now, self.then
        return [
            Mover(
                names[at],
                rank_now=int(now.rank[at]),
                rank_then=int(then.rank[at]),
                rating_now=float(now.rating[at]),
                rating_then=float(then.rating[at]),
                percentile_now=int(now.percentile[at]),
                percentile_then=int(then.percentile[at]),
                division_now=divisions[now.division[at]],
                division_then=divisions[then.division[at]],
            )
            for at in players.tolist()
        ]


def what_if(matches: MatchTable, now: Rules, then: Rules, standings: StandingsRules | None = None) -> WhatIf:
    """A ladder's matches by its present rules and by others; both from newcomers on, as of the last match.

    standings  placement, active window and divisions, which are the same for both
    Raises InputError where one of the rules cannot rate these matches.
    """
    standings = standings or StandingsRules()
    sides = [_side(matches, rules, standings) for rules in (now, then)]
    both = sides[0].listed & sides[1].listed
    alike = _spearman(sides[0].rating[both], sides[1].rating[both])
    early = int(len(matches) * WARM_UP)
    judged = len(matches) - early
    scores = difference = None
    if judged >= LEAST:
        scores, difference = _judge(matches, now, then, early)
    return WhatIf(matches, standings, sides[0], sides[1], alike, judged, scores, difference)


def _side(matches: MatchTable, rules: Rules, standings: StandingsRules) -> Side:
    history = rateable(matches, rules)
    result = loop.replay(rules, history, rules.newcomers(history.players))
    check_range(
        *(rules, history, rules.newcomers(history.players), result),
        matches.player_names.__getitem__,
        lambda match: str(matches.match_id[match].as_py()),
    )
    rating = np.ascontiguousarray(result.state["rating"], np.float64)
    taken = snapshot(_board(history, rating), standings, int(history.columns.time[-1]))
    rank, percentile, division = (np.zeros(len(rating), np.int64) for _ in range(3))
    for one in taken.among(np.flatnonzero(taken.listed)):
        rank[one.player], percentile[one.player] = one.rank or 0, one.percentile or 0
    division[taken.listed] = taken.divisions[taken.listed]
    return Side(rules, rating, rank, percentile, division, len(refused_by(rules, matches.history)))


def _board(history: History, rating: Floats) -> Board:
    activity, count = Activity.of(history), history.players
    return Board(
        player=np.arange(count),
        rating=rating,
        matches=activity.matches,
        completed=activity.completed,
        last_completed=activity.last_completed,
        division=np.full(count, -1, np.int16),  # none is held from before: both begin alike
        hidden=np.zeros(count, np.bool_),
    )


def _judge(matches: MatchTable, now: Rules, then: Rules, early: int) -> tuple[tuple[Score, Score], Measure]:
    """How both predict, and the difference, all on the same matches and the same resamples."""
    matches, _ = neutral(matches)
    cells = divide(matches, early)
    drawn = Resamples.of(cells, SEED)
    found = [
        _judged(matches, Variant(rules.system.name, name, rules), cells, drawn)
        for name, rules in ((NOW, now), (THEN, then))
    ]
    row = findings.against_best(found, found[0], cells, drawn).to_pylist()[1]
    scores = tuple(
        Score(float(one.score["log_loss"]), one.score["accuracy"], one.score["calibration_slope"])  # type: ignore[arg-type]
        for one in found
    )
    return (scores[0], scores[1]), Measure(row["difference"], row["low"], row["high"])


def _judged(matches: MatchTable, variant: Variant, cells: Cells, drawn: Resamples) -> Judged:
    history = rateable(matches, variant.rules)
    sums, bins = replay_and_judge(variant.rules, history, cells.of, len(cells))
    return findings.judged(variant, sums, bins, 0.0, cells, drawn)


def _spearman(a: Floats, b: Floats) -> float:
    """The correlation of ranks, equal values sharing the middle one; NaN where one of them has no order."""
    if len(a) < 2:
        return float("nan")
    left, right = (_middle_ranks(one) for one in (a, b))
    left, right = left - left.mean(), right - right.mean()
    size = np.sqrt((left**2).sum() * (right**2).sum())
    return float((left * right).sum() / size) if size > 0 else float("nan")


def _middle_ranks(values: Floats) -> Floats:
    ordered = np.sort(values)
    below = ordered.searchsorted(values, side="left")
    upto = ordered.searchsorted(values, side="right")
    return np.asarray((below + upto + 1) / 2.0)
