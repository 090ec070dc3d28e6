"""How good predictions were: sums over cells of matches, from which every metric follows, and its bootstrap interval.

A cell is a set of matches that are always counted together: same block of time, ladder, period and experience (see
cells.py). Metrics of any set of cells, and of resampled blocks, are ratios of sums over cells, so each match is judged
once. A match counts once: in one of three teams or more, all pairs of teams are judged and averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenmatch.history import Floats, Integers

TINY = 1e-12  # no probability counts as less: being sure and wrong costs 27.6
SURE = -float(np.log(TINY))
BINS, PER_UNIT = 40, 5  # of the favourite's log-odds: 0 to 8
MATCHES, LOG_LOSS, THREE_WAY, BRIER, HITS, DECIDED, DRAW = range(7)  # columns of the sums
WEIGHT, LOG_ODDS, OUTCOME = range(3)  # columns of the bins
NEWTON = 25  # steps to the calibration slope, at the most
SETTLED = 1e-9  # a step that ends the search
STEEPEST = 20.0  # calibration slope
GROUPS = 10  # points of a reliability curve

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
    """Add what was foretold of the matches from `start` up to `stop` to the sums of their cells.

    foretold  float64 (P, 2)  win and draw of each pair of teams, as systems.loop.replay gives them to `watch`
    cell      int32 (M,)      the cell of each match; below 0: it is not judged
    sums      float64 (C, 7)  matches, log loss, three-way log loss, Brier score, share of decided pairs that were
                              foretold right, matches with a decided pair, probability of a draw
    bins      float64 (C, BINS, 3)  by the favourite's log-odds: weight, log-odds, outcome; or empty: not wanted
    """
    at = 0
    for m in range(start, stop):
        first, end = team_start[m], team_start[m + 1]
        teams = end - first
        pairs = teams * (teams - 1) // 2
        here = cell[m]
        if here < 0:
            at += pairs
            continue
        loss, three_way, brier, hits, decided, draws = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first, end):
            for j in range(i + 1, end):
                win, draw = foretold[at, 0], foretold[at, 1]
                at += 1
                ahead = place[j] - place[i]
                outcome = 1.0 if ahead > 0 else 0.5 if ahead == 0 else 0.0
                p = win + 0.5 * draw
                if not 0.0 <= p <= 1.0 + TINY:  # ratings that left the range of numbers: no sum may hide it
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
                    if p == 0.5:  # neither is the favourite
                        outcome = 0.5
                    odds = no - yes
                    if odds < 0.0:
                        odds, outcome = -odds, 1.0 - outcome
                    column = min(int(odds * PER_UNIT), BINS - 1)
                    bins[here, column, WEIGHT] += 1.0 / pairs
                    bins[here, column, LOG_ODDS] += odds / pairs
                    bins[here, column, OUTCOME] += outcome / pairs
        sums[here, MATCHES] += 1.0
        sums[here, LOG_LOSS] += loss / pairs
        sums[here, THREE_WAY] += three_way / pairs
        sums[here, BRIER] += brier / pairs
        sums[here, DRAW] += draws / pairs
        if decided > 0.0:
            sums[here, HITS] += hits / decided
            sums[here, DECIDED] += 1.0


@_compiled
def weigh(weights: Floats, values: Floats) -> Floats:
    """The matrix product of weights, many of them 0, and values: on one thread, where numpy's waits for others."""
    product = np.zeros((weights.shape[0], values.shape[1]))
    for row in range(weights.shape[0]):
        for block in range(weights.shape[1]):
            weight = weights[row, block]
            if weight != 0.0:
                for column in range(values.shape[1]):
                    product[row, column] += weight * values[block, column]
    return product


def _weigh_bins(weights: Floats, bins: Floats) -> Floats:
    """Bins of each resample: (R, bins, 3)."""
    flat = weigh(weights, np.ascontiguousarray(bins.reshape(len(bins), -1)))
    return flat.reshape(len(weights), *bins.shape[1:])


