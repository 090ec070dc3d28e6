"""Calibration of predictions: reliability curves and slopes, with bootstrap intervals.

Predictions are viewed from the favourite's side and counted in bins of its log-odds, by block of matches; intervals
come from resampled blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenmatch.history import Floats

BINS, PER_UNIT = 40, 5  # number of bins of the favourite's log-odds 0 to 8, and bins per unit
WEIGHT, LOG_ODDS, OUTCOME = range(3)  # columns of the bins
NEWTON = 25  # most steps of Newton's method for the calibration slope
SETTLED = 1e-9  # a smaller step counts as converged
STEEPEST = 20.0  # largest calibration slope
GROUPS = 10  # points of a reliability curve
TINY = 1e-12  # lower bound of a probability

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


@dataclass(frozen=True)
class Measure:
    """A metric with its 95 % interval; NaN if undefined (no decided match, no draws predicted, too few blocks)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """A point of a reliability curve: predicted and observed score of favourites, 95 % interval, matches."""

    predicted: float
    observed: float
    low: float
    high: float
    matches: float


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def weigh(weights: Floats, values: Floats) -> Floats:
    """Matrix product of sparse weights and values, single-threaded: BLAS threads would compete with the caller's."""
    product: Floats = np.zeros((weights.shape[0], values.shape[1]))
    for row in range(weights.shape[0]):
        for block in range(weights.shape[1]):
            weight = weights[row, block]
            if weight != 0.0:
                for column in range(values.shape[1]):
                    product[row, column] += weight * values[block, column]
    return product


def weigh_bins(weights: Floats, bins: Floats) -> Floats:
    """Bins of each resample: (R, bins, 3)."""
    flat: Floats = weigh(weights, np.ascontiguousarray(bins.reshape(len(bins), -1)))
    return flat.reshape(len(weights), *bins.shape[1:])


def measure(value: float, resampled: Floats) -> Measure:
    """A value with the 2.5th and 97.5th percentile of its resamples; NaN if there are none."""
    known = resampled[np.isfinite(resampled)]
    if not np.isfinite(value) or not len(known):
        return Measure(float(value) if np.isfinite(value) else np.nan, np.nan, np.nan)
    low, high = np.percentile(known, [2.5, 97.5])
    return Measure(float(value), float(low), float(high))


def calibration_slopes(bins: Floats) -> Floats:
    """Fit b of P(favourite scores) = 1/(1 + exp(−b · log-odds)) for each row of float64 (R, BINS, 3).

    Logistic regression by Newton's method; pairs are viewed from the favourite's side, so there is no intercept.
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
    # If every favourite won, or none did, the slope diverges: no convergence, NaN.
    return np.where(((weight * odds).sum(1) > 0.0) & ~(moved > SETTLED), slope, np.nan)


def reliability(bins: Floats, weights: Floats) -> list[Point]:
    """Reliability curve over all blocks: points for favourites' odds from 50 to 100 % in steps of 5."""
    total = bins.sum(0)
    drawn = weigh_bins(weights, bins)
    filled = total[:, WEIGHT] > 0.0
    chance = 1.0 / (1.0 + np.exp(-total[:, LOG_ODDS] / np.where(filled, total[:, WEIGHT], 1.0)))
    group = np.minimum(((chance - 0.5) * 2 * GROUPS).astype(int), GROUPS - 1)
    points = []
    for index in range(GROUPS):
        in_group = filled & (group == index)
        weight = total[in_group, WEIGHT].sum()
        if weight > 0.0:
            with np.errstate(invalid="ignore", divide="ignore"):
                resampled = drawn[:, in_group, OUTCOME].sum(1) / drawn[:, in_group, WEIGHT].sum(1)
            observed = measure(total[in_group, OUTCOME].sum() / weight, resampled)
            predicted = (chance[in_group] * total[in_group, WEIGHT]).sum() / weight
            points.append(Point(float(predicted), observed.value, observed.low, observed.high, float(weight)))
    return points


def resample(blocks: int, times: int, seed: int) -> NDArray[np.float64]:
    """Count how often each bootstrap resample contains each block: float64 (times, blocks)."""
    drawn = np.random.default_rng(seed).integers(0, blocks, (times, blocks))
    rows = np.repeat(np.arange(times), blocks) * blocks
    return np.bincount(rows + drawn.ravel(), minlength=times * blocks).reshape(times, blocks).astype(np.float64)


def bins_of(predicted: Floats, scored: Floats, weight: Floats, block: NDArray[np.int64], blocks: int) -> Floats:
    """Bins of N predicted scores by block, from the favourite's side; float64 (blocks, BINS, 3).

    predicted, scored  float64 (N,)  0..1;  weight  float64 (N,);  block  int64 (N,)  below `blocks`
    """
    bounded = np.clip(predicted, TINY, 1 - TINY)
    odds = np.log(bounded) - np.log1p(-bounded)
    outcome = np.where(odds == 0, 0.5, np.where(odds < 0, 1 - scored, scored))
    odds = np.abs(odds)
    cell = block * BINS + np.minimum((odds * PER_UNIT).astype(np.int64), BINS - 1)
    sums = [np.bincount(cell, weight * values, blocks * BINS) for values in (np.ones(len(odds)), odds, outcome)]
    bins: Floats = np.stack(sums, axis=1).astype(np.float64).reshape(blocks, BINS, 3)
    return bins
