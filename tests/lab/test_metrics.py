"""Metrics of predictions: by hand, against scipy, and their intervals against what is true."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from evenmatch.calibration import BINS, Measure, calibration_slopes, measure, reliability, resample
from evenmatch.lab.backtests.evaluation import judge, metrics
from reference import prediction_metrics

ln = math.log
NAMES = ("matches", "log_loss", "three_way_log_loss", "brier", "accuracy")


def judge_all(matches, cell=None, cells=1, with_bins=True, stops=()):
    """Sums and bins of matches, each told as places and (win, draw) of each pair of teams in turn."""
    team_start = np.cumsum([0, *(len(places) for places, _ in matches)]).astype(np.int32)
    place = np.array([place for places, _ in matches for place in places], np.int32)
    foretold = np.array([odds for _, told in matches for odds in told], float).reshape(-1, 2)
    cell = np.array([0] * len(matches) if cell is None else cell, np.int32)
    team_start.flags.writeable = place.flags.writeable = False
    sums, bins = np.zeros((cells, 7)), np.zeros((cells if with_bins else 0, BINS, 3))
    start = 0
    for stop in (*stops, len(matches)):
        pairs = sum(len(told) for _, told in matches[start:stop])
        done = sum(len(told) for _, told in matches[:start])
        judge(team_start, place, start, stop, foretold[done : done + pairs].copy(), cell, sums, bins)
        start = stop
    return sums, bins


def metrics_of(matches):
    sums, bins = judge_all(matches)
    return metrics(sums, bins, np.ones((3, 1)))


def metric_values(found):
    """The metrics by name, None where they are not defined."""
    values = {name: getattr(getattr(found, name), "value", getattr(found, name)) for name in NAMES}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}


WON, DREW, LOST = (1, 2), (1, 1), (2, 1)
EVEN = (0.5, 0.0)
LEVEL = (ln(4 / 3) + ln(4 / math.sqrt(3)) + ln(5 / 3)) / 3, (ln(5 / 3) + ln(25 / 6) / 2 + ln(5 / 2)) / 3
# places, (win, draw) of each pair, then log loss, three-way log loss, Brier score, accuracy
BY_HAND = [
    (WON, [(0.75, 0)], ln(4 / 3), None, 1 / 16, 1),
    (LOST, [(0.75, 0)], ln(4), None, 9 / 16, 0),
    (DREW, [(0.75, 0)], ln(4 / math.sqrt(3)), None, 1 / 16, None),
    (LOST, [(0.25, 0)], ln(4 / 3), None, 1 / 16, 1),
    (WON, [(0.5, 0.2)], ln(5 / 3), ln(2), 4 / 25, 1),
    (DREW, [(0.5, 0.2)], ln(25 / 6) / 2, ln(5), 1 / 100, None),
    (LOST, [(0.5, 0.2)], ln(5 / 2), ln(10 / 3), 9 / 25, 0),
    (WON, [(0.1, 0.3)], ln(4), ln(10), 9 / 16, 0),
    (DREW, [(0.1, 0.3)], ln(4 / math.sqrt(3)), ln(10 / 3), 1 / 16, None),
    (LOST, [(0.1, 0.3)], ln(4 / 3), ln(5 / 3), 1 / 16, 1),
    (WON, [EVEN], ln(2), None, 1 / 4, 1 / 2),
    (LOST, [EVEN], ln(2), None, 1 / 4, 1 / 2),
    (DREW, [EVEN], ln(2), None, 0, None),
    (WON, [(0.4, 0.2)], ln(2), ln(5 / 2), 1 / 4, 1 / 2),
    (DREW, [(0.0, 1.0)], ln(2), 0, 0, None),
    (WON, [(1.0, 0)], 0, None, 0, 1),
    (LOST, [(1.0, 0)], 12 * ln(10), None, 1, 0),
    (WON, [(0.0, 0)], 12 * ln(10), None, 1, 0),
    (DREW, [(1.0, 0)], 6 * ln(10), None, 1 / 4, None),
    ((1, 2, 3), [(0.75, 0), (0.9, 0), (0.4, 0)], ln(4 / 3 * 10 / 9 * 5 / 2) / 3, None, 0.4325 / 3, 2 / 3),
    ((2, 1, 2), [(0.75, 0), EVEN, (0.2, 0)], ln(4 * 2 * 5) / 3, None, (9 / 16 + 16 / 25) / 3, 0),
    ((2, 1, 2), [(0.25, 0), (0.75, 0), (0.6, 0)], LEVEL[0], None, 0.285 / 3, 1),
    ((4, 4, 4), [(0.75, 0), EVEN, (0.2, 0)], ln(4 / math.sqrt(3) * 2 * 5 / 2) / 3, None, (1 / 16 + 9 / 100) / 3, None),
    ((3, 7, 3), [(0.5, 0.2)] * 3, LEVEL[1], (ln(2) + ln(5) + ln(10 / 3)) / 3, 0.53 / 3, 1 / 2),
]  # fmt: skip


@pytest.mark.parametrize(("places", "foretold", "loss", "three_way", "brier", "accuracy"), BY_HAND)
def test_a_match_is_judged_as_by_hand(places, foretold, loss, three_way, brier, accuracy):
    found = metric_values(metrics_of([(places, foretold)]))
    expected = dict(zip(NAMES, (1, loss, three_way, brier, accuracy), strict=True))
    assert found == {
        name: None if value is None else pytest.approx(value, rel=1e-5, abs=1e-9) for name, value in expected.items()
    }


def some_matches(seed, count, draws=True):
    rng = np.random.default_rng(seed)
    matches = []
    for _ in range(count):
        teams = int(rng.choice([2, 2, 2, 3, 5]))
        win = rng.choice([0.0, 0.2, 0.35, 0.5, 0.6, 0.8, 0.95 if draws else 1.0], teams * (teams - 1) // 2)
        draw = rng.uniform(0.01, 1, len(win)) * (1 - win) if draws else np.zeros(len(win))
        matches.append((tuple(rng.integers(1, 4, teams).tolist()), list(zip(win, draw, strict=True))))
    return matches


@pytest.mark.parametrize("draws", [True, False])
def test_many_matches_are_judged_as_one_by_one_in_plain_python(draws):
    matches = some_matches(5, 300, draws)
    slow = []
    for places, told in matches:
        pairs = combinations(range(len(places)), 2)
        slow.append(prediction_metrics.judged(list(places), dict(zip(pairs, told, strict=True))))
    expected = prediction_metrics.together(slow)
    found = metric_values(metrics_of(matches))
    if not draws:
        assert found.pop("three_way_log_loss") is None
        del expected["three_way_log_loss"]
    assert found == pytest.approx(expected, rel=1e-6)  # a probability of 1 counts as 1 − 1e-12, in plain Python as 1


def test_a_certainty_that_fails_costs_the_three_way_loss_too():
    # one pair so uneven that its draw vanished in rounding, in a system that gives draws a probability
    found = metrics_of([(DREW, [(0.5, 0.2)]), (DREW, [(1.0, 0.0)])])
    assert found.three_way_log_loss.value == pytest.approx((ln(5) + 12 * ln(10)) / 2)
    found = metrics_of([(WON, [(0.5, 0.2)]), (LOST, [(1.0, 0.0)])])
    assert found.three_way_log_loss.value == pytest.approx((ln(2) + 12 * ln(10)) / 2)


def test_it_does_not_matter_which_side_is_listed_first():
    matches = [(places, told) for places, told in some_matches(6, 200) if len(places) == 2]
    matches += [(WON, [EVEN]), (WON, [EVEN]), (DREW, [EVEN]), (WON, [(0.4, 0.2)])]
    turned = [((b, a), [(1 - win - draw, draw)]) for (a, b), [(win, draw)] in matches]
    for one, other in zip(judge_all(matches), judge_all(turned), strict=True):
        assert other == pytest.approx(one, rel=1e-6, abs=1e-9)


def test_of_an_even_pair_neither_side_is_the_favourite():
    # files often list the winner first; newcomers are even, and no favourite of theirs has won
    points = reliability(judge_all([(WON, [EVEN])] * 10)[1], np.ones((3, 1)))
    assert [(point.predicted, point.observed) for point in points] == [(0.5, 0.5)]


@pytest.mark.parametrize("foretold", [(math.nan, 0), (0.5, math.nan), (1.5, 0), (-0.1, 0), (math.inf, 0)])
def test_odds_that_are_no_odds_are_not_hidden(foretold):
    sums, _ = judge_all([(WON, [(0.75, 0)]), (WON, [foretold]), (WON, [(0.75, 0)])])
    assert not np.isfinite(sums).all()


def test_matches_of_no_cell_are_passed_over_with_all_their_pairs():
    matches = [((1, 2, 3), [(0.9, 0)] * 3), (WON, [(0.75, 0)]), ((1, 2, 3, 4), [(0.9, 0)] * 6), (LOST, [(0.2, 0)])]
    sums, bins = judge_all(matches, cell=[-1, 1, -1, 0], cells=2)
    alone, binned = judge_all([matches[3], matches[1]], cell=[0, 1], cells=2)
    assert np.array_equal(sums, alone)
    assert np.array_equal(bins, binned)


def test_stretches_in_turn_are_judged_as_the_whole():
    matches = some_matches(7, 60)
    cell = [number % 4 for number in range(60)]
    whole = judge_all(matches, cell, 4)
    parts = judge_all(matches, cell, 4, stops=(1, 7, 7, 40))
    assert np.array_equal(parts[0], whole[0])
    assert np.array_equal(parts[1], whole[1])
    assert np.array_equal(judge_all(matches, cell, 4, with_bins=False)[0], whole[0])


def told_with_slope(seed, slope, count=20_000, drawn=0.0, spread=1.5):
    """Matches whose log-odds are right when multiplied by `slope`, in the order told by neither side's strength."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, spread, count)
    outcome = np.where(rng.random(count) < drawn, 0.5, rng.random(count) < 1 / (1 + np.exp(-slope * odds)))
    places = [{1.0: WON, 0.5: DREW, 0.0: LOST}[one] for one in outcome.tolist()]
    return (
        odds,
        outcome,
        [(place, [(win, 0)]) for place, win in zip(places, (1 / (1 + np.exp(-odds))).tolist(), strict=True)],
    )


