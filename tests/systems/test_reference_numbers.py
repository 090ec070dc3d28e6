"""Printed and hand-computed numbers of the reference systems, of the package and of its slow twins in plain Python.

Numbers with decimals and no other source were computed from the papers' equations with mpmath at 30 digits, the
volatility by bisection; fractions are exact.
"""

import importlib
import math
import sys

import pytest

from fast import Fast
from slow.model import SlowMatch, SlowPlayer, SlowTeam

NAMES = ("elo", "glicko", "glicko2", "trophies", "planeswalker")
elo = glicko = glicko2 = trophies = planeswalker = None  # each test is given both implementations in turn
rate_period = None  # by name of the system

DAY = 86400.0
AHEAD, LEVEL, BEHIND = (1, 2), (1, 1), (2, 1)
FIDE = {"rule": "fide", "clamp": 400.0}
USCF = {"rule": "uscf"}


@pytest.fixture(params=["package", "twin"], autouse=True)
def implementation(request, monkeypatch):
    """Each test runs twice: `elo` and the others are the package's, then their twins."""
    home = "evenmatch.systems" if request.param == "package" else "slow"
    for name in NAMES:
        chosen = Fast(name) if request.param == "package" else importlib.import_module(f"slow.{name}")
        monkeypatch.setattr(sys.modules[__name__], name, chosen)
    monkeypatch.setattr(
        sys.modules[__name__], "rate_period", lambda name: importlib.import_module(f"{home}.{name}").rate_period
    )


def match(*teams, time=0.0, name="m"):
    """`teams` are (place, "AB") for the team of A and B."""
    return SlowMatch(name, time, None, [SlowTeam(place, None, [SlowPlayer(p) for p in who]) for place, who in teams])


def duel(places=AHEAD, who="AB", **match_fields):
    return match((places[0], who[0]), (places[1], who[1]), **match_fields)


def ratings(*values, **fields):
    """Starting states of A, B, C … with these ratings, all with the same other fields."""
    return {"ABCDEFGHIJ"[i]: {"rating": value, **fields} for i, value in enumerate(values)}


def beliefs(**told):
    """Starting states, each told as (rating, deviation)."""
    return {name: {"rating": rating, "deviation": deviation} for name, (rating, deviation) in told.items()}


def after(changes):
    """Shown rating of each player after the last match of theirs."""
    return {change.player: change.after for change in changes}


def gained(changes):
    return {change.player: change.after - change.before for change in changes}


def expected(changes):
    return {change.player: change.expected for change in changes}


def close(*values, digits):
    """Equal to what is printed with so many digits: half a unit in the last place."""
    return pytest.approx(values if len(values) > 1 else values[0], abs=0.500001 * 10**-digits, rel=0)


# --- All five


@pytest.mark.parametrize("name", NAMES)
def test_each_rating_begins_where_the_last_match_left_it(name):
    system = globals()[name]
    matches = [match((2, "AD"), (1, "BC"), name="1"), match((1, "C"), (2, "A"), time=DAY, name="2")]

    changes = system.replay(matches)

    assert [(change.match_id, change.team, change.player) for change in changes] == [
        ("1", 0, "A"),
        ("1", 0, "D"),
        ("1", 1, "B"),
        ("1", 1, "C"),
        ("2", 0, "C"),
        ("2", 1, "A"),
    ]
    assert changes[4].before == changes[3].after
    assert changes[5].before == changes[0].after


# System, start of a newcomer
STARTS = [("elo", 1500), ("glicko", 1500), ("glicko2", 1500), ("trophies", 0), ("planeswalker", 0)]


@pytest.mark.parametrize(("name", "start"), STARTS)
def test_newcomers_begin_at_the_start(name, start):
    system = globals()[name]
    assert [change.before for change in system.replay([duel()])] == [start, start]
    assert [change.before for change in system.replay([duel()], start=100.0)] == [100, 100]


# --- elo

