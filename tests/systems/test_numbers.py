"""Every number that the definitions of the four systems print, of the package and of its slow twins in plain Python."""

import math

import pytest

from reference.model import SlowMatch, SlowPlayer, SlowTeam
from small_matches import AHEAD, BEHIND, DAY, LEVEL, after, close, expected_by_player, gained, ratings

NAMES = ("wager", "scorefactor", "prav", "battlepoints")
wager = scorefactor = prav = battlepoints = None  # each test is given both implementations in turn
pytestmark = pytest.mark.usefixtures("implementation")

XONSTAT = {"spare_favourites": True}
APP = {"brackets": (2100, 2400, 2400), "k": (32, 24, 10, 10), "lopsided": (1, 1, 1, 1), "truncate": True}


def team(place, *players, score=None):
    return SlowTeam(place, score, [SlowPlayer(player) if isinstance(player, str) else player for player in players])


def slow_match(*teams, time=0.0, duration=None, name="m"):
    return SlowMatch(name, time, duration, list(teams))


def duel(places=AHEAD, scores=(None, None), seconds=(None, None), **match_fields):
    """A against B."""
    a, b = SlowPlayer("A", seconds=seconds[0]), SlowPlayer("B", seconds=seconds[1])
    return slow_match(team(places[0], a, score=scores[0]), team(places[1], b, score=scores[1]), **match_fields)


# --- Section 1: wager

PUBLISHED_A = (21.84, 19.71, 19.94, 20.87, 18.43, 24.05)
PUBLISHED_B = (22.87, 17.04, 23.39, 21.40, 20.11, 22.37)


def published_match():
    seconds = (801, 801, 801, 801, 801, 609)
    team_a = [SlowPlayer(f"A{i + 1}", seconds=float(s), quit=s < 801) for i, s in enumerate(seconds)]
    team_b = [SlowPlayer(f"B{i + 1}", seconds=801.0) for i in range(6)]
    state = {f"A{i + 1}": {"rating": rating} for i, rating in enumerate(PUBLISHED_A)}
    state |= {f"B{i + 1}": {"rating": rating} for i, rating in enumerate(PUBLISHED_B)}
    return slow_match(team(1, *team_a), team(2, *team_b)), state


def test_wager_gives_the_published_example_with_its_slip_corrected():
    played, state = published_match()
    changes = wager.replay([played], state=state)
    assert [change.before for change in changes] == [*PUBLISHED_A, *PUBLISHED_B]
    assert [change.after for change in changes[:6]] == [23.00, 20.76, 21.00, 21.98, 19.41, 22.85]
    assert [change.after for change in changes[6:]] == [21.66, 16.14, 22.15, 20.26, 19.04, 21.18]


def test_wager_expects_by_the_squares_of_the_rounded_averages():
    # The sums are 124.84 and 127.18, so the averages are 20.81 and 21.20.
    played, state = published_match()
    changes = wager.replay([played], state=state)
    assert changes[0].expected == pytest.approx(20.81**2 / (20.81**2 + 21.20**2), rel=1e-14)
    assert changes[6].expected == pytest.approx(21.20**2 / (20.81**2 + 21.20**2), rel=1e-14)


# Ranks of A and B, places, ranks after
WAGER_DUELS = [
    (10.00, 12.50, AHEAD, 10.63, None),
    (10.00, 12.50, BEHIND, 9.60, None),
    (10.00, 12.50, LEVEL, 10.63, 12.50),
    (10.10, 10.10, AHEAD, 10.61, None),
    (1.04, 1.04, BEHIND, 1.00, None),
    (1.00, 1.00, AHEAD, 1.05, 1.00),
    (7.77, 7.77, LEVEL, 7.77, 7.77),
    (9999999999.99, 9999999999.99, AHEAD, 10499999999.99, 9499999999.99),  # ± 499999999.9995
]


@pytest.mark.parametrize(("a", "b", "places", "a_after", "b_after"), WAGER_DUELS)
def test_wager_duels_end_at_the_printed_ranks(a, b, places, a_after, b_after):
    ranks = after(wager.replay([duel(places)], state=ratings(a, b)))
    assert ranks["A"] == a_after
    assert b_after is None or ranks["B"] == b_after


