"""Intervals of differences between two groups of matches in the same blocks, against known truths."""

import numpy as np
import pytest
from scipy import stats

from evenmatch.calibration import FEWEST_BLOCKS, Blocks, Estimate, GroupDifference, difference, further, student

TIMES = 300  # simulated experiments
BOUNDS = stats.binom.ppf([0.0005, 0.9995], TIMES, 0.95) / TIMES  # shares of them in which the truth may be covered


def waits(luck, blocks, shifts, size=25, together=0.6, apart=0.3):
    """Log-normal waits of both groups in the same blocks, which differ in size; the median of a group is e**shift.

    together, apart  standard deviations of what all waits of a block have in common, and those of one group in it
    Returns values and blocks of each group, and the numbers of the blocks, which are not consecutive.
    """
    numbers = np.sort(luck.choice(5 * blocks, blocks, replace=False))
    busy, common = luck.uniform(0, 2, blocks), luck.normal(0, together, blocks)
    groups = []
    for shift in shifts:
        count = luck.poisson(size * busy)
        level = shift + common + luck.normal(0, apart, blocks)
        groups.append((np.exp(np.repeat(level, count) + luck.normal(0, 0.8, count.sum())), np.repeat(numbers, count)))
    return groups, numbers


def covered(figure, true, blocks, shifts=(0.0, 0.4), **shape):
    """How often the interval of the difference between two groups covers the true one."""
    luck = np.random.default_rng(5)
    hits = 0
    for time in range(TIMES):
        groups, numbers = waits(luck, blocks, shifts, **shape)
        found = difference(*(figure(Blocks(numbers, time), *group) for group in groups))
        hits += found.low <= true <= found.high
    return hits / TIMES


def log_mean(blocks, values, block):
    return blocks.mean(np.log(values), block)


@pytest.mark.parametrize("blocks", [12, 60])
def test_intervals_of_means_cover_the_true_difference(blocks):
    """The mean of the logarithms is the shift itself."""
    share = covered(log_mean, 0.4, blocks)
    assert BOUNDS[0] <= share <= BOUNDS[1]


def test_intervals_of_high_quantiles_nearly_cover_the_true_difference():
    """A 95th percentile rests on few values, so its intervals are somewhat narrow: nine in ten at least."""
    high = np.exp(stats.norm.ppf(0.95) * np.sqrt(0.6**2 + 0.3**2 + 0.8**2))
    share = covered(lambda blocks, *group: blocks.quantile(*group, 0.95), high * (np.exp(0.4) - 1), 60)
    assert 0.9 <= share <= BOUNDS[1]


def test_intervals_as_if_matches_were_independent_would_miss_the_truth():
    def naive(_, values, block):
        return log_mean(Blocks(np.arange(200), 1), values, np.random.default_rng(1).integers(0, 200, len(block)))

    assert covered(naive, 0.4, 60) < 0.9


def test_effects_shared_by_a_block_do_not_widen_the_interval():
    """The error is that of the differences within blocks: √(2 (0.3² + 0.8²/25) / 60) without the 0.6 in common."""
    errors = {}
    for together in (0.0, 0.6):
        luck = np.random.default_rng(4)
        made = []
        for time in range(40):
            groups, numbers = waits(luck, 60, (0.0, 0.4), size=25, together=together)
            made.append(difference(*(log_mean(Blocks(numbers, time), *group) for group in groups)).error)
        errors[together] = np.mean(made)
    assert errors[0.6] == pytest.approx(errors[0.0], rel=0.25)
    assert errors[0.0] == pytest.approx(np.sqrt(2 * (4 / 3 * 0.3**2 + 0.8**2 / 25) / 60), rel=0.15)  # sizes differ


def test_intervals_of_slopes_cover_the_true_difference():
    """Predicted log-odds are too extreme in the first group, so that the true slopes are 0.7 and 1."""
    luck = np.random.default_rng(8)
    hits = 0
    for time in range(TIMES):
        blocks, estimates = Blocks(np.arange(50), time), []
        for slope in (0.7, 1.0):
            odds = luck.normal(0, 1.5, 1500)
            won = (luck.random(1500) < 1 / (1 + np.exp(-slope * odds))).astype(float)
            block = np.sort(luck.integers(0, 50, 1500))
            predicted = 1 / (1 + np.exp(-odds))
            both = np.concatenate((predicted, 1 - predicted)), np.concatenate((won, 1 - won))
            estimates.append(blocks.slope(*both, np.full(3000, 0.5), np.concatenate((block, block))))
        found = difference(*estimates)
        hits += found.low <= 0.3 <= found.high
    assert BOUNDS[0] <= hits / TIMES <= BOUNDS[1]


