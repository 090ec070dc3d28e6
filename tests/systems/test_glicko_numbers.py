"""Printed and computed numbers of Glicko and Glicko-2, of the package and of its slow twins in plain Python.

Numbers with decimals and no other source were computed from the papers' equations with mpmath at 30 digits, the
volatility by bisection.
"""

import importlib

import pytest

from small_matches import AHEAD, BEHIND, DAY, LEVEL, after, beliefs, close, duel, expected_by_player, slow_match

NAMES = ("glicko", "glicko2")
glicko = glicko2 = None  # each test is given both implementations in turn
pytestmark = pytest.mark.usefixtures("implementation")

# --- glicko and glicko2: a whole period (Glickman's example: Example of the Glicko-2 system, 2013; The Glicko system)

HOME = {"package": "evenmatch.systems", "twin": "reference"}
PUBLISHED = [(1400, 30, 1), (1550, 100, 0), (1700, 300, 0)]


def period_function(name, implementation):
    return importlib.import_module(f"{HOME[implementation]}.{name}").rate_period


def test_glicko_of_the_published_period(implementation):
    assert period_function("glicko", implementation)(1500, 200, PUBLISHED) == close(1464.1065, 151.3989, digits=4)


def test_glicko2_of_the_published_period(implementation):
    rating, deviation, volatility = period_function("glicko2", implementation)(1500, 200, 0.06, PUBLISHED)
    assert (rating, deviation) == close(1464.0507, 151.5165, digits=4)
    assert volatility == close(0.0599960, digits=7)


def test_an_idle_period_only_widens_the_deviation(implementation):
    rating, deviation, volatility = period_function("glicko2", implementation)(1500, 200, 0.06, [])
    assert (rating, volatility) == (1500, 0.06)
    assert deviation == close(200.2714, digits=4)
    assert period_function("glicko", implementation)(1500, 200, []) == pytest.approx((1500, 200))


# --- glicko and glicko2, match by match. The two differ by their scales (173.7178 is rounded) and by the growth.

# Ratings and deviations of A and B, places, expected score of A, ratings after
DUELS = [
    ((1500, 350), (1500, 350), AHEAD, 0.5, (1662.2120, 1337.7880)),
    ((1500, 350), (1500, 350), LEVEL, 0.5, (1500, 1500)),
    ((1500, 200), (1400, 30), AHEAD, 0.618797, (1563.4320, 1398.3425)),
    ((1500, 200), (1400, 30), LEVEL, 0.618797, (1475.4620, 1400.5186)),
    ((1500, 200), (1400, 30), BEHIND, 0.618797, (1387.4920, 1402.6948)),
    ((1500, 80), (1800, 250), AHEAD, 0.209681, (1522.4554, 1566.7101)),
    ((1500, 80), (1800, 250), LEVEL, 0.209681, (1508.3253, 1705.2291)),
    ((1500, 80), (1800, 250), BEHIND, 0.209681, (1494.1952, 1843.7482)),
]


@pytest.mark.parametrize("name", ["glicko", "glicko2"])
@pytest.mark.parametrize(("a", "b", "places", "odds", "new"), DUELS)
def test_glicko_moves_whoever_is_in_doubt(name, a, b, places, odds, new):
    changes = globals()[name].replay([duel(places)], state=beliefs(A=a, B=b))
    assert tuple(after(changes).values()) == pytest.approx(new, abs=1e-4)
    assert expected_by_player(changes) == pytest.approx({"A": odds, "B": 1 - odds}, abs=1e-6)


# System, advantage, teams; expected scores and ratings after of A, B, C, D
GLICKO_TEAMS = [
    ("glicko", 0, [(2, "AB"), (1, "C")], (0.561287, 0.561287, 0.438713), (1586.9002, 1327.4209, 1488.6743)),
    ("glicko2", 0, [(2, "AB"), (1, "C")], (0.561287, 0.561287, 0.438713), (1586.9002, 1327.4209, 1488.6743)),
    (
        "glicko",
        0,
        [(2, "AB"), (2, "C"), (1, "D")],
        (0.414202, 0.414202, 0.326490, 0.759307),
        (1589.519000, 1385.522513, 1440.478777, 1718.515844),
    ),
    (
        "glicko2",
        0,
        [(2, "AB"), (2, "C"), (1, "D")],
        (0.414202, 0.414202, 0.326490, 0.759307),
        (1589.519000, 1385.522512, 1440.478776, 1718.515844),
    ),
    (
        "glicko",
        50,
        [(2, "AB"), (2, "C"), (1, "D")],
        (0.470032, 0.470032, 0.296754, 0.733214),
        (1587.245126, 1370.136603, 1444.486632, 1720.501339),
    ),
    (
        "glicko2",
        50,
        [(2, "AB"), (2, "C"), (1, "D")],
        (0.470032, 0.470032, 0.296754, 0.733214),
        (1587.245127, 1370.136602, 1444.486631, 1720.501339),
    ),
]


@pytest.mark.parametrize(("name", "advantage", "teams", "odds", "new"), GLICKO_TEAMS)
def test_glicko_takes_rival_teams_by_their_average_member(name, advantage, teams, odds, new):
    state = beliefs(A=(1600, 60), B=(1400, 200), C=(1450, 120), D=(1700, 90))
    changes = globals()[name].replay([slow_match(*teams)], state=state, advantage=float(advantage))
    assert [change.expected for change in changes] == pytest.approx(odds, abs=1e-6)
    assert [change.after for change in changes] == pytest.approx(new, abs=1e-4)