def test_wager_rounds_averages_half_up_before_it_compares_them():
    # 41.65/2 = 20.825, which becomes 20.83; the binary float would not.
    drawn = slow_match(team(1, "A", "B"), team(1, "C"))
    changes = wager.replay([drawn], state=ratings(20.00, 21.65, 20.83))
    assert gained(changes) == {"A": 0, "B": 0, "C": 0}
    assert expected_by_player(changes) == {"A": 0.5, "B": 0.5, "C": 0.5}


def test_wager_expects_the_odds_at_which_the_total_change_is_zero():
    won = wager.replay([duel(AHEAD)], state=ratings(8000.00, 10000.00))
    lost = wager.replay([duel(BEHIND)], state=ratings(8000.00, 10000.00))
    assert gained(won) == {"A": 500, "B": -625}
    assert gained(lost) == {"A": -320, "B": 400}
    p = won[0].expected
    assert p * (500 - 625) + (1 - p) * (400 - 320) == pytest.approx(0, abs=1e-10)


def test_three_boosters_who_leave_ten_seconds_before_the_end_raise_the_wager_by_1_0127():
    loyal = SlowPlayer("A", seconds=600.0)
    boosters = [SlowPlayer(name, seconds=590.0, quit=True) for name in "BCD"]
    others = [SlowPlayer(name, seconds=600.0) for name in "EFGH"]
    played = slow_match(team(1, loyal, *boosters), team(2, *others))
    changes = wager.replay([played], state=ratings(*[100000.00] * 8))
    # A twentieth is 5000; 2400/2370 = 1.0127.
    assert changes[0].after == 105063.29
    assert gained(changes)["A"] / 5000 == close(1.0127, digits=4)


# Parameter, what a losing favourite who quits at half-time loses, as a part of the wager
HALF_TIME_QUITS = [("stayed", 1.30), ("actual", 1.17)]


@pytest.mark.parametrize(("quitter_time", "part"), HALF_TIME_QUITS)
def test_a_losing_favourite_gains_by_quitting_only_where_the_actual_time_counts(quitter_time, part):
    favourites = [SlowPlayer(name, seconds=300.0 if name == "A" else 600.0, quit=name == "A") for name in "ABCDE"]
    others = [SlowPlayer(name, seconds=600.0) for name in "FGHIJ"]
    played = slow_match(team(2, *favourites), team(1, *others))
    changes = wager.replay([played], state=ratings(*[13000.00] * 5, *[10000.00] * 5), quitter_time=quitter_time)
    assert gained(changes)["A"] == pytest.approx(-650 * part)
    # Those who stay lose 1.3 * 4.5/5 either way.
    assert gained(changes)["B"] == pytest.approx(-650 * 1.17)


def quits(seconds_a, quit_a, seconds_b, quit_b, places=AHEAD):
    """A and B, who may quit, against C and D, who may."""
    sides = zip("ABCD", (*seconds_a, *seconds_b), (*quit_a, *quit_b), strict=True)
    players = [SlowPlayer(name, seconds=seconds, quit=gone) for name, seconds, gone in sides]
    return slow_match(team(places[0], *players[:2]), team(places[1], *players[2:]))