# Rating of A, of B, places, points gained by A, by B. 400 points are odds of 10 to 1, 800 of 100 to 1.
GAINS = [
    (1500, 1500, AHEAD, 16, -16),
    (1500, 1500, LEVEL, 0, 0),
    (1500, 1900, AHEAD, 320 / 11, -320 / 11),
    (1500, 1900, LEVEL, 144 / 11, -144 / 11),
    (1500, 1900, BEHIND, -32 / 11, 32 / 11),
    (1900, 1500, AHEAD, 32 / 11, -32 / 11),
    (1900, 1500, LEVEL, -144 / 11, 144 / 11),
    (2300, 1500, BEHIND, -3200 / 101, 3200 / 101),
]


@pytest.mark.parametrize(("a", "b", "places", "by_a", "by_b"), GAINS)
def test_elo_moves_k_times_the_surprise(a, b, places, by_a, by_b):
    changes = elo.replay([duel(places)], state=ratings(a, b))
    assert gained(changes) == pytest.approx({"A": by_a, "B": by_b})


# Parameters, rating of A, of B, expected score of A, points gained by A who wins
ELO_PARAMETERS = [
    ({"k": 10.0}, 1500, 1900, 1 / 11, 100 / 11),
    ({"scale": 200.0}, 1500, 1900, 1 / 101, 3200 / 101),
    ({"clamp": 400.0}, 1500, 2700, 1 / 11, 320 / 11),
    ({"clamp": 400.0}, 2700, 1500, 10 / 11, 32 / 11),
    ({"advantage": 400.0}, 1500, 1500, 10 / 11, 32 / 11),
    ({"advantage": 400.0}, 1500, 1900, 1 / 2, 16),
    ({"advantage": -400.0}, 1500, 1500, 1 / 11, 320 / 11),
]


@pytest.mark.parametrize(("parameters", "a", "b", "odds", "by_a"), ELO_PARAMETERS)
def test_elo_odds_go_by_scale_clamp_and_the_advantage_of_the_first_team(parameters, a, b, odds, by_a):
    changes = elo.replay([duel()], state=ratings(a, b), **parameters)
    assert expected(changes) == pytest.approx({"A": odds, "B": 1 - odds})
    assert gained(changes) == pytest.approx({"A": by_a, "B": -by_a})


# Advantage; expected score of A and B, of C, of D
ELO_THREE = [
    (0.0, (10 / 11 + 1 / 11) / 2, (1 / 11 + 1 / 101) / 2, (10 / 11 + 100 / 101) / 2),
    (400.0, (100 / 101 + 1 / 2) / 2, (1 / 101 + 1 / 101) / 2, (1 / 2 + 100 / 101) / 2),
]


@pytest.mark.parametrize(("advantage", "of_ab", "of_c", "of_d"), ELO_THREE)
def test_elo_takes_teams_by_their_mean_and_averages_over_rivals(advantage, of_ab, of_c, of_d):
    # A and B, mean 1700, draw with C behind D.
    played = match((2, "AB"), (2, "C"), (1, "D"))
    changes = elo.replay([played], state=ratings(1500, 1900, 1300, 2100), advantage=advantage)
    assert expected(changes) == pytest.approx({"A": of_ab, "B": of_ab, "C": of_c, "D": of_d})
    by_ab = 32 * (1 / 4 - of_ab)
    assert gained(changes) == pytest.approx({"A": by_ab, "B": by_ab, "C": 32 * (1 / 4 - of_c), "D": 32 * (1 - of_d)})


# --- elo as FIDE has it (Rating Regulations: K 40 for 30 games, 20 below 2400, 10 for good from there on)

# Games, rating, whether 2400 was ever reached, K
FIDE_K = [
    (0, 1500, False, 40),
    (29, 1500, False, 40),
    (30, 1500, False, 20),
    (30, 2399.9, False, 20),
    (30, 2400, True, 10),
    (30, 2350, True, 10),
    (29, 2410, True, 40),
]


@pytest.mark.parametrize(("games", "rating", "top", "k"), FIDE_K)
def test_fide_k_goes_by_games_and_by_the_highest_rating_ever(games, rating, top, k):
    changes = elo.replay([duel()], state=ratings(rating, rating, games=games, top=top), **FIDE)
    assert gained(changes) == pytest.approx({"A": k / 2, "B": -k / 2})


