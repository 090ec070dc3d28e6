"""Metrics of predictions with bootstrap intervals, computed from sums over cells of matches.

A cell is a set of matches with the same block of time, ladder, period and experience (see match_cells). Metrics of any
set of cells and of resampled blocks are ratios of sums over cells, so each match is scored once. A match has weight 1:
with three teams or more, the scores of all pairs of teams are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

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
from evenmatch.history import Floats, Integers

TINY = 1e-12  # lower bound of a probability: the largest log loss is 27.6
SURE = -float(np.log(TINY))
MATCHES, LOG_LOSS, THREE_WAY, BRIER, HITS, DECIDED, DRAW = range(7)  # columns of the sums

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
F = TypeVar("F", bound=Callable[..., object])


def _compiled(function: F) -> F:
    return cast("F", njit(**_OPTIONS)(function))


@_compiled
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
