"""Open seats of running matches: who takes them, rule by rule, worked by hand."""

import pytest

from evenmatch.errors import InputError
from evenmatch.matchmaking import Met, Opening, Ticket, backfill
from matchmaking.sample_tickets import NOW, SECOND, party, plain_policy, queue_of, solo

STRICT = {"within": 5.0, "loose": False}
FORMED = NOW - 300 * SECOND  # five minutes ago


def opening(*teams, seats, match=1, formed=FORMED, region=None):
    return Opening(match=match, formed=formed, teams=teams, seats=seats, region=region)


def inside(ticket, percentile, *, waited=0.0, **wish):
    """One player of the running match, who had waited so long when it was formed."""
    return solo(ticket, percentile, waited=waited + 300, **wish)


def filled(one, *tickets, now=NOW, **options):
    """The tickets that come, by team; None where nobody does."""
    found = backfill([one], queue_of(*tickets), now, plain_policy(**{"team_size": 2} | options))
    assert len(found) <= 1
    return found[0].teams if found else None


# A player at 50 is alone; filter and waiting time when the match was formed; who comes at 55, whether they fit
WINDOWS = [
    ({"within": 5.0, "loose": False}, True),
    ({"within": 4.999, "loose": False}, False),
    ({"within": 2.0}, False),  # loose, and had waited nothing then; that five minutes have passed since does not widen
    ({"within": 2.0, "waited": 14.999999}, False),
    ({"within": 2.0, "waited": 15.0}, True),
    ({"within": 4.0, "waited": 1e5}, True),
    ({"within": 4.0, "waited": 1e5, "loose": False}, False),
]


@pytest.mark.parametrize(("wish", "expected"), WINDOWS)
def test_windows_of_those_inside_are_as_of_the_moment_their_match_was_formed(wish, expected):
    one = opening((inside(10, 50, **wish),), (inside(11, 50, **STRICT),), seats=(1, 0))
    assert filled(one, solo(1, 55, **STRICT)) == (((1,), ()) if expected else None)


# Filter and waiting time of one who comes, now; whether they reach the player at 55
COMING = [({"within": 5.0, "loose": False}, True), ({"within": 2.0}, False), ({"within": 2.0, "waited": 15.0}, True)]


@pytest.mark.parametrize(("wish", "expected"), COMING)
def test_the_window_of_a_joining_player_is_the_current_one(wish, expected):
    one = opening((inside(10, 55, **STRICT),), (inside(11, 53, **STRICT),), seats=(0, 1))
    assert filled(one, solo(1, 50, **wish)) == (((), (1,)) if expected else None)


@pytest.mark.parametrize(("older", "younger"), [(5.0, 5.0), (5.0, 20.0), (20.0, 5.0)])
def test_players_who_join_one_after_another_must_fit_each_other_too(older, younger):
    """Both fit 50; the older, at 46, goes first, and 54 and 46 are 8 apart: one of them does not want that."""
    one = opening((inside(10, 50, **STRICT),), (), seats=(1, 2))
    tickets = [
        solo(1, 46, waited=9, within=older, loose=False),
        solo(2, 54, waited=8, within=younger, loose=False),
        solo(3, 51, waited=7, **STRICT),
    ]
    found = backfill([one], queue_of(*tickets), NOW, plain_policy(team_size=2))
    assert sorted(ticket for team in found[0].teams for ticket in team) == [1, 3]


def test_a_party_inside_is_a_hull_and_a_party_that_comes_is_not_split():
    one = opening((party(10, [40, 60], waited=300, **STRICT),), (), seats=(0, 2))
    wide = {"within": 20.0, "loose": False}
    assert filled(one, party(1, [35, 65], **wide)) == ((), (1,))
    assert filled(one, party(1, [34.9, 65], **wide)) is None
    one = opening((inside(10, 50, **STRICT),), (inside(11, 50, **STRICT),), seats=(1, 1))
    assert filled(one, party(1, [50, 50], **STRICT), team_size=3) is None  # two seats, but one in each team
    assert filled(one, party(1, [50, 50], waited=9, **STRICT), solo(2, 50), team_size=3) in (((2,), ()), ((), (2,)))


def test_the_longest_waiting_who_fit_go_first_then_the_smaller_numbers():
    one = opening((inside(10, 50, **STRICT),), (inside(11, 50, **STRICT),), seats=(0, 1))
    tickets = [solo(1, 50, waited=5), solo(2, 50, waited=9), solo(3, 80, waited=99), solo(4, 50, waited=9)]
    assert filled(one, *tickets) == ((), (2,))
    three = opening((inside(10, 50, **STRICT),), (inside(11, 50, **STRICT),), seats=(0, 2))
    assert filled(three, *tickets, team_size=3) == ((), (2, 4))