def test_fide_odds_grow_no_further_than_400_points():
    changes = elo.replay([duel()], state=ratings(1500, 2000, games=30), **FIDE)
    assert gained(changes) == pytest.approx({"A": 200 / 11, "B": -200 / 11})


# Games and rating of A before; against equals: places and rating of A after each match
FIDE_STORIES = [
    # K 40 for the games before the thirtieth and in it.
    (28, 1500, [(AHEAD, 1520), (AHEAD, 1540), (AHEAD, 1550), (BEHIND, 1540)]),
    # Over 2400 and down again: K stays 10.
    (30, 2385, [(AHEAD, 2395), (AHEAD, 2405), (AHEAD, 2410), *((BEHIND, 2410 - 5 * n) for n in (1, 2, 3, 4, 5))]),
    # To 2400 exactly.
    (30, 2390, [(AHEAD, 2400), (BEHIND, 2395), (BEHIND, 2390)]),
    # 2400 seen while K was still 40 counts once it no longer is.
    (28, 2390, [(AHEAD, 2410), (BEHIND, 2390), (AHEAD, 2395)]),
]


@pytest.mark.parametrize(("games", "rating", "story"), FIDE_STORIES)
def test_fide_k_changes_in_the_match_after_the_threshold(games, rating, story):
    state = {"A": {"rating": rating, "games": games}}
    matches, equal = [], rating
    for number, (places, new) in enumerate(story):
        rival = "BCDEFGHIJ"[number]
        state[rival] = {"rating": equal, "games": 100}
        matches.append(duel(places, "A" + rival, time=number * DAY))
        equal = new
    changes = elo.replay(matches, state=state, **FIDE)
    assert [change.after for change in changes if change.player == "A"] == pytest.approx([new for _, new in story])


# --- elo as the US federation has it (Glickman and Doyle, The US Chess Rating System)

# Rating, games, K. N* is 7.395353 at 100, 16.568464 at 1500, 28.608380 at 2000, 49.989193 at 2355, 50 above.
USCF_K = [
    (1500, 9, 80),
    (2400, 9, 80),
    (2400, 49, 16),
    (2400, 100, 800 / 51),
    (2356, 100, 800 / 51),
    (2355, 100, 15.6895993189),
    (2000, 100, 27.0193772449),
    (1500, 17, 45.5361382111),
    (1500, 100, 45.5361382111),
    (100, 9, 95.2908089118),
]


@pytest.mark.parametrize(("rating", "games", "k"), USCF_K)
def test_uscf_k_goes_by_effective_games(rating, games, k):
    state = ratings(rating, rating + 400, games=games, score=games / 2)
    draw = elo.replay([duel(LEVEL)], state=state, **USCF)
    assert gained(draw)["A"] == pytest.approx(k * (1 / 2 - 1 / 11))
    win = elo.replay([duel(LEVEL), duel(AHEAD, "CD")], state=state | {"C": state["A"], "D": state["A"]}, **USCF)
    assert gained(win)["C"] == pytest.approx(k / 2)


