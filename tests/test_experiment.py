"""The design of an experiment: which policy decides when."""

from hashlib import blake2b

import numpy as np
import pytest
from scipy.stats import binom

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.experiment import ExperimentDesign

SECOND = 1_000_000
# The arms of slices 0 to 19 with seed 7 and equal shares: BLAKE2b-64 of "7/number" begins with a byte below 128 for b.
# It must hold for ever, since matches are stored with it.
SEED_7 = "aabbbabbababbaababab"


def test_the_arm_of_a_slice_follows_from_the_seed_and_its_number_for_ever():
    design = ExperimentDesign(seed=7)
    assert "".join(design.arm_of(number) for number in range(20)) == SEED_7
    first = [blake2b(f"7/{number}".encode(), digest_size=8).digest()[0] for number in range(20)]
    assert "".join("ab"[byte < 128] for byte in first) == SEED_7


@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 0.5, 1.0])
def test_the_second_policy_gets_its_share_of_the_slices(share):
    count = sum(ExperimentDesign(seed=3, share=share).arm_of(number) == "b" for number in range(5000))
    low, high = binom.ppf([0.0005, 0.9995], 5000, share)
    assert low <= count <= high


def test_neighbours_are_drawn_independently_of_each_other():
    """Of 5000 pairs of neighbours with a share of 0.3, 0.3² have the second policy twice; as those of two seeds."""
    arms, others = (
        np.array([ExperimentDesign(seed=seed, share=0.3).arm_of(number) == "b" for number in range(10_000)])
        for seed in (11, 12)
    )
    low, high = binom.ppf([0.0005, 0.9995], 5000, 0.09)
    assert low <= (arms[::2] & arms[1::2]).sum() <= high
    assert low <= (arms[::2] & others[::2]).sum() <= high


def test_slices_follow_each_other_from_the_start():
    design = ExperimentDesign(seed=7, slice_seconds=30, washout=10)
    for time, number in ((0, 0), (29.999999, 0), (30, 1), (59, 1), (600, 20), (-5, 0)):
        assert design.slice_at(round(time * SECOND)) == (number, design.arm_of(number))


def test_matches_count_after_the_washout_where_the_policy_has_changed():
    design = ExperimentDesign(seed=7, slice_seconds=30, washout=10)
    before = "a"  # the queue's own policy decided before the experiment
    for number, arm in enumerate(SEED_7):
        assert design.settled_from(number) == (30 * number + 10 * (arm != before)) * SECOND
        before = arm


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"share": 1.5}, r"share=1.5: expected a number from 0 to 1"),
        ({"share": -0.1}, r"share=-0.1: expected a number from 0 to 1"),
        ({"share": float("nan")}, r"share=nan"),
        ({"seed": 1.5}, r"seed=1.5: expected a whole number from 0"),
        ({"slice_seconds": 5}, r"slice_seconds=5: expected a number from 10 to 86,400"),
        ({"washout": 600}, r"washout=600: expected less than slice_seconds, which is 600"),
        ({"worth": 0}, r"worth=0: expected a number from 0.001 to 1"),
    ],
)
def test_impossible_designs_are_refused(values, message):
    with pytest.raises(BadParameterError, match=message):
        ExperimentDesign.from_data(values)
    with pytest.raises(UnknownNameError, match="did you mean 'share'"):
        ExperimentDesign.from_data({"shares": 0.5})
