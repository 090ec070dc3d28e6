"""Printed and hand-computed numbers of Elo, of the package and of its slow twin in plain Python.

Numbers with decimals and no other source were computed from the papers' equations with mpmath at 30 digits;
fractions are exact.
"""

import pytest

from small_matches import AHEAD, BEHIND, DAY, LEVEL, after, duel, expected_by_player, gained, ratings, slow_match

NAMES = ("elo",)
elo = None  # each test is given both implementations in turn
pytestmark = pytest.mark.usefixtures("implementation")

FIDE = {"rule": "fide", "clamp": 400.0}
USCF = {"rule": "uscf"}

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
    assert expected_by_player(changes) == pytest.approx({"A": odds, "B": 1 - odds})
    assert gained(changes) == pytest.approx({"A": by_a, "B": -by_a})


# Advantage; expected score of A and B, of C, of D
ELO_THREE = [
    (0.0, (10 / 11 + 1 / 11) / 2, (1 / 11 + 1 / 101) / 2, (10 / 11 + 100 / 101) / 2),
    (400.0, (100 / 101 + 1 / 2) / 2, (1 / 101 + 1 / 101) / 2, (1 / 2 + 100 / 101) / 2),
]


@pytest.mark.parametrize(("advantage", "of_ab", "of_c", "of_d"), ELO_THREE)
def test_elo_takes_teams_by_their_mean_and_averages_over_rivals(advantage, of_ab, of_c, of_d):
    # A and B, mean 1700, draw with C behind D.
    played = slow_match((2, "AB"), (2, "C"), (1, "D"))
    changes = elo.replay([played], state=ratings(1500, 1900, 1300, 2100), advantage=advantage)
    assert expected_by_player(changes) == pytest.approx({"A": of_ab, "B": of_ab, "C": of_c, "D": of_d})
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
    played = slow_match((place, "A"), *zip(places, "BCD", strict=False))
    # Telling a flat stretch from rounding may cost a kernel the last digits.
    assert after(elo.replay([played], state=ratings(rating, *rivals), **USCF))["A"] == pytest.approx(new, abs=1e-8)


def test_uscf_takes_a_rival_team_by_its_mean_and_the_advantage_off_it():
    # A team of 1300 and 1700 loses to 1500 at home: for them 1500 is 1400, and the winner's rivals are 1600.
    played = slow_match((2, "AB"), (1, "C"))
    changes = elo.replay([played], state=ratings(1300, 1700, 1500), advantage=100.0, **USCF)
    assert after(changes) == pytest.approx({"A": 1000, "B": 1000, "C": 2000})
    assert expected_by_player(changes)["C"] == pytest.approx(1 / (1 + 10 ** (1 / 4)))


def test_uscf_newcomers_go_through_the_special_formula_match_by_match():
    # Two wins; the third match, still as one who has won everything, is lost; then one who has won two of three.
    state = {
        name: {"rating": rating, "games": 50} for name, rating in zip("BCDE", (1500, 1500, 1700, 1700), strict=True)
    }
    outcomes = [(AHEAD, "AB"), (AHEAD, "AC"), (BEHIND, "AD"), (AHEAD, "AE")]
    matches = [duel(places, who, time=number * DAY) for number, (places, who) in enumerate(outcomes)]
    changes = elo.replay(matches, state=state, **USCF)
    assert [change.after for change in changes if change.player == "A"] == pytest.approx([1900, 1900, 1700, 1800])