NOBODY, FIRST, BOTH = (False, False), (True, False), (True, True)
# Match of A 100.00 and B 110.00 (average 105) against C 80.00 and D 88.00 (84), parameters, gains of A, B, C, D
WAGER_RULES = {
    # 84/105 = .8 of the wagers 5, 5.5, 4 and 4.4.
    "a win without times": (quits((None,) * 2, NOBODY, (None,) * 2, NOBODY), {}, (4.00, 4.40, -3.20, -3.52)),
    # Draw: the higher team keeps its rank, the lower wins 1.25 of its wager.
    "an unequal draw": (quits((600.0,) * 2, NOBODY, (600.0,) * 2, NOBODY, LEVEL), {}, (0, 0, 5.00, 5.50)),
    # A loses 5 * 1.25 although it is a draw; C and D win with 900/1200.
    "a quitter in a draw": (
        quits((300.0, 600.0), FIRST, (600.0,) * 2, NOBODY, LEVEL),
        {},
        (-6.25, 0, 3.75, 4.13),  # 4.125, half up
    ),
    # Everybody of the better placed team quit: C and D get a twentieth. A, had A alone stayed, would lose
    # 900/1200 * 1.25 of the wager, which is less than all of it; so would B.
    "a team that quit entirely": (quits((300.0, 300.0), BOTH, (600.0,) * 2, NOBODY), {}, (-5.00, -5.50, 4.00, 4.40)),
    # C quit on the team that wins by rule 5: standard loss 4 * .8 * 1200/600 = 6.40.
    "a quitter on the team that stays": (
        quits((300.0, 300.0), BOTH, (450.0, 600.0), FIRST),
        {},
        # A: (600 + 300)/1050 * 1.25 = 1.0714; C: (600 + 600)/600 * .8 = 1.6
        (-5.36, -5.89, -6.40, 4.40),
    ),
    "both teams quit entirely": (
        quits((600.0, 600.0), BOTH, (600.0, 600.0), BOTH),
        {},
        (-6.25, -6.87, -4.00, -4.40),  # 110 - 6.875 = 103.125, half up 103.13
    ),
    # Nobody of the other team was in the game: modifier 1, and A, who quit, loses the twentieth and not 1.25 of it.
    "opponents without time": (
        quits((300.0, 600.0), FIRST, (0.0, 0.0), NOBODY, BEHIND),
        {},
        (-5.00, -6.87, 5.00, 5.50),
    ),
    # 1200/150 = 8, limited to 2; .8 of that.
    "a limit for the modifiers": (
        quits((75.0, 75.0), NOBODY, (600.0, 600.0), NOBODY),
        {"modifier_limit": 2.0},
        (8.00, 8.80, -6.40, -7.04),
    ),
    "no limit for the modifiers": (
        quits((75.0, 75.0), NOBODY, (600.0, 600.0), NOBODY),
        {},
        (32.00, 35.20, -25.60, -28.16),
    ),
}


@pytest.mark.parametrize(("played", "parameters", "gains"), WAGER_RULES.values(), ids=WAGER_RULES.keys())
def test_wager_follows_its_rules(played, parameters, gains):
    changes = wager.replay([played], state=ratings(100.00, 110.00, 80.00, 88.00), **parameters)
    assert tuple(gained(changes).values()) == pytest.approx(gains, abs=1e-9)


# Parameter, gain of the two of A's team, loss of the one on the other
UNEVEN = [("total", 2.50, -2.50), ("mean", 5.00, -5.00)]


@pytest.mark.parametrize(("uneven", "gain", "loss"), UNEVEN)
def test_wager_divides_times_by_the_teams_sizes_only_where_asked(uneven, gain, loss):
    two = [SlowPlayer(name, seconds=600.0) for name in "AB"]
    played = slow_match(team(1, *two), team(2, SlowPlayer("C", seconds=600.0)))
    changes = wager.replay([played], state=ratings(100.00, 100.00, 100.00), uneven=uneven)
    assert gained(changes) == {"A": gain, "B": gain, "C": loss}


def test_wager_refuses_a_rank_that_is_too_high_to_be_exact():
    with pytest.raises(OverflowError, match="A"):
        wager.replay([duel()], state=ratings(9e11, 9e11))


# --- Section 2: scorefactor


def test_scorefactor_duels_go_by_the_result_alone():
    established = ratings(450, 350, games=40)
    won = scorefactor.replay([duel(AHEAD, seconds=(600.0, 600.0))], state=established)
    lost = scorefactor.replay([duel(BEHIND, seconds=(600.0, 600.0))], state=established)
    assert tuple(gained(won).values()) == close(14.3974, -14.3974, digits=4)
    assert tuple(gained(lost).values()) == close(-25.6026, 25.6026, digits=4)


def test_a_newcomer_who_beats_a_newcomer_has_200_and_the_other_the_floor():
    assert after(scorefactor.replay([duel(seconds=(600.0, 600.0))])) == {"A": 200.0, "B": 100.0}


def free_for_all():
    scores = {"A": (30.0, 900.0), "B": (20.0, 600.0), "C": (-3.0, 450.0), "D": (25.0, 300.0)}
    players = [SlowPlayer(name, score=score, seconds=seconds) for name, (score, seconds) in scores.items()]
    sides = [team(place, player) for place, player in zip((1, 3, 4, 2), players, strict=True)]
    state = {
        "A": {"rating": 300, "games": 40},
        "B": {"rating": 200, "games": 16},
        "C": {"rating": 100, "games": 0},
        "D": {"rating": 500, "games": 50},
    }
    return slow_match(*sides, duration=900.0), state


