"""Intervals of differences between two groups of slices, against known truths."""

import numpy as np
import pytest
from scipy import stats

from evenmatch.comparison import FEW, Clusters, Estimate, GroupDifference, difference, further, student

TIMES = 300  # simulated experiments
BOUNDS = stats.binom.ppf([0.0005, 0.9995], TIMES, 0.95) / TIMES  # shares of them in which the truth may be covered


def group(luck, slices, shift, size=25, together=0.6):
    """Waits of a group: log-normal, with what a slice has in common; the median of all is e**shift.

    Returns the values, the slice of each, and the numbers of the slices, which are not consecutive; slices differ in
    size, and some are empty.
    """
    numbers = np.sort(luck.choice(5 * slices, slices, replace=False))
    counts = luck.poisson(size * luck.uniform(0, 2, slices))
    number = np.repeat(numbers, counts)
    common = np.repeat(luck.normal(0, together, slices), counts)
    return np.exp(shift + common + luck.normal(0, 0.8, counts.sum())), number, numbers


def covered(figure, true, slices, shifts=(0.0, 0.4)):
    """How often the interval of the difference between two groups covers the true one."""
    luck = np.random.default_rng(5)
    hits = 0
    for time in range(TIMES):
        estimates = []
        for seed, (count, shift) in enumerate(zip(slices, shifts, strict=True)):
            values, number, numbers = group(luck, count, shift)
            estimates.append(figure(Clusters(numbers, 2 * time + seed), values, number))
        found = difference(*estimates)
        hits += found.low <= true <= found.high
    return hits / TIMES


@pytest.mark.parametrize("slices", [(40, 40), (60, 15)])
def test_intervals_of_medians_cover_the_true_difference(slices):
    true = np.exp(0.4) - 1.0
    share = covered(lambda clusters, values, number: clusters.quantile(values, number, 0.5), true, slices)
    assert BOUNDS[0] <= share <= BOUNDS[1]


@pytest.mark.parametrize("slices", [(40, 40), (60, 20)])
def test_intervals_of_means_cover_the_true_difference(slices):
    """The mean of log-normal values is e**(shift + variance / 2); of the logarithms it is the shift itself."""
    share = covered(lambda clusters, values, number: clusters.mean(np.log(values), number), 0.4, slices)
    assert BOUNDS[0] <= share <= BOUNDS[1]


def test_intervals_of_high_quantiles_nearly_cover_the_true_difference():
    """A 95th percentile rests on few values, so its intervals are somewhat narrow: nine in ten at least."""
    high = np.exp(stats.norm.ppf(0.95) * np.sqrt(0.6**2 + 0.8**2))
    true = high * (np.exp(0.4) - 1.0)
    share = covered(lambda clusters, values, number: clusters.quantile(values, number, 0.95), true, (60, 60))
    assert 0.9 <= share <= BOUNDS[1]


def test_matches_of_a_slice_are_not_independent():
    """With each match as a slice of its own, the same intervals would miss the truth half of the time."""

    def naive(_, values, number):
        every = np.arange(len(number))
        return Clusters(every, 1).mean(np.log(values), np.random.default_rng(1).permutation(every))

    assert covered(naive, 0.4, (40, 40)) < 0.7


def test_intervals_of_slopes_cover_the_true_difference():
    """Predicted log-odds are too extreme in both groups, so that the true slopes are 0.7 and 1."""
    luck = np.random.default_rng(8)
    hits = 0
    for time in range(TIMES):
        estimates = []
        for seed, slope in enumerate((0.7, 1.0)):
            odds = luck.normal(0, 1.5, 1500)
            won = (luck.random(1500) < 1 / (1 + np.exp(-slope * odds))).astype(float)
            number = np.sort(luck.integers(0, 50, 1500))
            predicted = 1 / (1 + np.exp(-odds))
            both = np.concatenate((predicted, 1 - predicted)), np.concatenate((won, 1 - won))
            clusters = Clusters(np.arange(50), 2 * time + seed)
            estimates.append(clusters.slope(*both, np.full(3000, 0.5), np.concatenate((number, number))))
        found = difference(*estimates)
        hits += found.low <= 0.3 <= found.high
    assert BOUNDS[0] <= hits / TIMES <= BOUNDS[1]