# Games and score so far of a player of 1500, rival's rating, places, rating after
SPECIAL = [
    # Without games so far, this one alone; where more than one rating fits, the nearest.
    (0, 0, 1500, AHEAD, 1900),
    (0, 0, 1500, LEVEL, 1500),
    (0, 0, 1500, BEHIND, 1100),
    (0, 0, 1000, AHEAD, 1500),
    (0, 0, 1000, LEVEL, 1000),
    (0, 0, 1000, BEHIND, 600),
    (0, 0, 2000, LEVEL, 2000),
    (0, 0, 2000, BEHIND, 1500),
    # Half of the games so far were drawn against equals, as it were: 5 x/800 + PWe = S + 1/2 and so on.
    (4, 2, 1500, AHEAD, 1580),
    (4, 2, 1500, LEVEL, 1500),
    (4, 2, 1500, BEHIND, 1420),
    (4, 2, 1900, AHEAD, 1660),
    (4, 2, 1900, LEVEL, 1580),
    (4, 2, 1900, BEHIND, 1500),
    (4, 2, 1100, AHEAD, 1500),
    (4, 2, 1100, BEHIND, 1340),
    (4, 2, 1000, BEHIND, 1320),
    (4, 2, 500, BEHIND, 1300),  # beyond 400 points the line is flat
    (4, 0.5, 1500, AHEAD, 1580),
    (1, 0.5, 1500, AHEAD, 1700),
    (8, 4, 1500, AHEAD, 1500 + 400 / 9),
    (8, 4, 1900, AHEAD, 1500 + 800 / 9),  # K, from the ninth game on, would have given less
    # All won so far: against 1100, as it were.
    (4, 4, 1500, AHEAD, 1900),
    (4, 4, 1000, AHEAD, 1500),
    (4, 4, 1700, LEVEL, 1700),
    (4, 4, 1500, LEVEL, 1500),
    (4, 4, 1300, LEVEL, 1460),
    (4, 4, 1500, BEHIND, 1420),
    (4, 4, 2000, BEHIND, 1500),  # every rating from 1500 to 1600 fits
    (1, 1, 1500, BEHIND, 1300),
    # All lost so far: against 1900.
    (4, 0, 1500, BEHIND, 1100),
    (4, 0, 2000, BEHIND, 1500),
    (4, 0, 1300, LEVEL, 1300),
    (4, 0, 1700, LEVEL, 1540),
    (4, 0, 1500, AHEAD, 1580),
    (4, 0, 1000, AHEAD, 1500),  # every rating from 1400 to 1500 fits
    (1, 0, 1500, AHEAD, 1700),
]


@pytest.mark.parametrize(("games", "score", "rival", "places", "new"), SPECIAL)
def test_uscf_finds_the_rating_that_the_first_games_fit(games, score, rival, places, new):
    state = {"A": {"rating": 1500, "games": games, "score": score}, "B": {"rating": rival, "games": 50, "score": 25}}
    assert after(elo.replay([duel(places)], state=state, **USCF))["A"] == pytest.approx(new, abs=1e-9)


def test_uscf_counts_no_more_games_than_a_low_rating_makes_meaningful():
    # 8 games at 100 count as 7.395353: 8.395353 x/800 = 1/2.
    state = ratings(100, 100, games=8, score=4)
    assert gained(elo.replay([duel()], state=state, **USCF)) == pytest.approx({"A": 47.6454044559, "B": -47.6454044559})


# Rating of A, those of B and so on, place of A and theirs, rating of A after
SPECIAL_MANY = [
    (1500, (1300, 1700), 1, (2, 3), 2100),
    (1500, (1300, 1700), 2, (1, 3), 1500),
    (1400, (1300, 1700), 2, (1, 3), 1500),
    (1500, (1300, 1700), 3, (1, 2), 900),
    # Ahead of one and far behind the other: every rating from 1400 to 1600 fits.
    (1200, (1000, 2000), 2, (3, 1), 1400),
    (1500, (1000, 2000), 2, (3, 1), 1500),
    (1800, (1000, 2000), 2, (3, 1), 1600),
    (1200, (1000, 900, 2000), 2, (3, 4, 1), 1400),
    (1800, (1000, 2100, 2000), 3, (4, 2, 1), 1600),
]


@pytest.mark.parametrize(("rating", "rivals", "place", "places", "new"), SPECIAL_MANY)
def test_uscf_averages_the_first_match_over_its_rivals(rating, rivals, place, places, new):
    played = match((place, "A"), *zip(places, "BCD", strict=False))
    # Telling a flat stretch from rounding may cost a kernel the last digits.
    assert after(elo.replay([played], state=ratings(rating, *rivals), **USCF))["A"] == pytest.approx(new, abs=1e-8)


def test_uscf_takes_a_rival_team_by_its_mean_and_the_advantage_off_it():
    # A team of 1300 and 1700 loses to 1500 at home: for them 1500 is 1400, and the winner's rivals are 1600.
    played = match((2, "AB"), (1, "C"))
    changes = elo.replay([played], state=ratings(1300, 1700, 1500), advantage=100.0, **USCF)
    assert after(changes) == pytest.approx({"A": 1000, "B": 1000, "C": 2000})
    assert expected(changes)["C"] == pytest.approx(1 / (1 + 10 ** (1 / 4)))


