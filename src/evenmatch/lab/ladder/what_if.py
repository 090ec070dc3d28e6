"""What if: the standings of a ladder under its present rules and under others, in sentences and a chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from evenmatch.calibration import Measure
from evenmatch.history import Flags, Floats, History
from evenmatch.lab.backtests import scoring
from evenmatch.lab.backtests.backtest import LEAST, SEED
from evenmatch.lab.backtests.evaluation import refused_by, replay_and_judge
from evenmatch.lab.backtests.match_cells import MatchCells, divide
from evenmatch.lab.backtests.scoring import Resamples, ScoredVariant, Variant
from evenmatch.lab.backtests.team_order import neutral
from evenmatch.lab.charts import COLORS, GREY, label, new_figure
from evenmatch.lab.ladder.health import rateable
from evenmatch.lab.queue.verdict import percent
from evenmatch.rating import check_range
from evenmatch.standings.activity import Activity
from evenmatch.standings.board import Board, snapshot
from evenmatch.standings.placement import expected_moves
from evenmatch.standings.rules import StandingsRules
from evenmatch.systems import loop
from evenmatch.systems.loop import Journal
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

WARM_UP = 0.5  # share of the matches that is rated but not used to compare predictions
NOW, THEN = "now", "then"

Ranks = NDArray[np.int64]


class RankChange(NamedTuple):
    """A player listed by both rules, with both positions."""

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
        """Ranks gained; negative for ranks lost."""
        return self.rank_now - self.rank_then


@dataclass(frozen=True, eq=False)
class RulesSide:
    """Standings of all P players under one set of rules; arrays (P,) by player number in the table.

    rank        int64, 1 is best, ties share a rank; 0: not listed
    percentile  int64, 1..100; 0: not listed
    division    int64, index into the divisions; valid for listed players only
    left_out    number of matches that the rules cannot rate
    """

    rules: Rules
    rating: Floats
    rank: Ranks
    percentile: NDArray[np.int64]
    division: NDArray[np.int64]
    left_out: int

    @property
    def listed(self) -> Flags:
        """Players in the standings, bool (P,)."""
        return np.asarray(self.rank > 0)


class Score(NamedTuple):
    """Quality of the predictions for the later half of the matches; see `lab.backtests.evaluation`."""

    log_loss: float
    accuracy: float | None
    calibration_slope: float | None


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The same matches under the present rules (`now`) and other rules (`then`).

    alike       Spearman correlation of the ranks of players listed by both, −1..1; NaN for fewer than two players
    scores      (now, then) over `judged` matches; None if these are too few for a comparison
    difference  log loss of `then` minus that of `now`, with a 95 % interval; below 0: `then` predicts better
    """

    matches: MatchTable
    standings: StandingsRules
    now: RulesSide
    then: RulesSide
    alike: float
    judged: int
    scores: tuple[Score, Score] | None
    difference: Measure | None

    @property
    def both(self) -> Flags:
        """Players listed by both rules, bool (P,)."""
        return np.asarray(self.now.listed & self.then.listed)

    @property
    def changed_division(self) -> float | None:
        """Share of the players listed by both whose division differs; None if there are no such players."""
        both = self.both
        return float((self.now.division != self.then.division)[both].mean()) if both.any() else None

    def movers(self, most: int | None = None) -> list[RankChange]:
        """Up to `most` players (None: all) who move, the largest change of percentile (then of rank) first."""
        divergence = np.abs(self.now.percentile - self.then.percentile)
        places = np.abs(self.now.rank - self.then.rank)
        moving = np.flatnonzero(self.both & ((divergence > 0) | (places > 0)))
        return self.rank_changes(moving[np.lexsort((moving, -places[moving], -divergence[moving]))][:most])

    def best(self, most: int) -> list[RankChange]:
        """Up to `most` players with the best present rank."""
        both = np.flatnonzero(self.both)
        return self.rank_changes(both[np.argsort(self.now.rank[both], kind="stable")][:most])

    def sample(self, most: int) -> list[RankChange]:
        """Up to `most` players listed by both, evenly spaced by present rank."""
        both = np.flatnonzero(self.both)
        both = both[np.argsort(self.now.rank[both], kind="stable")]
        chosen = np.unique(np.linspace(0, len(both) - 1, min(most, len(both))).round().astype(int))
        return self.rank_changes(both[chosen])

    def rank_changes(self, players: NDArray[np.integer]) -> list[RankChange]:
        """Positions of these players (by number) in both standings."""
        names, divisions = self.matches.player_names, [division.name for division in self.standings.divisions]
        now, then = self.now, self.then
        return [
            RankChange(
                names[player],
                rank_now=int(now.rank[player]),
                rank_then=int(then.rank[player]),
                rating_now=float(now.rating[player]),
                rating_then=float(then.rating[player]),
                percentile_now=int(now.percentile[player]),
                percentile_then=int(then.percentile[player]),
                division_now=divisions[now.division[player]],
                division_then=divisions[then.division[player]],
            )
            for player in players.tolist()
        ]


