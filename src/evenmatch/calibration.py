"""Calibration of predictions, and comparison of two groups of matches, with bootstrap intervals.

Predictions are viewed from the favourite's side and counted in bins of its log-odds, by block of matches. Intervals
come from resampled blocks, because the matches of a block share players, ratings and the hour of the day. Two groups
are compared within the same blocks (a paired cluster bootstrap), with Student's intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenmatch.history import FloatOrNaN, Floats
from evenmatch.kernel_cache import use_installed

BINS, PER_UNIT = 40, 5  # number of bins of the favourite's log-odds 0 to 8, and bins per unit
WEIGHT, LOG_ODDS, OUTCOME = range(3)  # columns of the bins
NEWTON_STEPS = 25  # iteration cap of Newton's method for the calibration slope
CONVERGED_STEP = 1e-9  # a smaller step counts as converged
STEEPEST = 20.0  # largest calibration slope
CURVE_POINTS = 10  # points of a reliability curve
SMALLEST_CHANCE = 1e-12  # lower bound of a probability

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


@dataclass(frozen=True)
class Measure:
    """A metric with its 95 % interval; undefined without decided matches, predicted draws, or enough blocks."""

    value: FloatOrNaN
    low: FloatOrNaN
    high: FloatOrNaN


@dataclass(frozen=True)
class Point:
    """A group of favourites with similar odds: their predicted and their observed score, 0 to 1.

    low, high  95 % interval of the observed score
    """

    predicted: float
    observed: float
    low: FloatOrNaN
    high: FloatOrNaN
    matches: float


@use_installed
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
    """Return a value with the 2.5th and 97.5th percentiles of its resamples; NaN if there are none."""
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
        for _ in range(NEWTON_STEPS):
            expected = 1.0 / (1.0 + np.exp(-slope[:, None] * odds))
            rise = ((outcome - weight * expected) * odds).sum(1)
            curve = (weight * expected * (1.0 - expected) * odds**2).sum(1)
            step = np.clip(rise / curve, -1.0, 1.0)
            slope = np.clip(slope + step, -STEEPEST, STEEPEST)
            moved = np.abs(step)
            if not (moved > CONVERGED_STEP).any():
                break
    # The slope diverges if every favourite won or none did.
    return np.where(((weight * odds).sum(1) > 0.0) & ~(moved > CONVERGED_STEP), slope, np.nan)


def reliability(bins: Floats, weights: Floats) -> list[Point]:
    """Reliability curve over all blocks: points for favourites' odds from 50 to 100 % in steps of 5."""
    total = bins.sum(0)
    drawn = weigh_bins(weights, bins)
    filled = total[:, WEIGHT] > 0.0
    chance = 1.0 / (1.0 + np.exp(-total[:, LOG_ODDS] / np.where(filled, total[:, WEIGHT], 1.0)))
    group = np.minimum(((chance - 0.5) * 2 * CURVE_POINTS).astype(int), CURVE_POINTS - 1)
    points = []
    for index in range(CURVE_POINTS):
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
    bounded = np.clip(predicted, SMALLEST_CHANCE, 1 - SMALLEST_CHANCE)
    odds = np.log(bounded) - np.log1p(-bounded)
    outcome = np.where(odds == 0, 0.5, np.where(odds < 0, 1 - scored, scored))
    odds = np.abs(odds)
    cell = block * BINS + np.minimum((odds * PER_UNIT).astype(np.int64), BINS - 1)
    sums = [np.bincount(cell, weight * values, blocks * BINS) for values in (np.ones(len(odds)), odds, outcome)]
    bins: Floats = np.stack(sums, axis=1).astype(np.float64).reshape(blocks, BINS, 3)
    return bins


MOST_CLUSTERS = 200  # if there are more blocks, they are merged at random, as their slices were drawn at random
FEWEST_BLOCKS = 10  # blocks needed for an interval
RESAMPLES = 500
GRID_POINTS = 512  # points at which the distribution of a figure is evaluated
DEFINED_SHARE = 0.95  # share of the resamples in which a figure must be defined
NORMAL = 1.959964  # 97.5 % quantile of the normal distribution
POWER = 0.841621  # 80 % quantile: the chance to find a difference of the assumed size

Whole = NDArray[np.int64]