def test_scorefactor_compares_everybody_who_played_long_enough():
    played, state = free_for_all()
    ranks = after(scorefactor.replay([played], state=state))
    assert (ranks["A"], ranks["B"]) == close(302.0038, 230.0000, digits=4)
    assert ranks["C"] == 100
    assert ranks["D"] == 500
    assert after(scorefactor.replay([played], state=state, **XONSTAT))["A"] == close(304.8051, digits=4)
    ranks = after(scorefactor.replay([played], state=state, summed=True))  # of three compared: twice as much
    assert (ranks["A"], ranks["B"]) == close(304.008, 260.000, digits=3)


def test_scorefactor_takes_the_longest_time_for_a_duration_that_was_not_recorded():
    played, state = free_for_all()
    unrecorded = SlowMatch(played.id, played.time, None, played.teams)
    assert scorefactor.replay([unrecorded], state=state) == scorefactor.replay([played], state=state)


# Games before, K
K_BY_GAMES = [(0, 200), (1, 195), (16, 120), (31, 45), (32, 40), (33, 40)]


@pytest.mark.parametrize(("games", "k"), K_BY_GAMES)
def test_scorefactor_k_falls_with_the_number_of_games(games, k):
    changes = scorefactor.replay([duel(seconds=(600.0, 600.0))], state=ratings(1000, 1000, games=games))
    assert gained(changes) == pytest.approx({"A": k / 2, "B": -k / 2})


# Seconds played, duration, K of a player with 32 games
K_BY_TIME = [
    (119.0, 200.0, 0),
    (120.0, 240.0, 8),
    (120.0, 241.0, 0),
    (300.0, 600.0, 20),
    (300.0, 601.0, 0),
    (600.0, 1200.0, 40),
    (600.0, 601.0, 40),
    (2000.0, 300.0, 20),  # nobody plays longer than the match
]


@pytest.mark.parametrize(("seconds", "duration", "k"), K_BY_TIME)
def test_scorefactor_k_grows_with_the_time_played(seconds, duration, k):
    played = duel(seconds=(seconds, seconds), duration=duration)
    changes = scorefactor.replay([played], state=ratings(1000, 1000, games=32))
    assert gained(changes) == pytest.approx({"A": k / 2, "B": -k / 2})


def test_scorefactor_counts_a_duel_without_times_in_full():
    assert gained(scorefactor.replay([duel()], state=ratings(1000, 1000, games=32))) == {"A": 20, "B": -20}


def test_scorefactor_adds_no_game_where_only_one_player_is_left_to_compare():
    short = duel(seconds=(600.0, 119.0), duration=600.0)
    changes = scorefactor.replay([short, duel(seconds=(600.0, 600.0))], state=ratings(1000, 1000))
    assert [change.after for change in changes] == [1000, 1000, 1100, 900]


def test_scorefactor_compares_team_mates_too():
    a, b, c = SlowPlayer("A", score=30.0), SlowPlayer("B", score=10.0), SlowPlayer("C", score=0.0)
    changes = scorefactor.replay([slow_match(team(2, a, b), team(1, c))], state=ratings(1000, 1000, 1000, games=32))
    # A: .75 and 1, B: .25 and 1, C: 0 and 0, each less .5, of K 40, over two.
    assert gained(changes) == pytest.approx({"A": 15, "B": 5, "C": -20})


def test_scorefactor_calls_two_rates_even_where_their_sum_is_nothing():
    a, b, c = (SlowPlayer(name, score=score) for name, score in zip("ABC", (-2.0, -2.0, 0.0), strict=True))
    changes = scorefactor.replay(
        [slow_match(team(2, a), team(2, b), team(1, c))], state=ratings(1000, 1000, 1000, games=32)
    )
    # A and B against each other: .5; against C: 0 of 2.
    assert gained(changes) == pytest.approx({"A": -10, "B": -10, "C": 20})


def test_xonstat_spares_the_favourite_of_a_drawn_duel():
    e = 1 / (1 + 10 ** (-100 / 400))
    drawn = duel(LEVEL, seconds=(600.0, 600.0))
    state = ratings(450, 350, games=40)
    assert gained(scorefactor.replay([drawn], state=state)) == pytest.approx({"A": 40 * (0.5 - e), "B": 40 * (e - 0.5)})
    assert gained(scorefactor.replay([drawn], state=state, **XONSTAT)) == pytest.approx({"A": 0, "B": 40 * (e - 0.5)})


# Whole days idle, points lost
ROT = [(30, 0), (31, 1), (37, 7), (38, 7 + 2), (60, 80), (90, 288)]