def fitted(odds, outcome, weight=1.0):
    """The slope by scipy's optimiser, from every match by itself."""

    def loss(slope):
        return (weight * (np.logaddexp(0, slope * odds) - outcome * slope * odds)).sum()

    return optimize.minimize_scalar(loss, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9}).x


@pytest.mark.parametrize(("slope", "drawn"), [(0.3, 0), (1, 0), (1, 0.2), (2.5, 0), (-0.5, 0), (0, 0)])
def test_the_calibration_slope_is_the_one_that_scipy_finds_and_the_true_one(slope, drawn):
    odds, outcome, matches = told_with_slope(1, slope, drawn=drawn)
    _, bins = judge_all(matches)
    (found,) = calibration_slopes(bins)
    assert found == pytest.approx(fitted(odds, outcome), abs=0.01)  # bins are a fifth wide
    if not drawn:
        assert found == pytest.approx(slope, abs=0.1)
    weight = bins[0, :, 0]
    inside = weight > 0
    middle = bins[0, inside, 1] / weight[inside]
    exact = fitted(middle, bins[0, inside, 2] / weight[inside], weight[inside])
    assert found == pytest.approx(exact, abs=1e-6)


def test_slopes_of_several_rows_equal_those_of_each_row():
    rows = np.concatenate([judge_all(told_with_slope(seed, 0.5 * seed, 400)[2])[1] for seed in (1, 2, 3)])
    rows = np.concatenate((rows, np.zeros((1, BINS, 3))))
    alone = [calibration_slopes(rows[at : at + 1])[0] for at in range(4)]
    assert calibration_slopes(rows) == pytest.approx(alone, nan_ok=True)
    assert math.isnan(alone[3])