# System, ratings after: in one match the deviation does not grow by the volatility, as it does in the published period
AT_ONCE = [
    ("glicko", (1464.106463, 1396.045578, 1606.217424, 1639.171207)),
    ("glicko2", (1464.106462, 1396.045578, 1606.217423, 1639.171212)),
]


@pytest.mark.parametrize(("name", "new"), AT_ONCE)
def test_several_rivals_are_one_update(name, new):
    state = beliefs(A=(1500, 200), B=(1400, 30), C=(1550, 100), D=(1700, 300))
    changes = globals()[name].replay([slow_match((3, "A"), (4, "B"), (1, "C"), (2, "D"))], state=state)
    assert [change.after for change in changes] == pytest.approx(new, abs=2e-6)


# System, parameters, days between the matches, expected score of A in the second, ratings of A and C after it
IDLE = [
    ("glicko", {}, 0, 0.462743, (1523.265211, 1547.979048)),
    ("glicko", {}, 0.5, 0.462748, (1523.271510, 1547.979631)),
    ("glicko", {}, 100, 0.463756, (1524.468880, 1548.089246)),
    ("glicko", {"period_days": 7.0}, 100, 0.462893, (1523.444036, 1547.995563)),
    ("glicko", {}, 20000, 0.473688, (1535.462651, 1549.000975)),  # to 350, and no further
    ("glicko2", {}, 0, 0.462743, (1523.265210, 1547.979048)),
    ("glicko2", {}, 0.5, 0.462752, (1523.275640, 1547.980013)),
    ("glicko2", {}, 100, 0.464377, (1525.201486, 1548.155227)),
    ("glicko2", {"period_days": 7.0}, 100, 0.462990, (1523.560049, 1548.006250)),
    ("glicko2", {}, 20000, 0.473688, (1535.462650, 1549.000975)),
]


@pytest.mark.parametrize(("name", "parameters", "days", "odds", "new"), IDLE)
def test_the_deviation_grows_with_the_time_since_the_last_match(name, parameters, days, odds, new):
    # A (1500, 80) beats B (1600, 60), then draws with C (1550, 100), whose first match it is.
    state = beliefs(A=(1500, 80), B=(1600, 60), C=(1550, 100))
    matches = [duel(), duel(LEVEL, "AC", time=days * DAY)]
    changes = globals()[name].replay(matches, state=state, **parameters)[2:]
    assert changes[0].expected == close(odds, digits=6)
    assert [change.after for change in changes] == pytest.approx(new, abs=1e-5)


# System, least deviation, rating of A (1500, 210) after each of two wins over B (1600, 210)
LEAST = [
    ("glicko", 200, (1605.283189, 1664.053413)),
    ("glicko", 0, (1605.283189, 1658.939553)),
    ("glicko2", 200, (1605.283187, 1664.053411)),
    ("glicko2", 0, (1605.283187, 1658.939551)),
]


@pytest.mark.parametrize(("name", "least", "new"), LEAST)
def test_the_deviation_has_a_lower_bound_after_a_match_and_not_within_it(name, least, new):
    state = beliefs(A=(1500, 210), B=(1600, 210))
    changes = globals()[name].replay([duel(), duel()], state=state, min_deviation=float(least))
    assert [change.after for change in changes if change.player == "A"] == pytest.approx(new, abs=1e-5)


# System, rating of A (1500, 110) after each of two wins over B (1600, 110), 10000 days apart, deviations at most 120
MOST = [("glicko", (1538.411274, 1575.687077)), ("glicko2", (1538.411272, 1575.687074))]


@pytest.mark.parametrize(("name", "new"), MOST)
def test_the_deviation_grows_no_further_than_that_of_a_newcomer(name, new):
    state = beliefs(A=(1500, 110), B=(1600, 110))
    changes = globals()[name].replay([duel(), duel(time=10000 * DAY)], state=state, deviation=120.0)
    assert [change.after for change in changes if change.player == "A"] == pytest.approx(new, abs=1e-5)


# Tau, ratings of A and C after: A (1500, 50) beat B (2100, 50) and, 400 days later, draws with C (1550, 60). The
# volatility of A, .06 before, was .060002, .060012, .060069 after the first match.
UPSETS = [(0.2, (1523.464051, 1549.276924)), (0.5, (1523.466298, 1549.276995)), (1.2, (1523.479062, 1549.277394))]


@pytest.mark.parametrize(("tau", "new"), UPSETS)
def test_glicko2_grows_more_volatile_by_surprises(tau, new):
    state = beliefs(A=(1500, 50), B=(2100, 50), C=(1550, 60))
    matches = [duel(), duel(LEVEL, "AC", time=400 * DAY)]
    changes = glicko2.replay(matches, state=state, tau=tau)
    assert after(changes[:2]) == pytest.approx({"A": 1513.724938, "B": 2086.275062}, abs=1e-5)
    assert [change.after for change in changes[2:]] == pytest.approx(new, abs=1e-5)