@pytest.mark.parametrize(("days", "lost"), ROT)
def test_scorefactor_rot_is_taken_off_before_the_odds_and_the_match(days, lost):
    state = {"A": {"rating": 500, "games": 40, "last_played": 0.0}, "B": {"rating": 500 - lost, "games": 40}}
    played = duel(time=days * DAY, seconds=(600.0, 600.0))
    changes = scorefactor.replay([played], state=state, inactivity_rot=True)
    assert after(changes) == pytest.approx({"A": 500 - lost + 20, "B": 500 - lost - 20})
    assert expected_by_player(changes) == {"A": 0.5, "B": 0.5}
    assert changes[0].before == 500


def test_scorefactor_rot_counts_from_the_last_match_of_each_player():
    state = ratings(500, 500, games=40) | {"C": {"rating": 520 - 80, "games": 40}}
    times = (600.0, 600.0)
    first = duel(time=10 * DAY, seconds=times)
    a, c = (SlowPlayer(name, seconds=600.0) for name in "AC")
    second = slow_match(team(1, a), team(2, c), time=70 * DAY + 3600)
    changes = scorefactor.replay([first, second], state=state, inactivity_rot=True)
    assert [change.after for change in changes] == pytest.approx([520, 480, 460, 420])


def test_scorefactor_rot_ends_at_the_floor_and_waits_where_a_player_is_left_out():
    state = {"A": {"rating": 150, "games": 40, "last_played": 0.0}, "B": {"rating": 100, "games": 40}}
    short = duel(time=80 * DAY, seconds=(119.0, 600.0))
    full = duel(time=90 * DAY, seconds=(600.0, 600.0))
    changes = scorefactor.replay([short, full], state=state, inactivity_rot=True)
    assert [change.after for change in changes] == [150, 100, 120, 100]
    assert [change.expected for change in changes] == [0.5] * 4


def test_scorefactor_expects_the_mean_over_rival_teams_of_the_mean_over_pairs_of_players():
    a, b, c, d = (SlowPlayer(name, score=1.0) for name in "ABCD")
    played = slow_match(team(1, a), team(2, b, c), team(3, d))
    odds = expected_by_player(scorefactor.replay([played], state=ratings(500, 100, 300, 1000)))

    def e(d):
        return 1 / (1 + 10 ** (-d / 400))

    assert odds["A"] == pytest.approx(((e(400) + e(200)) / 2 + e(-400)) / 2)
    assert odds["B"] == pytest.approx(((e(-400) + e(-200)) / 2 + e(-400)) / 2)
    assert odds["D"] == pytest.approx((e(400) + e(400)) / 2)


# --- Section 3: prav


def beliefs(**means):
    return {name: {"mean": value} for name, value in means.items()}


def mean_and_volatility(matches, player, **parameters):
    """R and V of a player in the end, worked back from what is shown in the two ways."""
    plain = {"shift": 0.0, "scale": 1.0, "gain": 2.0, **parameters}
    mean = after(prav.replay(matches, display="mean", **plain))[player]
    conservative = after(prav.replay(matches, display="conservative", **plain))[player]
    return mean, ((mean - conservative) / 2) ** 2


def test_prav_expects_by_the_sums_of_means_and_volatilities():
    five = slow_match(team(1, *"ABCDE"), team(2, *"FGHIJ"))
    odds = expected_by_player(prav.replay([five], state=beliefs(A=0.5, B=0.2, C=0, D=-0.1, E=0.4)))
    assert (odds["A"], odds["F"]) == close(0.624085, 1 - 0.624085, digits=6)


# Volatility of A, of B, expected score of A, one better
PRAV_ODDS = [(1.0, 1.0, 0.760250), (4.0, 1.0, 0.672640)]


@pytest.mark.parametrize(("v_a", "v_b", "odds"), PRAV_ODDS)
def test_prav_odds_are_closer_where_the_volatility_is_larger(v_a, v_b, odds):
    state = {"A": {"mean": 1.0, "volatility": v_a}, "B": {"mean": 0.0, "volatility": v_b}}
    assert expected_by_player(prav.replay([duel()], state=state))["A"] == close(odds, digits=6)