@pytest.mark.parametrize("win", [0.51, 0.6, 0.8, 0.9, 0.98, 0.9999])
@pytest.mark.parametrize("favourites", [WON, LOST], ids=["won", "lost"])
def test_the_slope_is_undefined_if_favourites_always_or_never_won(win, favourites):
    # the likelihood rises for ever: no number between the ends of the range is the best one
    _, bins = judge_all([(favourites, [(win, 0)])] * 10)
    (found,) = calibration_slopes(bins)
    assert math.isnan(found) or found == (20 if favourites == WON else -20)


# what the favourite was given, how many of 20 such favourites won
CURVE = [(0.52, 11), (0.56, 9), (0.63, 14), (0.68, 13), (0.72, 15), (0.77, 20), (0.83, 16), (0.88, 18), (0.93, 17),
         (0.97, 20)]  # fmt: skip


def test_a_reliability_curve_has_a_point_for_every_twentieth():
    matches, cell = [], []
    for p, won in CURVE:
        for number in range(20):
            mirrored = number % 2 == 1
            result = (WON if number < won else LOST) if not mirrored else (LOST if number < won else WON)
            matches.append((result, [(1 - p if mirrored else p, 0)]))
            cell.append(number % 5)
    _, bins = judge_all(matches, cell, 5)
    points = reliability(bins, resample(5, 200, 1))
    assert [point.predicted for point in points] == pytest.approx([p for p, _ in CURVE])
    assert [point.observed for point in points] == pytest.approx([won / 20 for _, won in CURVE])
    assert [point.matches for point in points] == pytest.approx([20] * len(CURVE))
    for point in points:
        assert point.low <= point.observed <= point.high
    assert any(point.low < point.observed < point.high for point in points)


