"""Printed and hand-computed numbers of trophies and planeswalker, and what every system of this kind begins with.

Numbers with decimals and no other source were computed from the papers' equations with mpmath at 30 digits;
fractions are exact.
"""

import math

import pytest

from small_matches import AHEAD, BEHIND, LEVEL, after, close, duel, expected_by_player, gained, ratings, slow_match

NAMES = ("elo", "glicko", "glicko2", "trophies", "planeswalker")
elo = glicko = glicko2 = trophies = planeswalker = None  # each test is given both implementations in turn
pytestmark = pytest.mark.usefixtures("implementation")

# --- All five


# System, start of a newcomer
STARTS = [("elo", 1500), ("glicko", 1500), ("glicko2", 1500), ("trophies", 0), ("planeswalker", 0)]


@pytest.mark.parametrize(("name", "start"), STARTS)
def test_newcomers_begin_at_the_start(name, start):
    system = globals()[name]
    assert [change.before for change in system.replay([duel()])] == [start, start]
    assert [change.before for change in system.replay([duel()], start=100.0)] == [100, 100]


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
    assert tuple(expected_by_player(changes).values()) == close(odds, 1 - odds, digits=6)


def test_trophies_go_by_the_means_of_the_teams_to_each_of_their_members():
    # 1000 on average attacks 1200: all members move by the same 45.
    changes = trophies.replay([slow_match((1, "AB"), (2, "C"))], state=ratings(700, 1300, 1200))
    assert gained(changes) == {"A": 45, "B": 45, "C": -45}
    changes = trophies.replay([slow_match((2, "C"), (1, "AB"))], state=ratings(700, 1300, 1200))
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
    changes = planeswalker.replay([slow_match((2, first), (1, others))])
    assert [change.after for change in changes] == [worth] * len(first) + [worth + 3] * len(others)


# Multiplier, points of A, of B and C, of D, of E
SWISS = [(1.0, 1 + 9, 1 + 3 + 1, 1 + 3 + 1, 1), (3.0, 30, 15, 15, 3)]


@pytest.mark.parametrize(("multiplier", "a", "bc", "d", "e"), SWISS)
def test_a_rival_team_behind_is_three_points_and_a_level_one_is_one(multiplier, a, bc, d, e):
    played = slow_match((1, "A"), (2, "BC"), (2, "D"), (4, "E"))
    changes = planeswalker.replay([played], state=ratings(100, 10, 0, 50, 7), multiplier=multiplier)
    assert gained(changes) == {"A": a, "B": bc, "C": bc, "D": d, "E": e}


# Parameters, expected score of A (9 points) against B (4)
SHARES = [({}, 10 / 15), ({"sharpness": 2.0}, 100 / 125), ({"prior": 11.0}, 20 / 35)]


@pytest.mark.parametrize(("parameters", "odds"), SHARES)
def test_planeswalker_odds_are_shares_of_the_points(parameters, odds):
    changes = planeswalker.replay([duel()], state=ratings(9, 4), **parameters)
    assert expected_by_player(changes) == pytest.approx({"A": odds, "B": 1 - odds})


def test_planeswalker_odds_of_teams_are_by_their_means_and_averaged_over_rivals():
    changes = planeswalker.replay([slow_match((1, "AB"), (2, "C"), (3, "D"))], state=ratings(14, 4, 4, 0))
    assert expected_by_player(changes) == pytest.approx(
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