# Places, team scores, performance of A, outcome S of A
SHARES = [
    (AHEAD, (13, 7), None, 0.65),
    (AHEAD, (13, 2), None, 0.8667),
    (AHEAD, (13, 7), 0.5, 0.825),
    (AHEAD, (13, 7), -0.5, 0.575),
    (BEHIND, (7, 13), 0.5, 0.425),
    (BEHIND, (7, 13), -0.5, 0.175),
    (AHEAD, (13, 7), 1.0, 1.0),
    (AHEAD, (13, 7), -1.0, 0.5),
    (BEHIND, (7, 13), 1.0, 0.5),
    (BEHIND, (7, 13), -1.0, 0.0),
    (AHEAD, (13, 7), 0.0, 0.65),
    (LEVEL, (9, 9), 0.7, 0.5),
    # Where share and place disagree, the result counts.
    (AHEAD, (7, 13), None, 1.0),
    (BEHIND, (13, 7), None, 0.0),
    (AHEAD, (10, 10), None, 1.0),
    (LEVEL, (13, 7), None, 0.5),
    (AHEAD, (0, 0), None, 1.0),
    (AHEAD, (13, None), None, 1.0),
]


@pytest.mark.parametrize(("places", "scores", "performance", "s"), SHARES)
def test_prav_outcomes_are_shares_adjusted_by_performance(places, scores, performance, s):
    a = SlowPlayer("A", performance=performance)
    played = slow_match(team(places[0], a, score=scores[0]), team(places[1], "B", score=scores[1]))
    changes = prav.replay([played], outcome="share", shift=0.0, scale=1.0, gain=2.0)
    # Between newcomers Y = .5 and R' = 2 (S - .5).
    assert changes[0].after / 2 + 0.5 == close(s, digits=4)


# Places, performance of A, outcome S of A
RESULTS = [(AHEAD, None, 1.0), (AHEAD, -1.0, 0.5), (AHEAD, 0.5, 1.0), (BEHIND, 0.5, 0.25), (LEVEL, -0.5, 0.5)]


@pytest.mark.parametrize(("places", "performance", "s"), RESULTS)
def test_prav_outcomes_are_results_unless_shares_are_asked_for(places, performance, s):
    a = SlowPlayer("A", performance=performance)
    played = slow_match(team(places[0], a, score=13), team(places[1], "B", score=7))
    assert prav.replay([played], shift=0.0, scale=1.0, gain=2.0)[0].after == pytest.approx(2 * (s - 0.5))


def test_prav_shows_1500_and_200_for_each_deviation_by_default():
    assert after(prav.replay([duel()])) == {"A": 1550, "B": 1450}  # half a deviation for half a surprise
    assert after(prav.replay([duel()], gain=2.0)) == {"A": 1700, "B": 1300}
    lower = after(prav.replay([duel()], gain=2.0, display="conservative"))
    assert lower["A"] == pytest.approx(1500 + 200 * (1 - 2 * math.sqrt(0.9)))


def test_prav_judges_the_first_win_again_after_the_second():
    first = duel()
    second = slow_match(team(1, "A"), team(2, "C"), name="2")
    assert mean_and_volatility([first], "A") == pytest.approx((1.0, 0.9))
    assert expected_by_player(prav.replay([first, second], gain=2.0))["A"] == close(0.765920, digits=6)
    mean, volatility = mean_and_volatility([first, second], "A")
    assert mean == close(1.444135, digits=6)
    assert volatility == pytest.approx(0.8)


# Outcomes of the last games, the tenth of them a win still to be played
WINDOWS = [
    [1, 1, 0, 1, 0, 1, 1, 0, 1],
    [0, 1, 1, 0, 1, 0, 1, 1, 0, 1],  # the oldest of ten, a loss, drops out
]


def test_prav_judges_as_many_games_as_the_window_has():
    """Of two wins and a loss in windows of one, two and three games against equals: S and V by hand."""
    games = [slow_match(team(1, "A"), team(2, "B"), name="1"), slow_match(team(1, "A"), team(2, "C"), name="2")]
    games.append(slow_match(team(1, "D"), team(2, "A"), name="3"))
    window = {"start_volatility": 1.0, "gain": 0.0}  # R stays 0, so that Y is 1/2
    assert mean_and_volatility(games, "A", window=1, **window) == pytest.approx((0.0, 4 * 0.05))  # the loss alone
    assert mean_and_volatility(games, "A", window=2, **window) == pytest.approx((0.0, 4 / 4))  # a win and the loss
    assert mean_and_volatility(games, "A", window=3, **window) == pytest.approx((0.0, 4 * 2 / 9))
    moved = mean_and_volatility(games[:1], "A", window=1, gain=1.0)
    assert moved == pytest.approx((0.5, 4 * 0.05))


