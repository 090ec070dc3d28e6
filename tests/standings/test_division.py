"""Divisions: bands of percentiles."""

import math

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.standings.division import DIVISIONS, FIFTY, Division, checked, division_of

WRONG = [
    ([], "begins at nowhere"),
    ([("a", 2)], "begins at 2; expected 1"),
    ([("a", 0)], "begins at 0; expected 1"),
    ([("a", 1), ("b", 1)], "'b' begins at 1, 'a' before it at 1; expected ascending percentiles"),
    ([("a", 1), ("b", 50), ("c", 40)], "'c' begins at 40, 'b' before it at 50"),
    ([("a", 1), ("b", 101)], "'b' begins at 101; expected at most 100"),
    ([("a", 1), ("", 50)], "'' is empty or used twice"),
    ([("a", 1), ("b", 20), ("a", 50)], "'a' is empty or used twice"),
]


@pytest.mark.parametrize(("listed", "said"), WRONG)
def test_a_table_that_leaves_a_player_without_one_division_is_refused(listed, said):
    with pytest.raises(InputError) as caught:
        checked([Division(*one) for one in listed])
    assert said in str(caught.value)


@pytest.mark.parametrize("listed", [DIVISIONS, FIFTY, (Division("all", 1),), (Division("a", 1), Division("b", 100))])
def test_a_table_that_covers_every_percentile_is_accepted(listed):
    assert checked(list(listed)) == listed
    found = division_of(np.arange(1, 101), listed)
    for percentile, at in zip(range(1, 101), found, strict=True):
        assert listed[at].lowest <= percentile
        assert at + 1 == len(listed) or percentile < listed[at + 1].lowest


def test_fifty_levels_are_half_the_percentile_rounded_up():
    names = [FIFTY[at].name for at in division_of(np.arange(1, 101), FIFTY)]
    assert names == [str(math.ceil(percentile / 2)) for percentile in range(1, 101)]