def test_the_error_of_a_ratio_is_that_of_its_linear_approximation():
    """Cochran, Sampling Techniques, 6.4: the variance of R = Σy / Σx is B/(B − 1) Σ(y − R x)² / (Σx)²."""
    luck = np.random.default_rng(2)
    weight = luck.uniform(1, 9, 120)
    values = 0.2 * weight + luck.normal(0, 0.5, 120)
    found = Blocks(np.arange(120), 3).ratio(weight, values, np.arange(120))
    ratio = values.sum() / weight.sum()
    assert found.value == pytest.approx(ratio)
    error = np.sqrt(120 / 119 * ((values - ratio * weight) ** 2).sum()) / weight.sum()
    assert found.error == pytest.approx(error, rel=0.1)  # 500 resamples
    margin = stats.t.ppf(0.975, 119) * found.error
    assert (found.measure.low, found.measure.high) == pytest.approx((ratio - margin, ratio + margin), rel=1e-3)


def test_few_blocks_have_no_interval():
    values, block = np.arange(9.0), np.arange(9)
    found = Blocks(block, 1).mean(values, block)
    assert found.value == 4.0
    assert np.isnan(found.error)
    assert np.isnan(difference(found, found).low)
    assert not difference(found, found).is_known
    numbers = np.arange(FEWEST_BLOCKS)
    assert np.isfinite(Blocks(numbers, 1).mean(numbers.astype(float), numbers).error)


@pytest.mark.parametrize("count", [0, 20])
def test_figures_without_a_match_are_unknown(count):
    blocks, none, whole = Blocks(np.arange(count), 1), np.empty(0), np.empty(0, np.int64)
    slope = blocks.slope(none, none, none, whole)
    for found in (blocks.mean(none, whole), blocks.quantile(none, whole, 0.5), slope):
        assert np.isnan(found.value)
        assert np.isnan(found.error)
        assert np.isnan(found.measure.low)
        assert np.isnan(difference(found, found).error)


@pytest.mark.parametrize("freedom", [9, 14, 30, 200])
def test_quantiles_of_students_t(freedom):
    assert student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=2e-4)


def test_a_difference_is_that_of_the_same_resamples():
    """Figures that rise together: their difference varies less than each. Four resamples of 16 clusters, by hand."""
    first, second = (np.array(values) for values in ((1.0, 2.0, 3.0, 4.0), (4.0, 5.0, 6.0, 9.0)))  # apart 3 3 3 5
    found = difference(Estimate(2.5, first, 16), Estimate(6.0, second, 16))
    error = 1.0 * np.sqrt(16 / 15)  # the standard deviation of 3, 3, 3, 5 is √(3/3)
    assert found.value == 3.5
    assert found.error == pytest.approx(error)
    assert found.low == pytest.approx(3.5 - stats.t.ppf(0.975, 15) * error, rel=1e-3)
    assert found.is_known


def test_an_event_that_never_happened_has_no_interval():
    """Without a rematch in any block resampling says nothing about how rare rematches are."""
    blocks = Blocks(np.arange(30), 1)
    found = blocks.ratio(np.ones(30), np.zeros(30), np.arange(30))
    assert found.value == 0.0
    assert np.isnan(found.measure.high)
    assert np.isnan(difference(found, found).high)


def test_a_figure_that_many_resamples_do_not_define_has_no_error():
    assert np.isnan(Estimate(1.0, np.array([1.0, 2.0] * 9 + [np.nan]), 16).error)
    assert np.isfinite(Estimate(1.0, np.array([1.0, 2.0] * 50 + [np.nan]), 16).error)


def test_how_many_matches_more_are_needed():
    """With an error of 2 after 100 matches, 2 is found by (1.96 + 0.84)² × 100 = 785 matches: 685 more."""
    assert further(GroupDifference(2.0, -2.0, 6.0, 2.0), 2.0, 100) == 685
    assert further(GroupDifference(2.0, -2.0, 6.0, 2.0), 20.0, 100) == 0
    assert further(GroupDifference(0.0, -4.0, 4.0, 2.0), 0.0, 100) is None
    assert further(GroupDifference(np.nan, np.nan, np.nan, np.nan), 1.0, 100) is None


def test_with_as_many_matches_as_needed_four_in_five_experiments_find_the_difference():
    """Pilots of 30 blocks say how many; of experiments of that size, drawn as before, 80 % find the difference."""
    luck = np.random.default_rng(9)

    def experiment(blocks, seed):
        groups, numbers = waits(luck, blocks, (0.0, 0.12))
        found = difference(*(log_mean(Blocks(numbers, seed), *group) for group in groups))
        return found, sum(len(values) for values, _ in groups)

    needed = []
    for seed in range(100):
        pilot, matches = experiment(30, seed)
        needed.append((matches + further(pilot, 0.12, matches)) / (matches / 30))
    blocks = round(np.median(needed))
    assert 60 < blocks < 190
    hits = sum(experiment(blocks, seed)[0].is_known for seed in range(TIMES))
    low, high = stats.binom.ppf([0.0005, 0.9995], TIMES, 0.8)
    assert low <= hits <= high
