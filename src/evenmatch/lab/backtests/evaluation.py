"""Replay a history with one set of rules, and score its predictions with bootstrap intervals.

Metrics are ratios of sums over cells, sets of matches of one block of time, ladder, period and experience (see
match_cells), so each match is scored once. A match has weight 1: with three teams or more, the scores of all pairs of
teams are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from evenmatch.calibration import (
    BINS,
    LOG_ODDS,
    OUTCOME,
    PER_UNIT,
    WEIGHT,
    Measure,
    calibration_slopes,
    measure,
    weigh,
    weigh_bins,
)
from evenmatch.history import Floats, History, Integers
from evenmatch.lab.backtests.match_cells import count_before
from evenmatch.match import Appearance, Match, Team
from evenmatch.rating import rules_of
from evenmatch.systems import loop
from evenmatch.systems.compiled import cached
from evenmatch.systems.system import Rules
from evenmatch.tables import from_matches

TINY = 1e-12  # lower bound of a probability: the largest log loss is 27.6
SURE = -float(np.log(TINY))
MATCHES, LOG_LOSS, THREE_WAY, BRIER, HITS, DECIDED, DRAW = range(7)  # columns of the sums


@cached
def judge(
    team_start: Integers,
    place: Integers,
    start: int,
    stop: int,
    foretold: Floats,
    cell: Integers,
    sums: Floats,
    bins: Floats,
) -> None:
    """Score the predictions of matches `start` up to `stop` and add them to the sums of their cells.

    foretold  float64 (P, 2)  predicted win and draw of each pair of teams, as systems.loop.replay passes to `watch`
    cell      int32 (M,)      cell of each match; below 0: not scored
    sums      float64 (C, 7)  matches, log loss, three-way log loss, Brier score, share of decided pairs that were
                              predicted right, matches with a decided pair, probability of a draw
    bins      float64 (C, BINS, 3)  by the favourite's log-odds: weight, log-odds, outcome; empty: not needed
    """
    pair = 0
    for m in range(start, stop):
        first, end = team_start[m], team_start[m + 1]
        teams = end - first
        pairs = teams * (teams - 1) // 2
        row = cell[m]
        if row < 0:
            pair += pairs
            continue
        loss, three_way, brier, hits, decided, draws = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first, end):
            for j in range(i + 1, end):
                win, draw = foretold[pair, 0], foretold[pair, 1]
                pair += 1
                ahead = place[j] - place[i]
                outcome = 1.0 if ahead > 0 else 0.5 if ahead == 0 else 0.0
                p = win + 0.5 * draw
                if not 0.0 <= p <= 1.0 + TINY:  # ratings overflowed: make the sum NaN
                    loss = np.nan
                    continue
                p = min(max(p, TINY), 1.0 - TINY)
                yes, no = -np.log(p), -np.log(1.0 - p)
                loss += outcome * yes + (1.0 - outcome) * no
                brier += (p - outcome) ** 2
                draws += draw
                if draw > 0.0:
                    chance = win if ahead > 0 else draw if ahead == 0 else 1.0 - win - draw
                    three_way -= np.log(max(chance, TINY))
                else:
                    three_way += yes if ahead > 0 else no if ahead < 0 else SURE
                if ahead != 0:
                    decided += 1.0
                    hits += 0.5 if p == 0.5 else 1.0 if (p > 0.5) == (ahead > 0) else 0.0
                if len(bins):
                    if p == 0.5:  # no favourite
                        outcome = 0.5
                    odds = no - yes
                    if odds < 0.0:
                        odds, outcome = -odds, 1.0 - outcome
                    column = min(int(odds * PER_UNIT), BINS - 1)
                    bins[row, column, WEIGHT] += 1.0 / pairs
                    bins[row, column, LOG_ODDS] += odds / pairs
                    bins[row, column, OUTCOME] += outcome / pairs
        sums[row, MATCHES] += 1.0
        sums[row, LOG_LOSS] += loss / pairs
        sums[row, THREE_WAY] += three_way / pairs
        sums[row, BRIER] += brier / pairs
        sums[row, DRAW] += draws / pairs
        if decided > 0.0:
            sums[row, HITS] += hits / decided
            sums[row, DECIDED] += 1.0


@dataclass(frozen=True)
class Metrics:
    """Quality of the predictions for a set of matches.

    log_loss           −ln of the probability of the result; a draw is half a win and half a loss. 50 % gives 0.693
    three_way_log_loss log loss over win, draw and loss, if the system predicts draws
    brier              squared error of the expected score; 50 % gives 0.25 without draws
    accuracy           share of decided matches that the favourite won
    calibration_slope  1: calibrated; below 1: overconfident; above 1: underconfident
    """

    matches: int
    log_loss: Measure
    three_way_log_loss: Measure
    brier: Measure
    accuracy: Measure
    calibration_slope: Measure


def metrics(sums: Floats, bins: Floats, weights: Floats) -> Metrics:
    """Metrics over all blocks.

    sums     float64 (B, 7)  by block; bins: float64 (B, BINS, 3)
    weights  float64 (R, B)  how often each resample contains each block; R = 0: no intervals
    """
    total, resampled = sums.sum(0), weigh(weights, sums)
    no_draws = total[DRAW] == 0.0

    def ratio(numerator: int, denominator: int, *, hidden: bool = False) -> Measure:
        if hidden or total[denominator] == 0.0:
            return Measure(np.nan, np.nan, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            return measure(total[numerator] / total[denominator], resampled[:, numerator] / resampled[:, denominator])

    bins = bins[:, bins[:, :, WEIGHT].sum(0) > 0.0]
    slopes = calibration_slopes(np.concatenate((bins.sum(0)[None], weigh_bins(weights, bins))))
    return Metrics(
        int(total[MATCHES]),
        ratio(LOG_LOSS, MATCHES),
        ratio(THREE_WAY, MATCHES, hidden=no_draws),
        ratio(BRIER, MATCHES),
        ratio(HITS, DECIDED),
        measure(float(slopes[0]), slopes[1:]),
    )


REFUSED = 0.05  # largest share of the matches that a system may be unable to rate


def replay_and_judge(
    rules: Rules, history: History, cell: Integers, cells: int, *, with_bins: bool = True
) -> tuple[Floats, Floats]:
    """Rate a history from initial ratings and score its predictions: sums (C, 7) and bins (C, BINS, 3) by cell."""
    sums, bins = np.zeros((cells, 7)), np.zeros((cells if with_bins else 0, BINS, 3))
    c = history.columns

    def watch(start: int, stop: int, predicted: Floats) -> None:
        judge(c.team_start, c.place, start, stop, predicted, cell, sums, bins)

    loop.replay(rules, history, rules.newcomers(history.players), watch=watch)
    return sums, bins


def refused_by(rules: Rules, history: History) -> dict[int, str]:
    """Matches (by number) that the rules cannot rate, with the reasons."""
    return dict(rules.system.refusals(history.columns, rules.parameters))


def too_many(refused: int, matches: int) -> bool:
    """Whether the rules refuse more than the share REFUSED of the matches."""
    return refused > REFUSED * matches


def why_not(history: History, rules: Rules) -> str:
    """Reason why rules cannot be evaluated on this history; empty if they can."""
    refused = refused_by(rules, history)
    return why_not_of(len(refused), len(history), next(iter(refused.values()), ""))


def why_not_of(refused: int, matches: int, reason: str) -> str:
    """Like `why_not`, from the number of refused matches and the reason for the first."""
    if not too_many(refused, matches):
        return ""
    return f"cannot rate {refused:,} of {matches:,} matches: {reason}"


def rateable_history(history: History, rules: Rules) -> History:
    """History in which matches that the rules cannot rate are predicted but change no ratings."""
    return without(history, refused_by(rules, history))


def without(history: History, refused: Mapping[int, str]) -> History:
    """History in which the refused matches change no ratings."""
    if not refused:
        return history
    in_refused = np.isin(history.slot_match, list(refused))
    return History(history.columns._replace(keep=history.columns.keep & ~in_refused))


def compile_measures() -> None:
    """Compile the kernels that judge predictions, or load them, on a duel rated by elo."""
    sides = tuple(Team((Appearance(name),), place) for place, name in ((1, "a"), (2, "b")))
    duel = from_matches([Match("duel", datetime(2026, 1, 1, tzinfo=UTC), sides)])
    replay_and_judge(rules_of("elo"), duel.history, np.zeros(1, np.int32), 1)
    count_before(duel.history.match_slots, duel.history.columns.player, np.zeros(2, np.int64), np.zeros(1, np.int64))
    for order in ("C", "F"):  # the layouts of resamples with and without warm-up blocks
        weigh(np.ones((2, 2), order=order), np.ones((2, 2)))