def test_a_ticket_takes_the_seat_that_leaves_the_odds_most_even():
    """1900 and 1500 play; whoever is strong goes to the weak. By hand: 10 ** (gap / 400) to 1."""
    one = opening((inside(10, 50, rating=1900.0, **STRICT),), (inside(11, 50, rating=1500.0, **STRICT),), seats=(1, 1))
    assert filled(one, solo(1, 50, rating=1900.0)) == ((), (1,))
    assert filled(one, solo(1, 50, rating=1100.0)) == ((1,), ())
    found = backfill([one], queue_of(solo(1, 50, rating=1900.0)), NOW, plain_policy(team_size=2))
    assert found[0].odds == pytest.approx(1 / (1 + 10 ** (-(1900 - 1700) / 400)))
    both = queue_of(solo(1, 50, rating=1900.0, waited=2), solo(2, 50, rating=1500.0, waited=1))
    found = backfill([one], both, NOW, plain_policy(team_size=2))
    assert found[0].teams == ((2,), (1,))
    assert found[0].odds == pytest.approx(0.5)


# Rating of who comes to the second team, beside 1500 against two of 1500; limit; whether they may
LIMITS = [
    (1640, 0.6, True),  # a mean of 1570 against 1500: 0.599
    (1642, 0.6, False),
    (1360, 0.6, True),
    (1358, 0.6, False),
    (1642, None, True),
]


@pytest.mark.parametrize(("rating", "most", "expected"), LIMITS)
def test_nobody_joins_who_would_push_the_odds_beyond_the_limit(rating, most, expected):
    one = opening((inside(10, 50, **STRICT), inside(11, 50, **STRICT)), (inside(12, 50, **STRICT),), seats=(0, 1))
    assert filled(one, solo(1, 50, rating=float(rating)), max_odds=most) == (((), (1,)) if expected else None)


def test_odds_beyond_the_limit_already_may_become_better_but_not_worse():
    one = opening(
        (inside(10, 50, rating=1700.0, **STRICT), inside(11, 50, rating=1700.0, **STRICT)),
        (inside(12, 50, rating=1500.0, **STRICT),),
        seats=(0, 1),
    )
    assert filled(one, solo(1, 50, rating=1600.0), max_odds=0.6) == ((), (1,))  # 1550: 0.70, before 0.76
    assert filled(one, solo(1, 50, rating=1499.0), max_odds=0.6) is None


# Ratings of those inside and of who comes, the cap; whether they may
CAPS = [(1400, 1600, 1500, 200, True), (1400, 1600, 1601, 200, False), (1400, 1600, 1399, 200, False)]


@pytest.mark.parametrize(("low", "high", "rating", "most", "expected"), CAPS)
def test_the_cap_on_ratings_also_covers_the_player_who_joins(low, high, rating, most, expected):
    one = opening(
        (inside(10, 50, rating=float(low), **STRICT),), (inside(11, 50, rating=float(high), **STRICT),), seats=(1, 0)
    )
    assert (filled(one, solo(1, 50, rating=float(rating)), max_rating_spread=most) is not None) == expected


def test_avoid_lists_hold_in_both_directions_and_between_players_who_join():
    one = opening((inside(10, 50, avoid=(1,), **STRICT),), (inside(11, 50, **STRICT),), seats=(1, 1))
    assert filled(one, solo(1, 50)) is None
    assert filled(one, solo(2, 50, avoid=(11,))) is None
    found = filled(one, solo(2, 50, waited=3, avoid=(3,)), solo(3, 50, waited=2), solo(4, 50, waited=1))
    assert sorted(ticket for team in found for ticket in team) == [2, 4]


@pytest.mark.parametrize("most", [None, 200.0])
def test_those_inside_are_not_forgotten_when_they_joined_longer_ago_than_anybody_may_wait(most):
    """They joined five minutes ago; it is only waiting tickets that are given up."""
    avoided = opening((inside(10, 50, avoid=(1,), **STRICT),), (inside(11, 50, **STRICT),), seats=(1, 1))
    assert filled(avoided, solo(1, 50), max_wait=most) is None
    healers = opening((inside(10, 50, roles=("healer",), **STRICT),), (inside(11, 50, **STRICT),), seats=(1, 0))
    assert filled(healers, solo(1, 50, roles=("healer",)), max_wait=most, roles={"tank": 1}) is None
    assert filled(healers, solo(1, 50, roles=("tank",)), max_wait=most, roles={"tank": 1}) == ((1,), ())
    assert filled(healers, solo(1, 50, waited=200, roles=("tank",)), max_wait=200, roles={"tank": 1}) is None


def test_somebody_met_a_moment_ago_is_met_again_only_after_waiting_for_it():
    one = opening((inside(10, 50, met=(Met(1, NOW),), **STRICT),), (inside(11, 50, **STRICT),), seats=(1, 1))
    assert filled(one, solo(1, 50, waited=29.9), rematch_wait=30) is None
    assert filled(one, solo(1, 50, waited=30), rematch_wait=30) is not None


