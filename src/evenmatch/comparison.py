"""Comparison of two groups of matches in the same blocks of time: differences with intervals.

Matches of one block have players, ratings and the hour of the day in common, and each block has matches of both
groups. So blocks are resampled, with the matches of both groups, and not matches (a paired cluster bootstrap).
Intervals are Student's, with the standard deviation of the resampled figures.
"""

from __future__ import annotations

from math import ceil, isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.calibration import Measure, bins_of, calibration_slopes, resample, weigh, weigh_bins
from evenmatch.history import Floats

MOST = 200  # clusters: more blocks are put together at random, as their slices were drawn at random
FEW = 10  # with fewer blocks no interval is given
RESAMPLES = 500
GRID = 512  # values at which the distribution of a figure is counted
KNOWN = 0.95  # share of the resamples that must define a figure
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
    """A figure of one group. resampled: float64 (R,)  the same of each resample of `clusters`; none if unknown."""

    value: float
    resampled: Floats
    clusters: int

    @property
    def error(self) -> float:
        """Standard error; NaN if too few resamples define the figure, or all are equal, as those of no rematch."""
        known = self.resampled[np.isfinite(self.resampled)]
        if not isfinite(self.value) or len(known) < KNOWN * len(self.resampled) or len(np.unique(known)) < 2:
            return nan
        # Resampling n clusters understates the variance of a mean by (n − 1) / n.
        return float(known.std(ddof=1)) * sqrt(self.clusters / (self.clusters - 1))

    @property
    def measure(self) -> Measure:
        """The value with its 95 % interval."""
        margin = student(self.clusters - 1) * self.error
        return Measure(self.value, self.value - margin, self.value + margin)


class Blocks:
    """The blocks of time that are resampled, with the matches of both groups.

    numbers  int64 (B,)  of all blocks, ascending; also those without a match
    """

    def __init__(self, numbers: Whole, seed: int) -> None:
        self.numbers = numbers
        self.count = min(len(numbers), MOST)
        order = np.random.default_rng([seed, len(numbers)]).permutation(len(numbers))
        self._cluster = order * self.count // max(len(numbers), 1)
        self._weights = resample(self.count, RESAMPLES, seed) if len(numbers) >= FEW else np.empty((0, self.count))

    def mean(self, values: Floats, block: Whole) -> Estimate:
        """The mean of N values; `block`: int64 (N,), the number of the block of each."""
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
        grid = np.unique(np.quantile(values, np.linspace(0.0, 1.0, GRID), method="inverted_cdf"))
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
    """The second minus the first figure, both estimated from the same blocks."""
    value = second.value - first.value
    if len(first.resampled) != len(second.resampled):
        return GroupDifference(value, nan, nan, nan)
    apart = Estimate(value, second.resampled - first.resampled, first.clusters)
    return GroupDifference(value, apart.measure.low, apart.measure.high, apart.error)


def further(apart: GroupDifference, size: float, matches: int) -> int | None:
    """How many matches more are needed to find a difference of this size with a chance of 80 %; None: unknown.

    matches  those of both groups so far; the standard error falls with the square root of their number
    """
    if not isfinite(apart.error) or not isfinite(size) or size == 0.0:
        return None
    needed = matches * ((NORMAL + POWER) * apart.error / size) ** 2
    return max(ceil(needed - matches), 0)