@dataclass(frozen=True)
class Measure:
    """A metric with its 95 % interval; NaN where there is none (no decided match, no draw foretold, few blocks)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Metrics:
    """How good the predictions of some matches were.

    log_loss           −ln of the probability of what happened; a draw counts half for either side. A coin has 0.693
    three_way_log_loss the same over win, draw and loss, where the system gives draws a probability
    brier              squared error of the expected score. A coin has 0.25 without draws
    accuracy           share of decided matches whose favourite won
    calibration_slope  1: odds are as they should be; below: too sure, above: too timid
    """

    matches: int
    log_loss: Measure
    three_way_log_loss: Measure
    brier: Measure
    accuracy: Measure
    calibration_slope: Measure


@dataclass(frozen=True)
class Point:
    """A point of a reliability curve: what the favourite was given, what came of it, and its 95 % interval."""

    predicted: float
    observed: float
    low: float
    high: float
    matches: float


def metrics(sums: Floats, bins: Floats, weights: Floats) -> Metrics:
    """Metrics of the blocks together.

    sums     float64 (B, 7) and bins float64 (B, BINS, 3), of each block
    weights  float64 (R, B)  how often each resample draws each block; R of 0: no intervals
    """
    total, drawn = sums.sum(0), weigh(weights, sums)
    silent = total[DRAW] == 0.0

    def ratio(of: int, over: int, *, hidden: bool = False) -> Measure:
        if hidden or total[over] == 0.0:
            return Measure(np.nan, np.nan, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            return measure(total[of] / total[over], drawn[:, of] / drawn[:, over])

    bins = bins[:, bins[:, :, WEIGHT].sum(0) > 0.0]
    slopes = calibration_slopes(np.concatenate((bins.sum(0)[None], _weigh_bins(weights, bins))))
    return Metrics(
        int(total[MATCHES]),
        ratio(LOG_LOSS, MATCHES),
        ratio(THREE_WAY, MATCHES, hidden=silent),
        ratio(BRIER, MATCHES),
        ratio(HITS, DECIDED),
        measure(float(slopes[0]), slopes[1:]),
    )


def measure(value: float, resampled: Floats) -> Measure:
    """A value with the 2.5th and 97.5th percentile of its resamples; NaN for those where there are none."""
    known = resampled[np.isfinite(resampled)]
    if not np.isfinite(value) or not len(known):
        return Measure(float(value) if np.isfinite(value) else np.nan, np.nan, np.nan)
    low, high = np.percentile(known, [2.5, 97.5])
    return Measure(float(value), float(low), float(high))


def calibration_slopes(bins: Floats) -> Floats:
    """The b of P(favourite scores) = 1/(1 + exp(−b · log-odds)) that fits best, for each row of float64 (R, BINS, 3).

    Logistic regression by Newton's method; each pair is seen from its favourite's side, so there is no intercept.
    """
    weight, outcome = bins[:, :, WEIGHT], bins[:, :, OUTCOME]
    odds = bins[:, :, LOG_ODDS] / np.where(weight > 0.0, weight, 1.0)
    slope, moved = np.ones(len(bins)), np.zeros(len(bins))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for _ in range(NEWTON):
            expected = 1.0 / (1.0 + np.exp(-slope[:, None] * odds))
            rise = ((outcome - weight * expected) * odds).sum(1)
            curve = (weight * expected * (1.0 - expected) * odds**2).sum(1)
            step = np.clip(rise / curve, -1.0, 1.0)
            slope = np.clip(slope + step, -STEEPEST, STEEPEST)
            moved = np.abs(step)
            if not (moved > SETTLED).any():
                break
    # Where every favourite won, or none did, no slope is steep enough: the search does not settle.
    return np.where(((weight * odds).sum(1) > 0.0) & ~(moved > SETTLED), slope, np.nan)


def reliability(bins: Floats, weights: Floats) -> list[Point]:
    """The reliability curve of the blocks together: points at favourites' odds from 50 to 100 %, in steps of 5."""
    total = bins.sum(0)
    drawn = _weigh_bins(weights, bins)
    filled = total[:, WEIGHT] > 0.0
    chance = 1.0 / (1.0 + np.exp(-total[:, LOG_ODDS] / np.where(filled, total[:, WEIGHT], 1.0)))
    group = np.minimum(((chance - 0.5) * 2 * GROUPS).astype(int), GROUPS - 1)
    points = []
    for at in range(GROUPS):
        here = filled & (group == at)
        weight = total[here, WEIGHT].sum()
        if weight > 0.0:
            with np.errstate(invalid="ignore", divide="ignore"):
                seen = drawn[:, here, OUTCOME].sum(1) / drawn[:, here, WEIGHT].sum(1)
            observed = measure(total[here, OUTCOME].sum() / weight, seen)
            predicted = (chance[here] * total[here, WEIGHT]).sum() / weight
            points.append(Point(float(predicted), observed.value, observed.low, observed.high, float(weight)))
    return points


def resample(blocks: int, times: int, seed: int) -> NDArray[np.float64]:
    """How often each of so many draws, with replacement, of as many blocks has each block: float64 (times, blocks)."""
    drawn = np.random.default_rng(seed).integers(0, blocks, (times, blocks))
    rows = np.repeat(np.arange(times), blocks) * blocks
    return np.bincount(rows + drawn.ravel(), minlength=times * blocks).reshape(times, blocks).astype(np.float64)
