"""What the matchmaker prefers, and the rules that hold for a whole match: each worked by hand."""

import math

import numpy as np
import pytest

from evenmatch.errors import BadParameterError
from evenmatch.matchmaking import Met, Policy
from matchmaking.sample_tickets import NOW, SECOND, matched_tickets, party, plain_policy, proposed, solo

STRICT = {"within": 30.0, "loose": False}


def costs(found, name):
    return [match.costs[name] for match in found]


# Seconds that a party of two and two single players have waited, and whether they meet (party_wait 5)
UNLIKE = [(0, False), (4.999, False), (5, True), (60, True)]


@pytest.mark.parametrize(("waited", "expected"), UNLIKE)
def test_a_party_meets_single_players_only_after_waiting_for_another_party(waited, expected):
    tickets = [party(1, [50, 50], waited=waited), solo(2, 50), solo(3, 50)]
    policy = plain_policy(team_size=2, party_wait=5)
    assert matched_tickets(tickets, policy) == ([[1, 2, 3]] if expected else [])
    found = proposed(tickets, policy)
    assert costs(found, "parties") == ([5.0] if expected else [])  # a party of 2 against one of 1: a difference of 1


def test_parties_of_like_size_meet_at_once_although_others_are_closer_and_older():
    tickets = [
        party(1, [50, 50], waited=100, **STRICT),
        solo(2, 50, waited=90, **STRICT),
        solo(3, 50, waited=90, **STRICT),
        party(4, [54, 54], **STRICT),
    ]
    policy = plain_policy(team_size=2, party_wait=5)
    assert matched_tickets(tickets, policy) == [[1, 4]]
    assert costs(proposed(tickets, policy), "parties") == [0.0]


def test_parties_of_unlike_sizes_are_told_by_the_difference_of_their_largest():
    """Three players and one against four alone: 3 - 1, at 5 seconds each."""
    tickets = [party(1, [50, 50, 50], waited=99), *(solo(at, 50, waited=99) for at in range(2, 7))]
    found = proposed(tickets, plain_policy(team_size=4, party_wait=5))
    assert costs(found, "parties") == [10.0]


# Seconds that a newcomer and another have waited, and whether they meet (newcomer_wait 20)
NEWCOMERS = [(0, 0, False), (19.999, 19.999, False), (20, 0, True), (0, 20, True)]


@pytest.mark.parametrize(("newcomers", "others", "expected"), NEWCOMERS)
def test_newcomers_are_among_themselves_for_a_while(newcomers, others, expected):
    tickets = [solo(1, 50, waited=newcomers, newcomer=True), solo(2, 50, waited=others)]
    policy = plain_policy(newcomer_wait=20)
    assert matched_tickets(tickets, policy) == ([[1, 2]] if expected else [])
    assert costs(proposed(tickets, policy), "newcomers") == ([20.0] if expected else [])


# Seconds since two players met, what it is worth that they do not meet again (rematch_wait 30, rematch_fade 1800)
REMATCHES = [(0, 30), (180, 27), (900, 15), (1350, 7.5), (1620, 3), (1800, 0), (9999, 0), (-50, 30)]


@pytest.mark.parametrize(("ago", "worth"), REMATCHES)
@pytest.mark.parametrize("told_by", [1, 2])
def test_a_rematch_is_worth_less_the_longer_ago_they_met_whoever_remembers(ago, worth, told_by):
    def pair(waited):
        return [
            solo(
                at,
                50,
                waited=waited if at == 1 else 0,
                met=(Met(3 - at, NOW - ago * SECOND), Met(77, NOW)) if at == told_by else (),
            )
            for at in (1, 2)
        ]

    policy = plain_policy(rematch_wait=30, rematch_fade=1800)
    if worth:
        assert matched_tickets(pair(worth - 1e-3), policy) == []
    assert matched_tickets(pair(worth + 1e-3), policy) == [[1, 2]]
    assert costs(proposed(pair(worth + 1e-3), policy), "rematch") == [pytest.approx(worth)]