@pytest.mark.parametrize("outcomes", WINDOWS)
def test_prav_judges_seven_wins_and_three_losses_by_the_last_ten_games(outcomes):
    window = [(outcome, 0.0, 0.0, 1.0) for outcome in outcomes]
    state = {"A": {"mean": 0.0, "volatility": 1.0, "window": window}}
    assert mean_and_volatility([duel()], "A", state=state) == pytest.approx((0.4, 0.84))


# Parameters, R' of A
FIVES = [({"share_gain": False}, 0.949515), ({}, 0.269903), ({"gain": 1.0}, 0.184952)]


@pytest.mark.parametrize(("parameters", "mean"), FIVES)
def test_prav_shares_the_gain_over_the_team(parameters, mean):
    five = slow_match(team(1, *"ABCDE"), team(2, *"FGHIJ"))
    state = beliefs(A=0.1, B=0.5, C=0.3, D=0.6, E=-0.2, F=0.9, G=-0.2)
    assert expected_by_player(prav.replay([five], state=state))["A"] == close(0.575242, digits=6)
    new_mean, volatility = mean_and_volatility([five], "A", state=state, **parameters)
    assert new_mean == close(mean, digits=6)
    assert volatility == pytest.approx(0.9)


def test_prav_volatility_has_a_floor_of_a_twentieth_of_c():
    state = {"A": {"window": [(1, 0.0, 0.0, 1.0)] * 10}}
    assert mean_and_volatility([duel()], "A", state=state)[1] == pytest.approx(0.2)


def test_prav_takes_several_rivals_for_one_average_team():
    state = beliefs(A=0.3, B=-0.1, C=0.4, D=0.2, E=0.5)
    played = slow_match(team(2, "A", "B"), team(1, "C"), team(3, "D", "E"))
    changes = prav.replay([played], state=state, shift=0.0, scale=1.0, gain=2.0)

    def phi(x):
        return (1 + math.erf(x / math.sqrt(2))) / 2

    # A and B, sum .2, against C (.4) and D and E (.7): S (0 + 1)/2, rivals .55 with variance 1.5, B -.1 with 1.
    y = phi((-0.1 + 0.3 - 0.55) / math.sqrt(1 + 1.5 + 1))
    assert changes[0].after == pytest.approx(0.3 + 2 / 2 * (0.5 - y))
    assert changes[0].expected == pytest.approx((phi(-0.2 / math.sqrt(3)) + phi(-0.5 / math.sqrt(4))) / 2)
    # C: S 1, rivals (.2 + .7)/2 with variance 2.
    assert changes[2].after == pytest.approx(0.4 + 2 * (1 - phi((0.4 - 0.45) / math.sqrt(2 + 1))))


# --- Section 4: battlepoints

# Ratings of A and B, places, team scores, parameters, ratings after, digits
BATTLES = [
    (1000, 1000, AHEAD, (None, None), {}, (1016, 984), 9),
    (1000, 1000, AHEAD, (5, 0), {}, (1019.2, 980.8), 9),
    (1250, 1274, AHEAD, (5, 1), {}, (1264.9656, 1259.0344), 4),
    (1250, 1274, AHEAD, (5, 0), {}, (1272.4483, 1251.5517), 4),
    (1197, 1215, AHEAD, (None, None), {}, (1213.8282, 1200.2753), 4),
    (705, 701, AHEAD, (None, None), {}, (720.8158, 700), 4),
    (1197, 1215, LEVEL, (3, 3), {}, (1197.8282, 1214.2753), 4),
    (1197, 1215, LEVEL, (5, 0), {}, (1197.8282, 1214.2753), 4),
    (1250, 1274, AHEAD, (5, 0), APP, (1267, 1256), 9),
    (1250, 1274, BEHIND, (0, 5), APP, (1235, 1288), 9),
    (705, 701, AHEAD, (None, None), APP, (720, 700), 9),
    # Lopsided goes by scores and place together: nobody scored, or the scores say otherwise than the places.
    (1000, 1000, AHEAD, (0, 0), {}, (1016, 984), 9),
    (1000, 1000, AHEAD, (0, 5), {}, (1016, 984), 9),
    # A margin takes the place of the shut-out.
    (1000, 1000, AHEAD, (9, 4), {"lopsided_margin": 5}, (1019.2, 980.8), 9),
    (1000, 1000, AHEAD, (9, 5), {"lopsided_margin": 5}, (1016, 984), 9),
    (1000, 1000, AHEAD, (3, 0), {"lopsided_margin": 5}, (1016, 984), 9),
    # Without "/400" the formula is a step.
    (1000, 2000, AHEAD, (None, None), {"scale": 1.0}, (1032, 1976), 9),
]


