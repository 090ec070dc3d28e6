"""Comparison of two groups of matches, each a sample of slices of time: differences with intervals.

Matches of one slice have players, ratings and the hour of the day in common, so slices are resampled and not matches
(a cluster bootstrap). The interval of a difference is Welch's, with the resampled standard errors and Student's t.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, hypot, isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.calibration import Measure, bins_of, calibration_slopes, resample, weigh, weigh_bins
from evenmatch.history import Floats

MOST = 200  # clusters of a group: with more slices, consecutive ones are put together
FEW = 10  # with fewer slices of a group no interval is given
RESAMPLES = 500
GRID = 512  # values at which the distribution of a figure is counted
KNOWN = 0.95  # share of the resamples that must define a figure
NORMAL = 1.959964  # 97.5 % quantile of the normal distribution
POWER = 0.841621  # 80 % quantile: the chance to find a difference of the assumed size

Whole = NDArray[np.int64]


class Estimate(NamedTuple):
    """A figure of one group. error: its standard error;  freedom: degrees of freedom of the error; NaN, 0: unknown."""

    value: float
    error: float
    freedom: int

    @property
    def measure(self) -> Measure:
        """The value with its 95 % interval."""
        margin = student(self.freedom) * self.error
        return Measure(self.value, self.value - margin, self.value + margin)


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


class Clusters:
    """The slices of one group, in order of time: what is resampled.

    slices  int64 (S,)  numbers of all slices of the group, ascending; also those without a match
    """

    def __init__(self, slices: Whole, seed: int) -> None:
        self.slices = slices
        self.count = min(len(slices), MOST)
        self.weights = resample(self.count, RESAMPLES if len(slices) >= FEW else 0, seed) if self.count else None

    def of(self, number: Whole) -> Whole:
        """The cluster of each value, by the number of its slice."""
        return np.searchsorted(self.slices, number) * self.count // max(len(self.slices), 1)

    def mean(self, values: Floats, number: Whole) -> Estimate:
        """The mean of N values; `number`: int64 (N,), the slice of each."""
        return self.ratio(np.ones(len(values)), values, number)

    def ratio(self, weight: Floats, values: Floats, number: Whole) -> Estimate:
        """The sum of N values divided by the sum of their weights."""
        cluster = self.of(number)
        parts = [np.bincount(cluster, part, self.count).astype(np.float64) for part in (weight, values)]
        sums = np.stack(parts, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = sums.sum(axis=0)
            return self._estimate(total[1] / total[0], lambda drawn: drawn[:, 1] / drawn[:, 0], sums)

    def quantile(self, values: Floats, number: Whole, share: float) -> Estimate:
        """The value that this share of N values does not exceed."""
        if not len(values):
            return Estimate(nan, nan, 0)
        grid = np.unique(np.quantile(values, np.linspace(0.0, 1.0, GRID), method="inverted_cdf"))
        cell = self.of(number) * len(grid) + np.searchsorted(grid, values)
        counts = np.bincount(cell, minlength=self.count * len(grid)).reshape(self.count, len(grid)).astype(np.float64)

        def quantiles(drawn: Floats) -> Floats:
            below = drawn.cumsum(axis=1)
            reached = below >= share * below[:, -1:]
            return np.where(below[:, -1] > 0.0, grid[reached.argmax(axis=1)], nan)

        return self._estimate(float(np.quantile(values, share)), quantiles, counts)

    def slope(self, predicted: Floats, scored: Floats, weight: Floats, number: Whole) -> Estimate:
        """The calibration slope of N predicted scores."""
        if not len(predicted):
            return Estimate(nan, nan, 0)
        bins = bins_of(predicted, scored, weight, self.of(number), self.count)
        value = float(calibration_slopes(bins.sum(axis=0)[None])[0])
        if self.weights is None or not isfinite(value):
            return Estimate(value, nan, 0)
        return self._with_error(value, calibration_slopes(weigh_bins(self.weights, bins)))

    def _estimate(self, value: float, figure: Callable[[Floats], Floats], sums: Floats) -> Estimate:
        if self.weights is None or not isfinite(value):
            return Estimate(float(value), nan, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._with_error(float(value), figure(weigh(self.weights, sums)))

    def _with_error(self, value: float, resampled: Floats) -> Estimate:
        known = resampled[np.isfinite(resampled)]
        if not len(resampled) or len(known) < KNOWN * len(resampled):
            return Estimate(value, nan, 0)
        # Resampling n clusters understates the variance of a mean by (n − 1) / n.
        return Estimate(value, float(known.std(ddof=1)) * sqrt(self.count / (self.count - 1)), self.count - 1)


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
    """The second minus the first figure (Welch's interval)."""
    value, error = second.value - first.value, hypot(first.error, second.error)
    if not isfinite(error):
        return GroupDifference(value, nan, nan, nan)
    if error == 0.0:
        return GroupDifference(value, value, value, 0.0)
    parts = first.error**4 / first.freedom + second.error**4 / second.freedom
    margin = student(error**4 / parts) * error
    return GroupDifference(value, value - margin, value + margin, error)


def further(apart: GroupDifference, size: float, matches: int) -> int | None:
    """How many matches more are needed to find a difference of this size with a chance of 80 %; None: unknown.

    matches  those of both groups so far; the standard error falls with the square root of their number
    """
    if not isfinite(apart.error) or not isfinite(size) or size == 0.0:
        return None
    needed = matches * ((NORMAL + POWER) * apart.error / size) ** 2
    return max(ceil(needed - matches), 0)