def test_somebody_new_is_met_rather_than_somebody_of_a_minute_ago():
    tickets = [solo(1, 50, met=(Met(2, NOW - 60 * SECOND),)), solo(2, 50.1), solo(3, 51.5)]
    assert matched_tickets(tickets, plain_policy(rematch_wait=30)) == [
        [2, 3]
    ]  # 50.1 and 51.5 are closer than 50 and 51.5
    assert matched_tickets(tickets, plain_policy(rematch_wait=0)) == [[1, 2]]


# Whom the first avoids, whom the second avoids; whether they meet, however long they wait
AVOIDED = [((), (), True), ((2,), (), False), ((), (1,), False), ((3,), (3,), True)]


@pytest.mark.parametrize(("first", "other", "expected"), AVOIDED)
def test_avoided_players_never_meet_whichever_side_avoids(first, other, expected):
    pair = [solo(1, 50, waited=1e6, avoid=first), solo(2, 50, waited=1e6, avoid=other)]
    assert matched_tickets(pair, plain_policy(overdue_after=10)) == ([[1, 2]] if expected else [])


def test_avoided_players_are_not_team_mates_either():
    tickets = [solo(1, 50, avoid=(4,)), solo(2, 50), solo(3, 50), solo(4, 50)]
    assert matched_tickets(tickets, plain_policy(team_size=2)) == []
    assert matched_tickets([*tickets, solo(5, 50)], plain_policy(team_size=2)) in ([[1, 2, 3, 5]], [[2, 3, 4, 5]])


def test_a_match_inside_the_chosen_width_goes_before_a_closer_one_that_is_only_allowed_by_waiting():
    """49 and 53 chose it so; 52.9 reaches 53 only because it has waited."""
    tickets = [
        solo(1, 49, within=5.0, loose=False),
        solo(2, 53, within=5.0, loose=False),
        solo(3, 52.9, within=0.05, waited=60),
    ]
    policy = plain_policy(even_spread=4.5)
    assert matched_tickets(tickets, policy) == [[1, 2]]
    assert matched_tickets(tickets[1:], policy) == [[2, 3]]


def test_the_closest_match_goes_first():
    tickets = [solo(1, 50), solo(2, 51.8), solo(3, 52), solo(4, 53.9)]
    assert matched_tickets(tickets, plain_policy(spread_cost=1)) == [[1, 2], [3, 4]]  # as many as possible
    assert matched_tickets(tickets, plain_policy(spread_cost=60)) == [[2, 3]]  # e^-0.2 is more than e^-1.8 + e^-1.9
    assert matched_tickets(tickets[:3], plain_policy()) == [[2, 3]]
    assert matched_tickets(tickets[1:], plain_policy()) == [[2, 3]]


def test_most_matches_are_made_and_not_the_best_one_first():
    """The closest pair in the middle would leave the two outside alone."""
    tickets = [solo(at, percentile, within=1.0) for at, percentile in enumerate((50, 51, 51.25, 52.25))]
    assert matched_tickets(tickets, plain_policy(steps=((0, 1),))) == [[0, 1], [2, 3]]


# Pings of two players (eu, us, asia; None: not told), where they play and the worst ping there
REGIONS = [
    ((20, 30, None), (90, 40, None), ("us", 40)),
    ((20, 30, None), (25, 40, None), ("eu", 25)),
    ((20, 40, None), (40, 20, None), ("eu", 40)),  # of equals the first by name
    ((20, 40, 40), (40, 20, 10), ("asia", 40)),
    ((5, 30, None), (None, 40, 1), ("us", 40)),  # only there both can play
    ((5, None, None), (None, 40, 1), None),
    ((None, None, None), (None, 40, 41), ("us", 40)),  # who told none plays anywhere
]


@pytest.mark.parametrize(("one", "other", "expected"), REGIONS)
def test_a_match_is_played_where_the_worst_ping_is_least(one, other, expected):
    tickets = [
        solo(at, 50, ping={name: float(ping) for name, ping in zip(("eu", "us", "asia"), pings, strict=True) if ping})
        for at, pings in ((1, one), (2, other))
    ]
    for order in (tickets, tickets[::-1]):
        found = proposed(order, plain_policy())
        assert [(match.region, match.ping) for match in found] == ([] if expected is None else [expected])