@pytest.mark.parametrize(("a", "b", "places", "scores", "parameters", "new", "digits"), BATTLES)
def test_battles_end_at_the_printed_ratings(a, b, places, scores, parameters, new, digits):
    changes = battlepoints.replay([duel(places, scores)], state=ratings(a, b), **parameters)
    assert tuple(after(changes).values()) == close(*new, digits=digits)


def test_battlepoints_counts_the_first_games_of_a_player_where_asked():
    """1000 beats 1000 by half of K: 64 in the first match of both, 32 in the second of A against a newcomer."""
    games = [duel(name="1"), slow_match(team(1, "A"), team(2, "C"), name="2")]
    found = battlepoints.replay(games, provisional_games=1)
    by = {(change.match_id, change.player): change.after - change.before for change in found}
    assert by["1", "A"] == 32.0
    e = 1 / (1 + 10 ** (-32 / 400))
    assert by["2", "A"] == pytest.approx(32 * (1 - e))
    assert by["2", "C"] == pytest.approx(-64 * (1 - e))


def test_battlepoints_newcomers_begin_at_a_thousand():
    assert after(battlepoints.replay([duel()])) == {"A": 1016, "B": 984}


# Own rating, K, M
BRACKETS = [
    (1200, 32, 1.2),
    (1200.99, 32, 1.2),
    (1201, 28, 1.5),
    (1500.5, 28, 1.5),
    (1501, 24, 1.8),
    (2000, 24, 1.8),
    (2001, 16, 2.1),
]


@pytest.mark.parametrize(("rating", "k", "m"), BRACKETS)
def test_brackets_end_just_before_the_next_whole_rating(rating, k, m):
    plain = battlepoints.replay([duel()], state=ratings(rating, rating))
    lopsided = battlepoints.replay([duel(scores=(5, 0))], state=ratings(rating, rating))
    assert gained(plain) == pytest.approx({"A": k / 2, "B": -k / 2})
    assert gained(lopsided) == pytest.approx({"A": k / 2 * m, "B": -k / 2 * m})


# Own rating, K in the published game code
APP_K = [(2100, 32), (2101, 24), (2400, 24), (2401, 10)]


@pytest.mark.parametrize(("rating", "k"), APP_K)
def test_the_published_game_code_has_brackets_of_its_own(rating, k):
    changes = battlepoints.replay([duel(scores=(5, 0))], state=ratings(rating, rating), **APP)
    assert gained(changes) == {"A": k / 2, "B": -k / 2}


def test_battlepoints_averages_over_rivals_with_their_means_and_multiplies_only_lopsided_pairs():
    # A (1600) and B (1100) made 5, C (1300) made 0, D (1000) made 3 and came first.
    played = slow_match(team(2, "A", "B", score=5), team(3, "C", score=0), team(1, "D", score=3))
    changes = battlepoints.replay([played], state=ratings(1600, 1100, 1300, 1000))

    def e(own, rival):
        return 1 / (1 + 10 ** ((rival - own) / 400))

    assert gained(changes) == pytest.approx(
        {
            "A": 24 * ((1 - e(1600, 1300)) * 1.8 + (0 - e(1600, 1000))) / 2,
            "B": 32 * ((1 - e(1100, 1300)) * 1.2 + (0 - e(1100, 1000))) / 2,
            "C": 28 * ((0 - e(1300, 1350)) * 1.5 + (0 - e(1300, 1000)) * 1.5) / 2,
            "D": 32 * ((1 - e(1000, 1350)) + (1 - e(1000, 1300)) * 1.2) / 2,
        }
    )
    assert expected_by_player(changes) == pytest.approx(
        {
            "A": (e(1350, 1300) + e(1350, 1000)) / 2,
            "B": (e(1350, 1300) + e(1350, 1000)) / 2,
            "C": (e(1300, 1350) + e(1300, 1000)) / 2,
            "D": (e(1000, 1350) + e(1000, 1300)) / 2,
        }
    )
