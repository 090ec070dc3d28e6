"""How ratings are spread: the percentile of any rating against a population, and its histogram in round numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import floor, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadParameterError
from evenmatch.history import Floats

FINEST = 1e-12  # of the largest rating: much narrower bins are below what a float64 can tell apart
SMALLEST, LARGEST = 1e-300, Fraction(float(np.finfo(np.float64).max))
ROUND = (10, 20, 25, 50)  # what a round width begins with


class Distribution(NamedTuple):
    """A histogram: N + 1 rising edges, and how many ratings are in each of N bins.

    A bin holds its lower edge and not its upper one; the last holds both.
    """

    edges: Floats
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Population:
    """Those whom percentiles are taken against; definitions in systems.md section 1.

    rating  float64 (N,)  ascending, contiguous
    """

    rating: Floats

    def __len__(self) -> int:
        return len(self.rating)

    def percentiles(self, rating: Floats | float) -> NDArray[np.int64]:
        """The percentile 1..100 of each of these ratings, whether or not anybody of the population has it."""
        return _shown(_below(self, rating), _above(self, rating))

    def percentiles_after(self, rating: Floats, own: Floats, gone: Floats, come: Floats) -> NDArray[np.int64]:
        """The percentile 1..100 of each of these ratings once some of the population have other ratings.

        own         what each of them is then, which is not counted as a rival's; NaN for one who is not in it
        gone, come  ratings of the population that are there no longer, and those that are there instead, in any order
        """
        then = (Population(np.sort(gone)), Population(np.sort(come)))
        below, above = (
            count(self, rating) - count(then[0], rating) + count(then[1], rating) for count in (_below, _above)
        )
        return _shown(below - np.less(own, rating), above - np.greater(own, rating))

    def queue_percentiles(self, rating: Floats | float) -> Floats:
        """The fractional mid-rank percentile 0..100 of each of these ratings; 50 among none."""
        if not len(self):
            return np.full(np.shape(rating), 50.0)
        below = self.rating.searchsorted(rating, side="left")
        reached = self.rating.searchsorted(rating, side="right")
        middle: Floats = 50 * (below + reached) / len(self)
        return middle

    def own_percentiles(self) -> NDArray[np.int64]:
        """The percentile of every member, ascending as their ratings are: no search, one pass."""
        start = np.concatenate(([0], np.flatnonzero(self.rating[1:] != self.rating[:-1]) + 1, [len(self)]))
        if not len(self):
            return np.empty(0, np.int64)
        return np.repeat(_shown(start[:-1], len(self) - start[1:]), np.diff(start))

    def histogram(self, bins: int) -> Distribution:
        """The ratings in at most so many bins of one round width (1, 2, 2.5 or 5 · 10^k), and at least half as many.

        One or two bins where the ratings are equal or as good as equal; one empty bin from 0 to 1 where there are none.
        Ratings far out, which are farther from those of the middle 98 % than these span, are in the first or the last
        bin, which then reaches to the farthest: one runaway does not flatten all others into one bin.
        Counts are exact. Raises BadParameterError for less than 2 bins.
        """
        if bins < 2:
            raise BadParameterError(f"bins is {bins}; accepted are 2 or more")
        if not len(self):
            return Distribution(np.array([0.0, 1.0]), np.zeros(1, np.int64))
        lowest, highest = float(self.rating[0]), float(self.rating[-1])
        edges = _round_edges(*self._crowded(), bins)
        edges[0], edges[-1] = min(edges[0], lowest), max(edges[-1], highest)
        start = self.rating.searchsorted(edges[1:-1])
        return Distribution(edges, np.diff(np.concatenate(([0], start, [len(self)]))))

    def _crowded(self) -> tuple[float, float]:
        """The range of the ratings without those far out."""
        lowest, highest = float(self.rating[0]), float(self.rating[-1])
        out = min(max(1, len(self) // 100), (len(self) - 1) // 2)
        low, high = float(self.rating[out]), float(self.rating[len(self) - 1 - out])
        if low == high:
            return lowest, highest
        return max(lowest, low - (high - low)), min(highest, high + (high - low))


def _below(population: Population, rating: Floats | float) -> NDArray[np.int64]:
    """How many of a population are strictly below each of these ratings."""
    return np.asarray(population.rating.searchsorted(rating, side="left"))


def _above(population: Population, rating: Floats | float) -> NDArray[np.int64]:
    return len(population) - np.asarray(population.rating.searchsorted(rating, side="right"))


def _shown(below: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
    """The percentile of whoever has so many strictly below and strictly above."""
    others = below + above
    return np.where(others == 0, 1, np.minimum(100, 1 + 100 * below // np.maximum(others, 1)))


def _round_edges(low: float, high: float, bins: int) -> Floats:
    """At most `bins` bins of the least round width that hold all from low to high."""
    finest = max(SMALLEST, FINEST * max(abs(low), abs(high)))
    least = max(high / bins - low / bins, finest) if high - low > finest else max(1.0, finest)
    for width in _round_widths(least):
        first, last = Fraction(low) // width, Fraction(high) // width + 1
        if last - first <= bins:
            return np.array([float(max(-LARGEST, min(LARGEST, at * width))) for at in range(first, last + 1)])
    raise AssertionError("the widths have no end")


def _round_widths(least: float) -> Iterator[Fraction]:
    """All round widths from this one up, exactly."""
    for exponent in count(floor(log10(least)) - 2):
        for lead in ROUND:
            if (width := lead * Fraction(10) ** exponent) >= least:
                yield width