# Ping limits of the two players and of the policy, with pings eu 20 and 90, us 60 and 50; where they play
LIMITS = [
    (1e9, 1e9, None, "us"),
    (59, 1e9, None, "eu"),
    (60, 1e9, None, "us"),
    (59, 89, None, None),
    (1e9, 1e9, 60, "us"),
    (1e9, 1e9, 59, None),
    (1e9, 1e9, 90, "us"),
    (59, 1e9, 89, None),
    (59, 1e9, 90, "eu"),
]


@pytest.mark.parametrize(("first", "other", "most", "expected"), LIMITS)
def test_no_ping_limit_is_broken(first, other, most, expected):
    tickets = [
        solo(1, 50, ping={"eu": 20.0, "us": 60.0}, max_ping=first),
        solo(2, 50, ping={"eu": 90.0, "us": 50.0}, max_ping=other),
    ]
    found = proposed(tickets, plain_policy(max_ping=most))
    assert [match.region for match in found] == ([] if expected is None else [expected])


@pytest.mark.parametrize("pings", [{"eu": 200.0}, {"eu": 200.0, "us": 300.0}])
def test_a_player_too_far_from_every_region_is_in_no_match(pings):
    tickets = [solo(1, 50, ping=pings), solo(2, 50, ping={"eu": 20.0})]
    assert matched_tickets(tickets, plain_policy(max_ping=199)) == []
    assert matched_tickets(tickets, plain_policy(max_ping=200)) == [[1, 2]]
    assert matched_tickets([*tickets, solo(3, 50, ping={"eu": 30.0})], plain_policy(max_ping=199)) == [[2, 3]]
    assert (
        matched_tickets([solo(1, 50, waited=999, ping=pings), tickets[1]], plain_policy(max_ping=199, overdue_after=10))
        == []
    )


@pytest.mark.parametrize("overdue", [0.0, None])
def test_where_nobody_is_near_enough_to_any_region_only_those_meet_who_play_anywhere(overdue):
    policy = plain_policy(max_ping=100, overdue_after=overdue)
    far = [solo(at, 50, ping={"eu": 200.0}) for at in (1, 2)]
    assert matched_tickets(far, policy) == []
    assert matched_tickets([*far, solo(3, 50)], policy) == []
    found = proposed([*far, solo(3, 50), solo(4, 50)], policy)
    assert [(sorted(match.tickets), match.region, match.ping) for match in found] == [([3, 4], None, 0.0)]


def test_matches_at_home_go_before_closer_ones_elsewhere():
    """1 and 3 are at home in eu; 2 is closer to 1, but at home in us."""
    tickets = [
        solo(1, 50, ping={"eu": 20.0, "us": 80.0}),
        solo(2, 50.1, ping={"eu": 80.0, "us": 20.0}),
        solo(3, 51.9, ping={"eu": 20.0, "us": 80.0}),
    ]
    found = proposed(tickets, plain_policy())
    assert [(sorted(match.tickets), match.region, match.ping) for match in found] == [([1, 3], "eu", 20.0)]
    found = proposed(tickets[:2], plain_policy())
    assert [(sorted(match.tickets), match.region, match.ping) for match in found] == [([1, 2], "eu", 80.0)]


# Seconds waited by four players for whom 3 against 3 is full and 2 against 2 the least (smaller_after 120)
SMALLER = [((120, 120, 120, 120), True), ((119.999, 120, 120, 500), False), ((500, 500, 500, 500), True)]


@pytest.mark.parametrize(("waited", "expected"), SMALLER)
def test_smaller_teams_are_made_only_when_all_of_them_have_waited(waited, expected):
    tickets = [solo(at, 50, waited=one) for at, one in enumerate(waited)]
    policy = plain_policy(team_size=3, min_team_size=2)
    assert matched_tickets(tickets, policy) == ([[0, 1, 2, 3]] if expected else [])
    assert matched_tickets(tickets, plain_policy(team_size=3)) == []
    assert matched_tickets(tickets[:3], policy) == []
    if expected:
        assert [len(team) for team in proposed(tickets, policy)[0].players] == [2, 2]


