"""Distribution of ratings: percentiles, their fall by inactivity, and a histogram with round bin widths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import floor, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.durations import DAY
from evenmatch.errors import BadParameterError
from evenmatch.history import Flags, Floats, Times
from evenmatch.standings.activity import ALL_TIME
from evenmatch.standings.rules import PERCENTILE, StandingsRules

FINEST = 1e-12  # least bin width, as a share of the largest rating: float64 cannot resolve much narrower bins
SMALLEST, LARGEST = 1e-300, Fraction(float(np.finfo(np.float64).max))
ROUND = (10, 20, 25, 50)  # leading digits of round widths


class Distribution(NamedTuple):
    """A histogram: N + 1 ascending edges and the number of ratings in each of N bins.

    A bin includes its lower edge and excludes its upper one; the last bin includes both.
    """

    edges: Floats
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Population:
    """The ratings that percentiles refer to.

    rating  float64 (N,)  ascending, contiguous
    """

    rating: Floats

    def __len__(self) -> int:
        return len(self.rating)

    def percentiles(self, rating: Floats | float) -> NDArray[np.int64]:
        """The percentile 1..100 of each rating, which need not occur in the population."""
        return _shown(_below(self, rating), _above(self, rating))

    def percentiles_after(self, rating: Floats, own: Floats, gone: Floats, come: Floats) -> NDArray[np.int64]:
        """The percentile 1..100 of each rating after some ratings of the population have changed.

        own         the player's own new rating in the population, which is not compared with itself; NaN: not a member
        gone, come  ratings removed from the population and ratings added to it, in any order
        """
        removed, added = Population(np.sort(gone)), Population(np.sort(come))
        below, above = (
            count(self, rating) - count(removed, rating) + count(added, rating) for count in (_below, _above)
        )
        return _shown(below - np.less(own, rating), above - np.greater(own, rating))

    def queue_percentiles(self, rating: Floats | float) -> Floats:
        """The fractional mid-rank percentile 0..100 of each rating; 50 if the population is empty."""
        if not len(self):
            return np.full(np.shape(rating), 50.0)
        below = self.rating.searchsorted(rating, side="left")
        below_or_equal = self.rating.searchsorted(rating, side="right")
        middle: Floats = 50 * (below + below_or_equal) / len(self)
        return middle

    def own_percentiles(self) -> NDArray[np.int64]:
        """The percentile of every member in order of rating; one pass, without a search."""
        start = np.concatenate(([0], np.flatnonzero(self.rating[1:] != self.rating[:-1]) + 1, [len(self)]))
        if not len(self):
            return np.empty(0, np.int64)
        return np.repeat(_shown(start[:-1], len(self) - start[1:]), np.diff(start))

    def histogram(self, bins: int) -> Distribution:
        """Histogram with bins/2 to `bins` bins of one round width (1, 2, 2.5 or 5 · 10^k).

        One or two bins if the ratings are (almost) equal; one empty bin from 0 to 1 if there are none. Outliers are
        farther from the middle 98 % of the ratings than the range of that middle; they are counted in the first or last
        bin, which is extended to include them, so that one outlier does not push all other ratings into one bin.
        Counts are exact. Raises BadParameterError for fewer than 2 bins.
        """
        if bins < 2:
            raise BadParameterError(f"bins is {bins}; expected 2 or more")
        if not len(self):
            return Distribution(np.array([0.0, 1.0]), np.zeros(1, np.int64))
        lowest, highest = float(self.rating[0]), float(self.rating[-1])
        edges = _round_edges(*self._main_range(), bins)
        edges[0], edges[-1] = min(edges[0], lowest), max(edges[-1], highest)
        start = self.rating.searchsorted(edges[1:-1])
        return Distribution(edges, np.diff(np.concatenate(([0], start, [len(self)]))))

    def _main_range(self) -> tuple[float, float]:
        """The range of the ratings without outliers."""
        lowest, highest = float(self.rating[0]), float(self.rating[-1])
        out = min(max(1, len(self) // 100), (len(self) - 1) // 2)
        low, high = float(self.rating[out]), float(self.rating[len(self) - 1 - out])
        if low == high:
            return lowest, highest
        return max(lowest, low - (high - low)), min(highest, high + (high - low))


def _below(population: Population, rating: Floats | float) -> NDArray[np.int64]:
    """The number of members strictly below each rating."""
    return np.asarray(population.rating.searchsorted(rating, side="left"))


def _above(population: Population, rating: Floats | float) -> NDArray[np.int64]:
    return len(population) - np.asarray(population.rating.searchsorted(rating, side="right"))


def _shown(below: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
    """The percentile 1..100 for the numbers of ratings strictly below and strictly above."""
    others = below + above
    return np.where(others == 0, 1, np.minimum(100, 1 + 100 * below // np.maximum(others, 1)))


def _round_edges(low: float, high: float, bins: int) -> Floats:
    """Edges of at most `bins` bins of the least round width that cover low to high."""
    finest = max(SMALLEST, FINEST * max(abs(low), abs(high)))
    least = max(high / bins - low / bins, finest) if high - low > finest else max(1.0, finest)
    for width in _round_widths(least):
        first, last = Fraction(low) // width, Fraction(high) // width + 1
        if last - first <= bins:
            return np.array([float(max(-LARGEST, min(LARGEST, step * width))) for step in range(first, last + 1)])
    raise AssertionError("unreachable: the widths are unbounded")


def _round_widths(least: float) -> Iterator[Fraction]:
    """All round widths >= `least`, ascending and exact."""
    for exponent in count(floor(log10(least)) - 2):
        for lead in ROUND:
            if (width := lead * Fraction(10) ** exponent) >= least:
                yield width


def percentiles(rating: Floats, active: Flags) -> NDArray[np.int64]:
    """Each player's percentile 1..100 among the active players, int64 (P,).

    The lowest active player has 1, the highest 100, ties are equal: five players without ties have 1, 26, 51, 76, 100.
    Inactive players are compared with the active ones.
    """
    return _active(rating, active).percentiles(rating)


def queue_percentiles(rating: Floats, active: Flags) -> Floats:
    """Fractional mid-rank percentiles, float64 (P,), 0..100: 100 · (below + equal/2) / active players; 50 if none.

    Many players with one rating get the middle of the range they occupy, so there is no gap to the players above.
    """
    return _active(rating, active).queue_percentiles(rating)


def _active(rating: Floats, active: Flags) -> Population:
    return Population(np.sort(rating[active]))


WHOLE = 100  # the largest fall, in percentiles
DECIMALS = 9  # a fall is rounded to these before it is rounded down


def percentile_falls(last_completed: Times, as_of: int, rules: StandingsRules) -> NDArray[np.int64]:
    """The percentiles by which inactivity lowers what each player is shown, by the last completed match.

    Only whole days after the grace days count; days times rate is rounded down.
    """
    if rules.inactivity != PERCENTILE:
        return np.zeros(len(last_completed), np.int64)
    grace = round(min(rules.grace_days, ALL_TIME) * DAY)
    ended = np.clip(
        last_completed, as_of - (ALL_TIME + WHOLE) * DAY, as_of
    )  # bounds players who never completed a match, and times ahead of `as_of`
    days = np.maximum(as_of - grace - ended, 0) // DAY
    product = np.round(days * rules.percentile_decay, DECIMALS)  # 0.29 a day are 29 after 100 days, not 28.999…
    falls: NDArray[np.int64] = np.floor(np.minimum(product, WHOLE)).astype(np.int64)
    return falls


def lowered(percentile: NDArray[np.integer], falls: NDArray[np.int64], rules: StandingsRules) -> NDArray[np.int64]:
    """Lower percentiles by these falls, but not below the floor."""
    after: NDArray[np.int64] = np.maximum(percentile - falls, np.minimum(percentile, rules.percentile_floor))
    return after