def test_the_error_of_a_ratio_is_that_of_its_linear_approximation():
    """Cochran, Sampling Techniques, 6.4: the variance of R = Σy / Σx is S/(S − 1) Σ(y − R x)² / (Σx)²."""
    luck = np.random.default_rng(2)
    weight = luck.uniform(1, 9, 120)
    values = 0.2 * weight + luck.normal(0, 0.5, 120)
    found = Clusters(np.arange(120), 3).ratio(weight, values, np.arange(120))
    ratio = values.sum() / weight.sum()
    assert found.value == pytest.approx(ratio)
    error = np.sqrt(120 / 119 * ((values - ratio * weight) ** 2).sum()) / weight.sum()
    assert found.error == pytest.approx(error, rel=0.1)  # 500 resamples
    assert found.freedom == 119


def test_many_slices_are_resampled_in_groups_of_neighbours():
    """1000 slices become 200 clusters of five; slices that rise and fall slowly have a larger error then."""
    slow = np.sin(np.arange(1000) / 1000 * 40)
    slices = np.arange(1000) * 2
    clusters = Clusters(slices, 1)
    assert clusters.of(slices[[0, 4, 5, 999]]).tolist() == [0, 0, 1, 199]
    wide = clusters.mean(slow, slices).error
    assert wide == pytest.approx(slow.std() / np.sqrt(1000) * np.sqrt(5), rel=0.12)


def test_few_slices_have_no_interval():
    values, number = np.arange(9.0), np.arange(9)
    found = Clusters(number, 1).mean(values, number)
    assert found.value == 4.0
    assert np.isnan(found.error)
    assert np.isnan(difference(found, found).low)
    assert not difference(found, found).is_known
    numbers = np.arange(FEW)
    assert np.isfinite(Clusters(numbers, 1).mean(numbers.astype(float), numbers).error)


def test_figures_without_a_match_are_unknown():
    clusters, none, whole = Clusters(np.arange(20), 1), np.empty(0), np.empty(0, np.int64)
    for found in (
        clusters.mean(none, whole),
        clusters.quantile(none, whole, 0.5),
        clusters.slope(none, none, none, whole),
    ):
        assert np.isnan(found.value)
        assert np.isnan(found.error)


@pytest.mark.parametrize("freedom", [9, 10.5, 14, 30, 200])
def test_quantiles_of_students_t(freedom):
    assert student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=2e-4)


def test_a_difference_has_welchs_interval():
    """Errors of 3 with 11 degrees of freedom and of 1 with 19: s = √10, ν = 100 / (81/11 + 1/19), by hand."""
    found = difference(Estimate(10.0, 3.0, 11), Estimate(14.0, 1.0, 19))
    margin = stats.t.ppf(0.975, 100 / (81 / 11 + 1 / 19)) * np.sqrt(10)
    assert found.value == 4.0
    assert (found.low, found.high) == pytest.approx((4 - margin, 4 + margin), rel=1e-3)
    assert not found.is_known
    assert difference(Estimate(10.0, 0.3, 11), Estimate(14.0, 0.1, 19)).is_known


def test_how_many_matches_more_are_needed():
    """With an error of 2 after 100 matches, 2 is found by (1.96 + 0.84)² × 100 = 785 matches: 685 more."""
    assert further(GroupDifference(2.0, -2.0, 6.0, 2.0), 2.0, 100) == 685
    assert further(GroupDifference(2.0, -2.0, 6.0, 2.0), 20.0, 100) == 0
    assert further(GroupDifference(0.0, -4.0, 4.0, 2.0), 0.0, 100) is None
    assert further(GroupDifference(np.nan, np.nan, np.nan, np.nan), 1.0, 100) is None


def test_with_as_many_matches_as_needed_four_in_five_experiments_find_the_difference():
    """A pilot says how many; experiments of that size, with groups drawn as before, find the true difference."""
    luck = np.random.default_rng(9)

    def experiment(slices, seed):
        estimates, matches = [], 0
        for arm, shift in enumerate((0.0, 0.3)):
            values, number, numbers = group(luck, slices, shift)
            estimates.append(Clusters(numbers, 2 * seed + arm).mean(np.log(values), number))
            matches += len(values)
        return difference(*estimates), matches

    needed = []
    for seed in range(100):
        pilot, matches = experiment(40, seed)
        needed.append((matches + further(pilot, 0.3, matches)) / (matches / 40))
    slices = round(np.median(needed))
    assert 40 < slices < 150
    hits = sum(experiment(slices, seed)[0].is_known for seed in range(TIMES))
    low, high = stats.binom.ppf([0.0005, 0.9995], TIMES, 0.8)
    assert low <= hits <= high