def test_full_teams_go_before_smaller_ones_and_larger_before_the_smallest():
    tickets = [solo(at, 50, waited=200) for at in range(11)]
    policy = plain_policy(team_size=3, min_team_size=1)
    found = proposed(tickets, policy)
    assert sorted(len(match.tickets) for match in found) == [4, 6]  # 3 + 3, 2 + 2, and one is left
    parties = [party(1, [50, 50, 50], waited=200), *(solo(at, 50, waited=200) for at in range(2, 4))]
    assert matched_tickets(parties, policy) == [[2, 3]]  # a party of three is never in a team of one


TANK, HEALER, EITHER, ANY, SCOUT = ("tank",), ("healer",), ("healer", "tank"), (), ("scout",)

# What four players offer where each team of two needs a tank and a healer; what they are asked to play, or no match
ASKED = [
    ((TANK, HEALER, TANK, HEALER), "tank healer tank healer"),
    ((TANK, EITHER, HEALER, HEALER), "tank tank healer healer"),
    ((EITHER, EITHER, TANK, TANK), "healer healer tank tank"),
    ((ANY, TANK, ANY, TANK), "healer tank healer tank"),
    ((TANK, TANK, TANK, HEALER), None),
    ((HEALER, HEALER, HEALER, TANK), None),
    ((SCOUT, TANK, HEALER, EITHER), None),  # nobody needs a scout, and no seat is free
]


@pytest.mark.parametrize(("offers", "expected"), ASKED)
def test_each_team_covers_its_roles_with_what_its_players_offer(offers, expected):
    tickets = [solo(at, 50, roles=offer) for at, offer in enumerate(offers)]
    found = list(proposed(tickets, plain_policy(team_size=2, roles={"tank": 1, "healer": 1})))
    assert len(found) == (expected is not None)
    for match in found:
        assert all(sorted(match.roles[one] for one in team) == ["healer", "tank"] for team in match.players)
        assert [match.roles[one] for one in range(4)] == expected.split()


def test_a_party_that_cannot_cover_the_roles_of_its_team_is_in_no_match():
    both, mixed = party(1, [50, 50], roles=TANK), party(2, [50, 50], roles=EITHER)
    policy = plain_policy(team_size=2, roles={"tank": 1, "healer": 1})
    assert matched_tickets([both, mixed], policy) == []
    assert matched_tickets([party(3, [50, 50], roles=EITHER), mixed], policy) == [[2, 3]]
    assert matched_tickets([both, mixed], plain_policy(team_size=2, roles={"tank": 1})) == [[1, 2]]


# Seconds waited where tickets are given up after 100: whether it is given up
GIVEN_UP = [(99.999, False), (100, True), (500, True), (-10, False)]


@pytest.mark.parametrize(("waited", "expected"), GIVEN_UP)
def test_a_player_who_has_waited_too_long_is_listed_and_in_no_match(waited, expected):
    found = proposed([solo(2, 50), solo(1, 50, waited=waited)], plain_policy(max_wait=100))
    assert found.expired.tolist() == ([1] if expected else [])
    assert len(found) == (0 if expected else 1)


def test_a_free_for_all_has_as_many_teams_as_players():
    tickets = [solo(at, 50, rating=rating) for at, rating in enumerate((1500.0, 1500.0, 1560.0, 1500.0))]
    policy = plain_policy(teams=4, max_odds=0.6)
    match = proposed(tickets, policy)[0]
    assert sorted(match.teams) == [(0,), (1,), (2,), (3,)]
    assert match.odds == pytest.approx(1 / (1 + 10 ** (-60 / 400)))  # the strongest against the weakest
    assert matched_tickets(tickets[:3], policy) == []
    assert matched_tickets([*tickets[:2], *(solo(at, 50, rating=1600.0) for at in (7, 8))], policy) == []


def test_three_teams_are_full_and_their_odds_are_of_the_extremes():
    ratings = (1500.0, 1510.0, 1520.0, 1530.0, 1540.0, 1550.0)
    match = proposed([solo(at, 50, rating=one) for at, one in enumerate(ratings)], plain_policy(team_size=2, teams=3))[
        0
    ]
    assert [len(team) for team in match.teams] == [2, 2, 2]
    assert sorted(match.tickets) == list(range(6))
    assert match.odds == pytest.approx(0.5)  # 1500 + 1550, 1510 + 1540, 1520 + 1530


