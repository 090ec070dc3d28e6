"""The advantage of the first-listed team, team-mates that count, and a sample of rivals, by formulas written out."""

import math
from datetime import datetime

import pytest

from evenmatch import Match, Rater, Team, rules
from package_systems import Fast
from random_matches import random_matches
from reference.model import SlowMatch, SlowPlayer, SlowTeam
from small_matches import AHEAD, BEHIND, LEVEL, after, beliefs, duel, expected_by_player, gained, ratings, slow_match

COMPARED = ("glicko", "glicko2", "elommr")
HOME = ("battlepoints", "elommr", "glicko", "prav", "scorefactor", "wager")
Q = math.log(10) / 400
WIDE = math.pi / math.sqrt(3)


def curve(points):
    return 1 / (1 + 10 ** (-points / 400))


def g(deviation):
    return 1 / math.sqrt(1 + 3 * (Q * deviation / math.pi) ** 2)


@pytest.mark.parametrize("name", COMPARED)
def test_without_team_mates_it_does_not_matter_who_is_compared(name):
    matches = [match for match in random_matches(name, 3) if all(len(team.players) == 1 for team in match.teams)]
    assert len(matches) > 100
    assert {len(match.teams) for match in matches} > {2, 3}
    assert Fast(name).replay(matches, compared_as="team") == Fast(name).replay(matches)


@pytest.mark.parametrize("name", COMPARED)
def test_who_wins_beside_a_stronger_player_gains_less_as_a_team_and_the_odds_stay(name):
    state = {player: {"rating": rating, "deviation": 100.0} for player, rating in (("A", 1500), ("B", 1900))}
    state |= {"C": {"rating": 1700.0, "deviation": 100.0}}
    if name == "elommr":
        for fields in state.values():
            fields |= {"normal_mean": fields["rating"], "normal_weight": 1e-4}
    played = [slow_match((1, "AB"), (2, "C"))]
    alone, together = (Fast(name).replay(played, state=state, compared_as=how) for how in ("player", "team"))
    assert expected_by_player(alone) == expected_by_player(together)
    assert gained(together)["A"] < gained(alone)["A"]
    assert gained(together)["B"] > gained(alone)["B"]
    assert gained(together)["C"] == gained(alone)["C"]


def test_glicko_compares_the_means_of_uneven_teams_and_three_sides():
    told = {"A": (1500.0, 80.0), "B": (1800.0, 200.0), "C": (1600.0, 60.0), "D": (1400.0, 150.0)}
    played = [slow_match((2, "AB"), (1, "C"), (2, "D"))]
    changes = Fast("glicko").replay(played, state=beliefs(**told), compared_as="team", advantage=30.0)
    mean = (1500 + 1800) / 2
    against = [(1600 - 30, 60.0, 0.0), (1400 - 30, 150.0, 0.5)]
    chances = [curve(g(spread) * (mean - rating)) for rating, spread, _ in against]
    pull = sum(g(spread) * (score - e) for (_, spread, score), e in zip(against, chances, strict=True))
    known = sum((Q * g(spread)) ** 2 * e * (1 - e) for (_, spread, _), e in zip(against, chances, strict=True))
    for player, deviation in (("A", 80.0), ("B", 200.0)):
        gain = Q / (1 / deviation**2 + known) * pull
        assert gained(changes)[player] == pytest.approx(gain, rel=1e-9)


@pytest.mark.parametrize("values", [{}, {"compared_as": "team"}, {"advantage": 80.0, "compared_as": "team"}])
def test_at_the_performance_of_elommr_the_result_was_to_be_expected(values):
    rater = Rater(rules("elommr", **values))
    for number, (first, second) in enumerate(("ab", "ac", "bc", "ad", "cd")):  # so that ratings and deviations differ
        rater.rate(
            Match(str(number), datetime(2026, 1, 1 + number), (Team.of(first, place=1), Team.of(second, place=2)))
        )
    teams = {"ab": 2, "c": 1, "d": 3}
    match = Match("last", datetime(2026, 2, 1), tuple(Team.of(*who, place=place) for who, place in teams.items()))
    receipt = rater.rate(match)
    rows = {row.player: row for team in receipt.teams for row in team}
    rating = {player: row.before for player, row in rows.items()}
    spread = {player: math.hypot(row.factors["deviation_before"], 200.0) for player, row in rows.items()}
    means = {who: sum(rating[player] for player in who) / len(who) for who in teams}
    width = {who: math.sqrt(sum(spread[player] ** 2 for player in who) / len(who)) for who in teams}
    home = values.get("advantage", 0.0)
    for index, (who, place) in enumerate(teams.items()):
        for player in who:
            x = rows[player].factors["performance"]
            w = WIDE / spread[player]
            total = w * (1 - 2 / (1 + math.exp(-w * (x - rating[player]))))  # a win and a loss against oneself
            level = x + (means[who] - rating[player] if values.get("compared_as") else 0.0)
            for other, (rival, finish) in enumerate(teams.items()):
                if rival != who:
                    w, lead = WIDE / width[rival], home if index == 0 else -home if other == 0 else 0.0
                    total += w * ((place < finish) - 1 / (1 + math.exp(-w * (level + lead - means[rival]))))
            assert total == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", HOME)