def test_each_team_stays_able_to_cover_its_roles():
    """Each team needs a tank and has two seats; the healer of the first leaves one seat, which is the tank's."""
    need = {"tank": 1}
    one = opening((inside(10, 50, roles=("healer",)),), (inside(11, 50, roles=("tank",)),), seats=(1, 1))
    healer, tank = {"roles": ("healer",)}, {"roles": ("tank",)}
    assert filled(one, solo(1, 50, **healer), roles=need) == ((), (1,))
    assert filled(one, solo(1, 50, **tank), roles=need) is not None
    both = filled(one, solo(1, 50, waited=2, **healer), solo(2, 50, waited=1, **tank), roles=need)
    assert both == ((2,), (1,))
    assert filled(one, party(1, [50, 50], **tank), roles=need) is None
    empty = opening((inside(10, 50),), (), seats=(1, 2))
    assert filled(empty, party(1, [50, 50], **healer), roles=need) is None
    assert filled(empty, party(1, [50, 50]), roles=need) == ((), (1,))


# Where the match is, where the ticket can play, the policy's limit; whether it comes
PLACES = [
    ("eu", {"eu": 20.0}, None, True),
    ("eu", {"us": 20.0}, None, False),
    ("eu", {}, None, True),
    (None, {"us": 20.0}, None, True),
    ("eu", {"eu": 20.0}, 20, True),
    ("eu", {"eu": 20.0, "us": 5.0}, 19.9, False),
    ("moon", {"eu": 20.0}, None, False),
    ("moon", {}, 5, True),
]


@pytest.mark.parametrize(("region", "ping", "most", "expected"), PLACES)
def test_a_player_who_joins_can_play_in_the_region_of_the_match(region, ping, most, expected):
    one = opening((inside(10, 50),), (inside(11, 50),), seats=(1, 0), region=region)
    tickets = [solo(1, 50, ping=ping), solo(2, 90, ping={"eu": 1.0})]
    assert filled(one, *tickets, max_ping=most) == (((1,), ()) if expected else None)


def test_a_team_that_everybody_left_is_filled_again():
    one = opening((inside(10, 50, **STRICT), inside(11, 50, **STRICT)), (), seats=(0, 2))
    assert filled(one, solo(1, 50, waited=2), solo(2, 50, waited=1)) == ((), (1, 2))
    found = backfill([one], queue_of(solo(1, 50, rating=1600.0)), NOW, plain_policy(team_size=2))
    assert found[0].teams == ((), (1,))
    assert found[0].odds == pytest.approx(1 / (1 + 10 ** (100 / 400)))


def test_openings_are_served_by_number_and_nobody_comes_twice():
    openings = [
        opening((inside(10 * at, 50, **STRICT),), (inside(10 * at + 1, 50, **STRICT),), seats=(0, 1), match=at)
        for at in (7, 3, 5)
    ]
    queue = queue_of(solo(1, 50, waited=1), solo(2, 50, waited=2))
    found = backfill(openings, queue, NOW, plain_policy(team_size=2))
    assert [(one.match, one.teams) for one in found] == [(3, ((), (2,))), (5, ((), (1,)))]
    assert queue.ids == [1, 2]
    assert backfill(openings, queue_of(), NOW, plain_policy(team_size=2)) == []
    assert backfill([], queue, NOW, plain_policy(team_size=2)) == []


def test_players_in_a_match_or_given_up_do_not_join():
    one = opening((inside(10, 50, **STRICT),), (inside(11, 50, **STRICT),), seats=(1, 1))
    assert filled(one, party(1, [50], players=[10])) is None
    assert filled(one, solo(1, 50, waited=100), max_wait=100) is None
    assert filled(one, solo(1, 50, waited=99), max_wait=100) is not None


def test_a_ticket_may_have_the_number_of_a_playing_ticket():
    """Numbers are free again once a match has begun."""
    one = opening((inside(10, 50, **STRICT),), (inside(11, 50, **STRICT),), seats=(1, 1))
    queued = party(10, [50], players=[77])
    assert isinstance(queued, Ticket)
    assert filled(one, queued) is not None


def test_an_opening_is_refused_where_it_cannot_be_one():
    team = (inside(10, 50),)
    for told, named in (
        ({"teams": (team, ()), "seats": (1,)}, r"match 4 has 2 teams and seats \(1,\)"),
        ({"teams": (team, ()), "seats": (1, -1)}, r"seats \(1, -1\)"),
        ({"teams": (team, ()), "seats": (0, 0)}, "match 4 has no open seat"),
        ({"teams": ((), ()), "seats": (1, 1)}, "match 4 has no players left"),
    ):
        with pytest.raises(InputError, match=named):
            Opening(match=4, formed=FORMED, **told)
