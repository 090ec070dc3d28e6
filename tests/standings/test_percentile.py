"""Percentiles as systems.md section 1 ("Standing shown to players") defines them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.standings.distribution import percentiles, queue_percentiles

# Ratings of the active players and their percentiles
SHOWN = [
    ([10, 20, 30, 40, 50], [1, 26, 51, 76, 100]),
    ([50, 10, 40, 20, 30], [100, 1, 76, 26, 51]),
    ([7, 7, 7, 7], [1, 1, 1, 1]),
    ([7], [1]),
    ([1, 2], [1, 100]),
    ([1, 1, 2], [1, 1, 100]),
    ([1, 2, 2], [1, 100, 100]),
    ([1, 2, 3], [1, 51, 100]),
    ([1, 2, 2, 3], [1, 51, 51, 100]),
    ([1, 1, 1, 2, 3], [1, 1, 1, 76, 100]),  # 3 below and 1 above, as for the fourth of five
    ([1, 2, 2, 2, 3, 3], [1, 34, 34, 34, 100, 100]),  # 1 below and 2 above: 1 + floor(100/3)
    ([-5.5, 0.0, -0.0], [1, 100, 100]),
    ([], []),
]


@pytest.mark.parametrize(("ratings", "expected"), SHOWN)
def test_the_lowest_is_at_1_the_highest_at_100_and_ties_are_equal(ratings, expected):
    rating = np.array(ratings, float)
    assert percentiles(rating, np.ones(len(rating), bool)).tolist() == expected


# Ratings and the fractional mid-rank percentile 100 * (below + equal/2) / population
QUEUE = [
    ([10, 20, 30, 40, 50], [10, 30, 50, 70, 90]),
    ([7, 7, 7, 7], [50, 50, 50, 50]),
    ([7], [50]),
    ([1, 1, 1, 2], [37.5, 37.5, 37.5, 87.5]),
    ([3, 1, 1, 2, 2], [90, 20, 20, 60, 60]),
]


@pytest.mark.parametrize(("ratings", "expected"), QUEUE)
def test_a_queue_percentile_is_the_middle_of_the_tied_players(ratings, expected):
    assert queue_percentiles(np.array(ratings, float), np.ones(len(ratings), bool)).tolist() == expected


RATINGS = st.lists(
    st.tuples(st.integers(0, 5).map(float) | st.floats(-1e6, 1e6), st.booleans()), min_size=1, max_size=40
)


@given(RATINGS)
def test_percentiles_match_counting_one_by_one(players):
    rating, active = np.array([r for r, _ in players]), np.array([a for _, a in players])
    ladder = [r for r, a in players if a]
    for own, shown, queued in zip(
        rating.tolist(), percentiles(rating, active), queue_percentiles(rating, active), strict=True
    ):
        below, above = sum(r < own for r in ladder), sum(r > own for r in ladder)
        equal = len(ladder) - below - above
        expected = 1 if below == above == 0 else min(100, 1 + math.floor(100 * below / (below + above)))
        assert shown == expected
        assert queued == pytest.approx(100 * (below + equal / 2) / len(ladder) if ladder else 50.0, rel=1e-15)