def test_uscf_newcomers_go_through_the_special_formula_match_by_match():
    # Two wins; the third match, still as one who has won everything, is lost; then one who has won two of three.
    state = {
        name: {"rating": rating, "games": 50} for name, rating in zip("BCDE", (1500, 1500, 1700, 1700), strict=True)
    }
    outcomes = [(AHEAD, "AB"), (AHEAD, "AC"), (BEHIND, "AD"), (AHEAD, "AE")]
    matches = [duel(places, who, time=number * DAY) for number, (places, who) in enumerate(outcomes)]
    changes = elo.replay(matches, state=state, **USCF)
    assert [change.after for change in changes if change.player == "A"] == pytest.approx([1900, 1900, 1700, 1800])


# --- glicko and glicko2: a whole period (Glickman's example: Example of the Glicko-2 system, 2013; The Glicko system)

PUBLISHED = [(1400, 30, 1), (1550, 100, 0), (1700, 300, 0)]


def test_glicko_of_the_published_period():
    assert rate_period("glicko")(1500, 200, PUBLISHED) == close(1464.1065, 151.3989, digits=4)


def test_glicko2_of_the_published_period():
    rating, deviation, volatility = rate_period("glicko2")(1500, 200, 0.06, PUBLISHED)
    assert (rating, deviation) == close(1464.0507, 151.5165, digits=4)
    assert volatility == close(0.0599960, digits=7)


def test_an_idle_period_only_widens_the_deviation():
    rating, deviation, volatility = rate_period("glicko2")(1500, 200, 0.06, [])
    assert (rating, volatility) == (1500, 0.06)
    assert deviation == close(200.2714, digits=4)
    assert rate_period("glicko")(1500, 200, []) == pytest.approx((1500, 200))


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
    assert expected(changes) == pytest.approx({"A": odds, "B": 1 - odds}, abs=1e-6)


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
    changes = globals()[name].replay([match(*teams)], state=state, advantage=float(advantage))
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
    changes = globals()[name].replay([match((3, "A"), (4, "B"), (1, "C"), (2, "D"))], state=state)
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


# --- trophies

# Lead of the attackers, trophies won and lost. Those at 0, -200 and 200 won are printed.
ATTACKS = [
    (0, 30, 19),
    (-200, 45, 9),
    (200, 14, 30),
    (-400, 54, 3),
    (400, 5, 36),
    (-50, 34, 17),
    (50, 25, 22),
    (800, 0, 39),
    (5000, 0, 39),
    (-5000, 59, 0),
]


@pytest.mark.parametrize(("lead", "won", "lost"), ATTACKS)
def test_an_attack_moves_the_printed_trophies(lead, won, lost):
    state = ratings(6000 + lead, 6000)
    assert gained(trophies.replay([duel(AHEAD)], state=state)) == {"A": won, "B": -won}
    assert gained(trophies.replay([duel(BEHIND)], state=state)) == {"A": -lost, "B": lost}
    assert gained(trophies.replay([duel(LEVEL)], state=state)) == {"A": 0, "B": 0}


# Lead, trophies that the one ahead wins, and loses. At 0 (29.523022 + 19.491152)/2 = 24.507.
MUTUAL = [(0, 25, 25), (100, 17, 32), (200, 11, 38), (400, 4, 45), (800, 0, 49), (5000, 0, 49)]


@pytest.mark.parametrize(("lead", "won", "lost"), MUTUAL)
def test_without_an_attacker_the_winner_gains_half_of_both(lead, won, lost):
    for a, b, win, defeat in [(6000 + lead, 6000, won, lost), (6000, 6000 + lead, lost, won)]:
        for places, gain in [(AHEAD, win), (BEHIND, -defeat), (LEVEL, 0)]:
            changes = trophies.replay([duel(places)], state=ratings(a, b), attack="mutual")
            assert gained(changes) == {"A": gain, "B": -gain}


# Who attacks, lead of the first-listed, expected score of the first-listed: where the stakes are even, before rounding
TROPHY_ODDS = [
    ("first", 0, 0.397664),
    ("first", 200, 0.683195),
    ("first", -200, 0.167763),
    ("first", 800, 1),
    ("first", -5000, 0.000488),
    ("mutual", 0, 0.5),
    ("mutual", 200, 0.765611),
    ("mutual", -200, 0.234389),
    ("mutual", 5000, 0.999706),
]