# Ratings of two players, cap on the odds, whether they meet: 10 ** (gap / 400) = 1.5 at a gap of 70.44
ODDS = [
    (1570, 0.6, True),
    (1571, 0.6, False),
    (1429, 0.6, False),
    (1571, None, True),
    (1500, 0.5, True),
    (1500.1, 0.5, False),
    (9999, 1.0, True),
]


@pytest.mark.parametrize(("rating", "most", "expected"), ODDS)
def test_no_match_is_more_uneven_than_the_cap(rating, most, expected):
    pair = [solo(1, 50, waited=1e5), solo(2, 50, rating=float(rating), waited=1e5)]
    for overdue in (10.0, None):
        found = proposed(pair, plain_policy(max_odds=most, overdue_after=overdue))
        assert len(found) == expected
        for match in found:
            gap = 1500 - rating if match.teams[0] == (1,) else rating - 1500
            assert match.odds == pytest.approx(1 / (1 + 10 ** (-gap / 400)))
            assert match.costs["odds"] == pytest.approx(200 * abs(match.odds - 0.5))


def test_somebody_beyond_the_cap_between_two_does_not_keep_them_apart():
    tickets = [solo(1, 50), solo(2, 50.1, rating=1900.0), solo(3, 50.2, rating=1510.0)]
    assert matched_tickets(tickets, plain_policy(max_odds=0.6)) == [[1, 3]]


# Ratings of two players, cap on the spread of ratings, whether they meet
SPREADS = [(1600, 100, True), (1600.001, 100, False), (1399.999, 100, False), (1500, 0, True), (9999, None, True)]


@pytest.mark.parametrize(("rating", "most", "expected"), SPREADS)
def test_ratings_are_no_further_apart_than_the_cap(rating, most, expected):
    pair = [solo(1, 50, waited=1e5), solo(2, 50, rating=float(rating), waited=1e5)]
    for overdue in (10.0, None):
        found = proposed(pair, plain_policy(max_rating_spread=most, overdue_after=overdue))
        assert len(found) == expected
        assert found.rating_spread.tolist() == [abs(rating - 1500)] * len(found)


def test_odds_of_the_policy_decide_and_must_be_chances():
    pair = [solo(1, 50), solo(2, 50, rating=1501.0)]

    def sure(line_ups):
        first, second = line_ups.means().T
        return np.where(first > second, 0.9, np.where(first < second, 0.1, 0.5))

    assert matched_tickets(pair, plain_policy(max_odds=0.89, odds=sure)) == []
    assert proposed(pair, plain_policy(max_odds=0.9, odds=sure)).odds.tolist() in ([0.1], [0.9])
    for wrong in (
        lambda line_ups: np.full(len(line_ups), -0.1),
        lambda line_ups: np.full(len(line_ups), np.inf),
        lambda line_ups: np.array([0.5, 0.5, 0.5]),
    ):
        with pytest.raises(BadParameterError, match=r"chances from 0 to 1"):
            proposed(pair, plain_policy(odds=wrong))


def test_a_match_that_cannot_be_predicted_is_made_and_costs_nothing_for_its_odds():
    pair = [solo(1, 50), solo(2, 50, rating=1900.0)]
    (match,) = proposed(pair, plain_policy(max_odds=0.6, odds=lambda line_ups: np.full(len(line_ups), np.nan)))
    assert math.isnan(match.odds)
    assert match.costs["odds"] == 0


# How far apart two players are who both accept each other, and whether they meet although a third one, whom neither
# accepts, stands between them: up to even_spread (4.5)
PASSED_OVER = [(4.5, True), (4.5 + 1e-6, False), (20, False)]


@pytest.mark.parametrize("waited", [0, 1e6])
@pytest.mark.parametrize(("away", "expected"), PASSED_OVER)
def test_a_close_match_may_pass_over_others_and_a_wide_one_may_not(away, expected, waited):
    pair = [solo(1, 50, waited=waited, **STRICT), solo(2, 50 + away, waited=waited, **STRICT)]
    between = solo(3, 50 + away / 2, within=0.0, loose=False)
    policy = plain_policy(even_spread=4.5)
    assert matched_tickets([*pair, between], policy) == ([[1, 2]] if expected else [])
    assert matched_tickets(pair, policy) == [[1, 2]]  # neighbours, however far apart
    beyond = [solo(3, 49.9, within=0.0, loose=False), solo(4, 50.1 + away, within=0.0, loose=False)]
    assert matched_tickets([*pair, *beyond], policy) == [[1, 2]]