def what_if(
    matches: MatchTable,
    now: Rules,
    then: Rules,
    standings: StandingsRules | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> WhatIf:
    """Rate a ladder's matches by present and by other rules, both from initial ratings, as of the last match.

    standings  placement, active window and divisions, applied to both
    progress   called with the next step and the share of the work that is done
    Raises InputError if one of the rules cannot rate these matches.
    """
    standings = standings or StandingsRules()
    sides = []
    for index, (rules, name) in enumerate(((now, "present"), (then, "other"))):
        if progress is not None:
            progress(f"rating by the {name} rules", 0.25 * index)
        sides.append(_side(matches, rules, standings))
    if progress is not None:
        progress("comparing the predictions", 0.5)
    both = sides[0].listed & sides[1].listed
    alike = _spearman(sides[0].rating[both], sides[1].rating[both])
    early = int(len(matches) * WARM_UP)
    judged = len(matches) - early
    scores = difference = None
    if judged >= LEAST:
        scores, difference = _judge(matches, now, then, early)
    return WhatIf(matches, standings, sides[0], sides[1], alike, judged, scores, difference)


def _side(matches: MatchTable, rules: Rules, standings: StandingsRules) -> RulesSide:
    history = rateable(matches, rules)
    result = loop.replay(rules, history, rules.newcomers(history.players), journal=True)
    check_range(
        *(rules, history, rules.newcomers(history.players), result),
        matches.player_names.__getitem__,
        lambda match: str(matches.match_id[match].as_py()),
    )
    rating = np.ascontiguousarray(result.state["rating"], np.float64)
    standing = snapshot(_board(history, rating, result.journal), standings, int(history.columns.time[-1]))
    rank, percentile, division = (np.zeros(len(rating), np.int64) for _ in range(3))
    for entry in standing.among(np.flatnonzero(standing.listed)):
        rank[entry.player], percentile[entry.player] = entry.rank or 0, entry.percentile or 0
    division[standing.listed] = standing.divisions[standing.listed]
    return RulesSide(rules, rating, rank, percentile, division, len(refused_by(rules, matches.history)))


def _board(history: History, rating: Floats, journal: Journal | None) -> Board:
    assert journal is not None
    activity, count = Activity.of(history), history.players
    return Board(
        player=np.arange(count),
        rating=rating,
        matches=activity.matches,
        completed=activity.completed,
        last_completed=activity.last_completed,
        expected_move=expected_moves(history, journal.before, journal.after).last(history),
        division=np.full(count, -1, np.int16),  # no previous division for either side
        hidden=np.zeros(count, np.bool_),
    )


def _judge(matches: MatchTable, now: Rules, then: Rules, early: int) -> tuple[tuple[Score, Score], Measure]:
    """Scores of both rules and their difference, on the same matches and resamples."""
    matches, _ = neutral(matches)
    cells = divide(matches, early)
    resamples = Resamples.of(cells, SEED)
    results = [
        _judged(matches, Variant(rules.system.name, name, rules), cells, resamples)
        for name, rules in ((NOW, now), (THEN, then))
    ]
    row = scoring.against(results, results[0], cells, resamples).to_pylist()[1]
    scores = tuple(
        Score(float(result.score["log_loss"]), result.score["accuracy"], result.score["calibration_slope"])  # type: ignore[arg-type]
        for result in results
    )
    return (scores[0], scores[1]), Measure(row["difference"], row["low"], row["high"])


def _judged(matches: MatchTable, variant: Variant, cells: MatchCells, resamples: Resamples) -> ScoredVariant:
    history = rateable(matches, variant.rules)
    sums, bins = replay_and_judge(variant.rules, history, cells.of, len(cells))
    return scoring.judged(variant, sums, bins, 0.0, cells, resamples)


def _spearman(a: Floats, b: Floats) -> float:
    """Spearman correlation, ties at mid-rank; NaN if all values of one side are equal."""
    if len(a) < 2:
        return float("nan")
    left, right = (_middle_ranks(values) for values in (a, b))
    left, right = left - left.mean(), right - right.mean()
    size = np.sqrt((left**2).sum() * (right**2).sum())
    return float((left * right).sum() / size) if size > 0 else float("nan")


def _middle_ranks(values: Floats) -> Floats:
    ordered = np.sort(values)
    below = ordered.searchsorted(values, side="left")
    upto = ordered.searchsorted(values, side="right")
    return np.asarray((below + upto + 1) / 2.0)


SAME, ALIKE, APART = 0.9999, 0.95, 0.8  # correlations of ranks
# direction in which a player would move, color, symbol
MOVES = (("rise", COLORS[0], "triangle-up"), ("fall", COLORS[1], "triangle-down"), ("stay", GREY, "circle"))


def what_if_findings(found: WhatIf) -> list[str]:
    """Findings of a what-if as sentences, the most important first."""
    both = int(found.both.sum())
    if not both:
        return ["No player is listed by both rules: there is nothing to compare.", *_left_out(found)]
    return [*_odds(found), *_moves(found, both), *_left_out(found)]


def ranks(points: Sequence[tuple[str, int, int]]) -> go.Figure:
    """Chart of ranks by the other rules against present ranks; players above the line would rise.

    points  name, present rank and rank by the other rules of each player
    """
    figure = new_figure(height=460)
    last = max((rank for _, *both in points for rank in both), default=2)
    figure.add_scatter(
        **{"x": [1, last], "y": [1, last], "mode": "lines", "line": {"color": GREY, "width": 1}},
        hoverinfo="skip",
        showlegend=False,
    )
    for move, color, symbol in MOVES:
        moving = [point for point in points if _move(*point[1:]) == move]
        if moving:
            figure.add_scatter(
                x=[now for _, now, _ in moving],
                y=[then for *_, then in moving],
                customdata=[label(name, 30) for name, *_ in moving],
                mode="markers",
                marker={"color": color, "symbol": symbol, "size": 7 if len(points) <= 300 else 4},
                name=move,
                hovertemplate="%{customdata}<br>now #%{x:,}, then #%{y:,}<extra></extra>",
            )
    figure.update_layout(hovermode="closest", showlegend=True)
    figure.update_xaxes(title_text="rank now, the best on the right", autorange="reversed")
    figure.update_yaxes(title_text="rank then, the best on top", autorange="reversed")
    return figure


def _move(now: int, then: int) -> str:
    return "stay" if now == then else "rise" if then < now else "fall"


def _odds(found: WhatIf) -> list[str]:
    if found.scores is None or found.difference is None:
        few = f"{found.judged:,} match is" if found.judged == 1 else f"{found.judged:,} matches are"
        return [f"{few} too few to say which rules predict better: at least {LEAST} are needed."]
    now, then = (score.log_loss for score in found.scores)
    return [compared("The other rules", now, then, found.difference, found.judged)]


def compared(whose: str, now: float, then: float, difference: Measure, judged: int) -> str:
    """Sentence that compares the log loss of other rules with that of the present ones; `whose` is its subject."""
    figures = f"log loss {then:.4f} against {now:.4f} over the later {judged:,} matches"
    if difference.value == 0:
        return f"{whose} predict the same as the present ones: {figures}."
    if difference.low <= 0 <= difference.high or np.isnan(difference.low):
        return f"{whose} cannot be distinguished from the present ones by their predictions: {figures}."
    by = f"by {percent(abs(difference.value) / now)}, which is more than chance"
    return f"{whose} predict {'better' if difference.value < 0 else 'worse'}, {by}: {figures}."


def _moves(found: WhatIf, both: int) -> list[str]:
    sentences = []
    if found.alike >= SAME:
        sentences.append(f"The order of the {both:,} players listed by both is the same.")
    else:
        kind = "nearly the same" if found.alike >= ALIKE else "similar" if found.alike >= APART else "different"
        sentences.append(
            f"The order of the {both:,} players listed by both is {kind}: their ranks correlate by {found.alike:.2f}."
        )
    changed = found.changed_division or 0.0
    sentences.append(
        f"{percent(changed)} of them would be in another division." if changed else "All keep their division."
    )
    movers = found.movers(1)
    if movers:
        mover = movers[0]
        sentences.append(
            f"The largest move is from percentile {mover.percentile_now} to percentile {mover.percentile_then}."
        )
    return sentences


def _left_out(found: WhatIf) -> list[str]:
    now, then = found.now.left_out, found.then.left_out
    sentence = f"{then:,} match{'' if then == 1 else 'es'} cannot be rated by the other rules"
    return [f"{sentence}, {now:,} by the present ones."] if then or now else []