@pytest.mark.parametrize(("attack", "lead", "odds"), TROPHY_ODDS)
def test_trophy_odds_are_where_the_stakes_are_even(attack, lead, odds):
    changes = trophies.replay([duel()], state=ratings(6000 + lead, 6000), attack=attack)
    assert tuple(expected(changes).values()) == close(odds, 1 - odds, digits=6)


def test_trophies_go_by_the_means_of_the_teams_to_each_of_their_members():
    # 1000 on average attacks 1200: all members move by the same 45.
    changes = trophies.replay([match((1, "AB"), (2, "C"))], state=ratings(700, 1300, 1200))
    assert gained(changes) == {"A": 45, "B": 45, "C": -45}
    changes = trophies.replay([match((2, "C"), (1, "AB"))], state=ratings(700, 1300, 1200))
    assert gained(changes) == {"C": -30, "A": 30, "B": 30}


def test_trophies_never_fall_below_the_floor():
    assert after(trophies.replay([duel()])) == {"A": 30, "B": 0}
    assert after(trophies.replay([duel()], state=ratings(110, 110), floor=100.0, start=100.0)) == {"A": 140, "B": 100}


# --- planeswalker

# Players of the event, points for taking part
EVENTS = [
    (2, 1),
    (7, 1),
    (8, 1),
    (15, 1),
    (16, 2),
    (31, 2),
    (32, 3),
    (64, 4),
    (128, 5),
    (256, 6),
    (512, 7),
    (1024, 8),
    (2047, 8),
    (2048, 9),
    (5000, 9),
]


@pytest.mark.parametrize(("players", "worth"), EVENTS)
def test_taking_part_is_worth_more_in_a_larger_event(players, worth):
    names = [f"p{number}" for number in range(players)]
    first, others = names[: players // 3 + 1], names[players // 3 + 1 :]
    changes = planeswalker.replay([match((2, first), (1, others))])
    assert [change.after for change in changes] == [worth] * len(first) + [worth + 3] * len(others)


# Multiplier, points of A, of B and C, of D, of E
SWISS = [(1.0, 1 + 9, 1 + 3 + 1, 1 + 3 + 1, 1), (3.0, 30, 15, 15, 3)]


@pytest.mark.parametrize(("multiplier", "a", "bc", "d", "e"), SWISS)
def test_a_rival_team_behind_is_three_points_and_a_level_one_is_one(multiplier, a, bc, d, e):
    played = match((1, "A"), (2, "BC"), (2, "D"), (4, "E"))
    changes = planeswalker.replay([played], state=ratings(100, 10, 0, 50, 7), multiplier=multiplier)
    assert gained(changes) == {"A": a, "B": bc, "C": bc, "D": d, "E": e}


# Parameters, expected score of A (9 points) against B (4)
SHARES = [
    ({}, 10 / 15),
    ({"sharpness": 2.0}, 100 / 125),
    ({"prior": 11.0}, 20 / 35),
]


@pytest.mark.parametrize(("parameters", "odds"), SHARES)
def test_planeswalker_odds_are_shares_of_the_points(parameters, odds):
    changes = planeswalker.replay([duel()], state=ratings(9, 4), **parameters)
    assert expected(changes) == pytest.approx({"A": odds, "B": 1 - odds})


def test_planeswalker_odds_of_teams_are_by_their_means_and_averaged_over_rivals():
    changes = planeswalker.replay([match((1, "AB"), (2, "C"), (3, "D"))], state=ratings(14, 4, 4, 0))
    assert expected(changes) == pytest.approx(
        {
            "A": (10 / 15 + 10 / 11) / 2,
            "B": (10 / 15 + 10 / 11) / 2,
            "C": (5 / 15 + 5 / 6) / 2,
            "D": (1 / 11 + 1 / 6) / 2,
        }
    )


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_finite_where_ratings_are_far_apart(name):
    for change in globals()[name].replay([duel(BEHIND)], state=ratings(20000.0, 0.0)):
        assert math.isfinite(change.after)
        assert 0 <= change.expected <= 1