def test_the_advantage_is_the_first_teams_alone_and_makes_its_win_worth_less(name):
    values = {} if name == "wager" else {"start_mean": 0.0} if name == "prav" else {"start": 800.0}
    plain = {places: Fast(name).replay([duel(places)], **values) for places in (AHEAD, BEHIND)}
    home = {places: Fast(name).replay([duel(places)], advantage=40.0, **values) for places in (AHEAD, BEHIND)}
    assert expected_by_player(plain[AHEAD])["A"] == 0.5
    assert expected_by_player(home[AHEAD])["A"] > 0.5
    assert 0 < gained(home[AHEAD])["A"] < gained(plain[AHEAD])["A"]
    assert gained(home[BEHIND])["B"] > gained(plain[BEHIND])["B"]
    three = [slow_match((1, "A"), (2, "B"), (3, "C"))]
    if name not in ("wager", "scorefactor"):  # which rate two teams only, or by scores
        odds = expected_by_player(Fast(name).replay(three, advantage=40.0, **values))
        assert odds["A"] > 0.5 > odds["B"] == odds["C"]


def test_battle_points_of_uneven_teams_and_three_sides():
    state = ratings(1000.0, 1300.0, 1100.0, 900.0)
    changes = Fast("battlepoints").replay([slow_match((1, "AB"), (1, "C"), (2, "D"))], state=state, advantage=50.0)
    a = (0.5 - curve(1000 - 1100 + 50) + 1 - curve(1000 - 900 + 50)) / 2
    c = (0.5 - curve(1100 - 1150 - 50) + 1 - curve(1100 - 900)) / 2
    d = (0 - curve(900 - 1150 - 50) + 0 - curve(900 - 1100)) / 2
    assert [gained(changes)[player] for player in "ACD"] == pytest.approx([32 * a, 32 * c, 32 * d], rel=1e-12)
    assert expected_by_player(changes)["C"] == pytest.approx((curve(-100) + curve(200)) / 2)


def test_prav_adds_the_advantage_to_the_sum_of_the_first_team():
    def phi(x):
        return 0.5 * math.erfc(-x / math.sqrt(2))

    played = [slow_match((2, "AB"), (1, "C"), (3, "D"))]
    changes = Fast("prav").replay(played, advantage=60.0, share_gain=False)
    lead = 60.0 / 200.0  # points per unit of R
    assert expected_by_player(changes)["A"] == pytest.approx(phi(lead / math.sqrt(3)))
    assert expected_by_player(changes)["C"] == pytest.approx((phi(-lead / math.sqrt(3)) + 0.5) / 2)
    # one average rival, of which the first team is a half
    assert gained(changes)["A"] == pytest.approx(100 * (0.5 - phi(lead / math.sqrt(3))))
    assert gained(changes)["C"] == pytest.approx(100 * (1 - phi(-lead / 2 / math.sqrt(1 + 1.5))))


def test_scorefactor_gives_no_advantage_against_team_mates():
    a, b, c = (SlowPlayer(name, score=score) for name, score in (("A", 2.0), ("B", 1.0), ("C", 1.0)))
    played = [SlowMatch("m", 0.0, None, [SlowTeam(1, None, [a, b]), SlowTeam(2, None, [c])])]
    gain = gained(Fast("scorefactor").replay(played, start=500.0, advantage=100.0))
    assert gain["A"] == pytest.approx(200 * (2 / 3 - 0.5 + 2 / 3 - curve(100)) / 2)
    assert gain["B"] == pytest.approx(200 * (1 / 3 - 0.5 + 0.5 - curve(100)) / 2)
    assert gain["C"] == pytest.approx(200 * (1 / 3 - curve(-100) + 0.5 - curve(-100)) / 2)


# rank of both, percent, places, ranks after
WAGERED = [(AHEAD, 10.40, 9.60), (BEHIND, 9.38, 10.63), (LEVEL, 10.00, 10.63)]


@pytest.mark.parametrize(("places", "a", "b"), WAGERED)
def test_wager_counts_the_first_teams_mean_rank_for_more(places, a, b):
    changes = Fast("wager").replay([duel(places)], state=ratings(10.0, 10.0), advantage=25.0)
    assert after(changes) == {"A": a, "B": b}
    assert expected_by_player(changes)["A"] == pytest.approx(12.5**2 / (12.5**2 + 10**2), rel=1e-14)


@pytest.mark.parametrize("most", [1, 3, 7, 18, 19])
def test_a_sample_of_rivals_is_even_and_says_about_what_all_of_them_say(most):
    field = "ABCDEFGHIJKLMNOPQRST"
    played = [slow_match(*((place, name) for place, name in enumerate(field, 1)))]
    every = after(Fast("elommr").replay(played))
    sample = after(Fast("elommr").replay(played, rivals=most))
    order = [sample[name] for name in field]
    assert order == sorted(order, reverse=True)
    if most >= len(field) - 1:
        assert sample == every
    else:
        assert sample != every
        assert sum(abs(sample[name] - every[name]) for name in field) / len(field) < 400 / most