def test_how_far_friends_are_apart_comes_on_top():
    """Parties of 50 and 56, 52 and 60: eight percentiles of the second and 2 more; those at 51 stand between."""
    tickets = [party(1, [50, 56], **STRICT), party(2, [52, 60], **STRICT), party(3, [51, 51], within=0.0, loose=False)]
    assert matched_tickets(tickets, plain_policy(team_size=2, even_spread=4.5)) == [[1, 2]]
    assert matched_tickets(tickets, plain_policy(team_size=2, even_spread=1.9)) == []


def test_an_overdue_ticket_may_be_in_any_match_that_the_filters_allow():
    """Overdue from 300 s on, since the other loose player has not waited at all; strict players never are."""
    others = [solo(2, 79, **STRICT), solo(3, 60, within=0.0, loose=False)]
    for loose, waited, expected in ((True, 300, [[1, 2]]), (True, 299.9, []), (False, 1e6, [])):
        one = solo(1, 50, waited=waited, within=30.0, loose=loose)
        assert matched_tickets([one, *others], plain_policy(even_spread=4.5, overdue_after=300)) == expected


# Seconds that ten other loose players have waited, and from when a ticket of duels is overdue with overdue_after 100:
# sixteen times their mean wait, without the two longest
LATE = [(1, 100), (10, 160), (100, 1600), (1000, 1600)]


@pytest.mark.parametrize(("others", "expected"), LATE)
def test_a_ticket_is_overdue_relative_to_the_waits_of_others(others, expected):
    alone = set(range(10, 21))  # they avoid each other, and the one who may be overdue
    crowd = [
        solo(at, 0, waited=5000 if at == 20 else others, within=0.0, avoid=(1, *(alone - {at}))) for at in sorted(alone)
    ]
    rest = [solo(2, 79, **STRICT), solo(3, 60, within=0.0, loose=False)]
    policy = plain_policy(even_spread=4.5, overdue_after=100)
    for waited, met in ((expected, [[1, 2]]), (expected - 0.1, [])):
        one = solo(1, 50, waited=waited, within=30.0)
        assert matched_tickets([one, *crowd, *rest], policy) == met


def test_an_overdue_player_comes_before_a_closer_match_of_others():
    """The outlier at 70 is overdue and gets the longer-waiting of the others, who would be closer to each other."""
    tickets = [solo(1, 50, **STRICT), solo(2, 51, waited=1, **STRICT), solo(3, 70, waited=240)]
    assert matched_tickets(tickets, plain_policy()) == [[1, 2]]
    assert matched_tickets(tickets, plain_policy(overdue_after=240)) == [[2, 3]]


def test_a_match_is_kept_free_for_an_overdue_player():
    """1 is overdue and too far from 2 until it widens, to 40, at 120: so 2 and 3 are not given to each other."""
    tickets = [solo(1, 90, waited=240), solo(2, 50, waited=119), solo(3, 50)]
    policy = plain_policy(overdue_after=240)
    assert matched_tickets(tickets, policy) == []
    assert matched_tickets(tickets, plain_policy()) == [[2, 3]]
    assert matched_tickets(tickets, policy, NOW + SECOND) == [[1, 2]]


def test_costs_are_told_in_seconds_by_name():
    tickets = [solo(1, 50, waited=130), solo(2, 56, rating=1540.0, waited=130)]
    match = proposed(tickets, Policy(team_size=1))[0]
    assert list(match.costs) == ["spread", "odds", "rematch", "newcomers", "parties", "attributes"]
    chance = 1 / (1 + 10 ** (-40 / 400))
    assert match.costs["spread"] == 180  # six percentiles at 30 seconds each
    assert match.costs["odds"] == pytest.approx(2 * 100 * (chance - 0.5))
    assert (match.costs["rematch"], match.costs["newcomers"], match.costs["parties"]) == (0, 0, 0)
    assert (match.spread, match.waited) == (6, 130)