class GroupDifference(NamedTuple):
    """Second minus first value, with its 95 % interval and standard error; NaN if unknown."""

    value: float
    low: float
    high: float
    error: float

    @property
    def is_known(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0


class Estimate(NamedTuple):
    """A figure of one group. resampled: float64 (R,)  the figure in each resample; empty if unknown."""

    value: float
    resampled: Floats
    clusters: int

    @property
    def error(self) -> float:
        """Standard error; NaN if too few resamples define the figure or all are equal (for example, no rematches)."""
        known = self.resampled[np.isfinite(self.resampled)]
        if not isfinite(self.value) or len(known) < DEFINED_SHARE * len(self.resampled) or len(np.unique(known)) < 2:
            return nan
        # Resampling n clusters understates the variance of a mean by (n − 1) / n.
        return float(known.std(ddof=1)) * sqrt(self.clusters / (self.clusters - 1))

    @property
    def measure(self) -> Measure:
        """The value with its 95 % interval."""
        margin = student(self.clusters - 1) * self.error
        return Measure(self.value, self.value - margin, self.value + margin)

    @property
    def share(self) -> Measure:
        """The value of a share with percentiles of its resamples, which stay within 0 and 1."""
        return measure(self.value, self.resampled)


class Blocks:
    """The blocks of time that are resampled, with the matches of both groups.

    numbers  int64 (B,)  number of every block, ascending, including blocks without a match
    """

    def __init__(self, numbers: Whole, seed: int) -> None:
        self.numbers = numbers
        self.count = min(len(numbers), MOST_CLUSTERS)
        order = np.random.default_rng([seed, len(numbers)]).permutation(len(numbers))
        self._cluster = order * self.count // max(len(numbers), 1)
        self._weights = (
            resample(self.count, RESAMPLES, seed) if len(numbers) >= FEWEST_BLOCKS else np.empty((0, self.count))
        )

    def mean(self, values: Floats, block: Whole) -> Estimate:
        """The mean of N values; `block`: int64 (N,), the block number of each value."""
        return self.ratio(np.ones(len(values)), values, block)

    def ratio(self, weight: Floats, values: Floats, block: Whole) -> Estimate:
        """The sum of N values divided by the sum of their weights."""
        cluster = self._of(block)
        parts = [np.bincount(cluster, part, self.count).astype(np.float64) for part in (weight, values)]
        sums = np.stack(parts, axis=1)
        total, drawn = sums.sum(axis=0), weigh(self._weights, sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            return Estimate(float(total[1] / total[0]), drawn[:, 1] / drawn[:, 0], self.count)

    def quantile(self, values: Floats, block: Whole, share: float) -> Estimate:
        """The value that this share of N values does not exceed."""
        if not len(values):
            return self._unknown()
        grid = np.unique(np.quantile(values, np.linspace(0.0, 1.0, GRID_POINTS), method="inverted_cdf"))
        cell = self._of(block) * len(grid) + np.searchsorted(grid, values)
        counts = np.bincount(cell, minlength=self.count * len(grid)).reshape(self.count, len(grid)).astype(np.float64)
        below = weigh(self._weights, counts).cumsum(axis=1)
        reached = (below >= share * below[:, -1:]).argmax(axis=1)
        resampled = np.where(below[:, -1] > 0.0, grid[reached], nan)
        return Estimate(float(np.quantile(values, share)), resampled, self.count)

    def slope(self, predicted: Floats, scored: Floats, weight: Floats, block: Whole) -> Estimate:
        """The calibration slope of N predicted scores."""
        if not len(predicted):
            return self._unknown()
        bins = bins_of(predicted, scored, weight, self._of(block), self.count)
        slopes = calibration_slopes(np.concatenate((bins.sum(axis=0)[None], weigh_bins(self._weights, bins))))
        return Estimate(float(slopes[0]), slopes[1:], self.count)

    def reliability(self, predicted: Floats, scored: Floats, weight: Floats, block: Whole) -> list[Point]:
        """The reliability curve of N predicted scores."""
        return reliability(bins_of(predicted, scored, weight, self._of(block), self.count), self._weights)

    def _of(self, block: Whole) -> Whole:
        """The cluster of each value."""
        return self._cluster[np.searchsorted(self.numbers, block)]

    def _unknown(self) -> Estimate:
        return Estimate(nan, np.empty(0), self.count)


def student(freedom: float) -> float:
    """The 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5); NaN below 1 degree of freedom."""
    if freedom < 1:
        return nan
    z = NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


def difference(first: Estimate, second: Estimate) -> GroupDifference:
    """The second figure minus the first, both estimated from the same blocks."""
    value = second.value - first.value
    if len(first.resampled) != len(second.resampled):
        return GroupDifference(value, nan, nan, nan)
    apart = Estimate(value, second.resampled - first.resampled, first.clusters)
    return GroupDifference(value, apart.measure.low, apart.measure.high, apart.error)


def further(apart: GroupDifference, size: float, matches: int) -> int | None:
    """How many more matches would find a difference of this size with a chance of 80 %; None: unknown.

    matches  matches of both groups so far; the standard error falls with the square root of their number
    """
    if not isfinite(apart.error) or not isfinite(size) or size == 0.0:
        return None
    needed = matches * ((NORMAL + POWER) * apart.error / size) ** 2
    return max(ceil(needed - matches), 0)