def test_a_reliability_curve_leaves_out_where_nothing_was_foretold():
    _, bins = judge_all([(WON, [(0.999999, 0)]), (LOST, [(0.4, 0)]), (DREW, [(0.4, 0)])])
    points = reliability(bins, np.ones((2, 1)))
    assert [(point.predicted, point.observed, point.matches) for point in points] == [
        (pytest.approx(0.6), pytest.approx(0.75), pytest.approx(2)),
        (pytest.approx(0.999999), 1, 1),
    ]


def test_each_resample_draws_as_many_blocks_with_replacement():
    drawn = resample(40, 3000, 9)
    assert drawn.shape == (3000, 40)
    assert drawn.dtype == np.float64
    assert (drawn.sum(1) == 40).all()
    assert (drawn == np.round(drawn)).all()
    assert drawn.min() == 0
    assert drawn.mean(0) == pytest.approx(1, abs=0.1)  # 5.5 standard errors
    assert drawn.var() == pytest.approx(1 - 1 / 40, abs=0.03)  # binomial
    assert np.array_equal(drawn, resample(40, 3000, 9))
    assert not np.array_equal(drawn, resample(40, 3000, 10))


def test_an_interval_is_from_the_percentiles_of_the_resamples():
    assert measure(3.0, np.arange(101.0)) == Measure(3.0, 2.5, 97.5)
    assert measure(3.0, np.array([math.nan, 1.0, math.inf, 3.0])) == Measure(3.0, 1.05, 2.95)
    assert all(math.isnan(one) for one in vars(measure(math.nan, np.array([1.0]))).values())
    for unknown in ([math.nan], []):
        told = measure(1.0, np.array(unknown))
        assert told.value == 1.0
        assert math.isnan(told.low)
        assert math.isnan(told.high)


def test_metrics_of_resamples_match_the_blocks_drawn():
    # a block of three matches and one of one: a resample that draws the first twice has its mean
    matches = [(WON, [(0.8, 0)]), (WON, [(0.8, 0)]), (LOST, [(0.8, 0)]), (WON, [(0.6, 0)])]
    sums, bins = judge_all(matches, [0, 0, 0, 1], 2)
    found = metrics(sums, bins, np.array([[2.0, 0.0], [0.0, 2.0]]))
    first, second = (2 * ln(5 / 4) + ln(5)) / 3, ln(5 / 3)
    assert found.matches == 4
    assert found.log_loss.value == pytest.approx((3 * first + second) / 4)
    assert (found.log_loss.low, found.log_loss.high) == pytest.approx(
        (second + 0.025 * (first - second), second + 0.975 * (first - second))
    )
    assert (found.accuracy.value, found.accuracy.low, found.accuracy.high) == pytest.approx(
        (3 / 4, 2 / 3 + 0.025 / 3, 1 - 0.025 / 3)
    )


def test_intervals_of_independent_matches_hold_the_truth_nineteen_times_in_twenty():
    logistic = stats.logistic.cdf

    def over_all(value):
        return integrate.quad(lambda odds: value(logistic(odds)) * stats.norm.pdf(odds, 0, 1.2), -9, 9)[0]

    truth = {
        "log_loss": over_all(lambda p: -p * ln(p) - (1 - p) * ln(1 - p)),
        "brier": over_all(lambda p: p * (1 - p)),
        "accuracy": over_all(lambda p: max(p, 1 - p)),
        "calibration_slope": 1.0,
    }
    rng, times, count, blocks = np.random.default_rng(12), 250, 1000, 100
    team_start, cell = np.arange(0, 2 * count + 1, 2, dtype=np.int32), np.arange(count, dtype=np.int32) // 10
    held = dict.fromkeys(truth, 0)
    for at in range(times):
        p = logistic(rng.normal(0, 1.2, count))
        wins = rng.random(count) < p
        place = np.stack((2 - wins, 1 + wins), 1).ravel().astype(np.int32)
        team_start.flags.writeable = place.flags.writeable = False
        sums, bins = np.zeros((blocks, 7)), np.zeros((blocks, BINS, 3))
        judge(team_start, place, 0, count, np.stack((p, np.zeros(count)), 1), cell, sums, bins)
        found = metrics(sums, bins, resample(blocks, 200, at))
        for name, true in truth.items():
            one = getattr(found, name)
            assert one.low <= one.value <= one.high
            held[name] += one.low <= true <= one.high
    for name, count in held.items():
        assert 0.89 <= count / times <= 0.985, name  # 0.95, by four standard errors and what percentiles lack
