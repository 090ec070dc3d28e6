"""The design of an experiment: which policy decides when."""

from hashlib import blake2b

import numpy as np
import pytest
from scipy.stats import binom

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.experiment import ExperimentDesign

SECOND = 1_000_000
# The arms of slices 0 to 19 with seed 7 and equal shares. It must hold for ever, since matches are stored with it.
SEED_7 = "baabbaabbaababababab"


def arms(count, **design):
    made = ExperimentDesign(**design)
    return "".join(made.arm_of(number) for number in range(count))


def test_the_arm_of_a_slice_follows_from_the_design_and_its_number_for_ever():
    """Of two slices the one with the lower BLAKE2b-128 of "seed/number" has the second policy."""
    digests = [blake2b(f"7/{number}".encode(), digest_size=16).hexdigest() for number in range(20)]
    pairs = ["ba" if first < second else "ab" for first, second in zip(digests[::2], digests[1::2], strict=True)]
    assert arms(20, seed=7) == "".join(pairs) == SEED_7


@pytest.mark.parametrize(
    ("share", "second", "slices"), [(0.5, 1, 2), (0.25, 1, 4), (0.3, 3, 10), (0.95, 19, 20), (0.0, 0, 1), (1.0, 1, 1)]
)
def test_every_block_has_the_share_of_the_second_policy(share, second, slices):
    design = ExperimentDesign(share=share, seed=3)
    drawn = arms(50 * slices, share=share, seed=3)
    for block in range(50):
        inside = range(block * slices, (block + 1) * slices)
        assert {design.block_of(number) for number in inside} == {block}
        assert drawn[inside.start : inside.stop].count("b") == second


def test_slices_of_a_block_are_drawn_at_random():
    """Each of ten slices is one of the three of the second policy in 30 % of the blocks; seeds do not agree."""
    table = np.array([list(arms(10_000, share=0.3, seed=seed)) for seed in (11, 12)]).reshape(2, 1000, 10) == "b"
    low, high = binom.ppf([0.0002, 0.9998], 1000, 0.3)
    assert ((table.sum(axis=1) >= low) & (table.sum(axis=1) <= high)).all()
    low, high = binom.ppf([0.0005, 0.9995], 1000, 0.09)  # two draws of other blocks or seeds are independent
    assert low <= (table[0, :, 4] & table[1, :, 4]).sum() <= high
    assert low <= (table[0, :-1, 4] & table[0, 1:, 4]).sum() <= high


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
        ({"share": 0.01}, r"share=0.01: expected 0, 1 or a number from 0.05 to 0.95"),
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


def test_an_unknown_option_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'share'"):
        ExperimentDesign.from_data({"shares": 0.5})
