"""What a Match accepts, refuses and derives."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch import Appearance, Match, Team, from_matches
from evenmatch.errors import InputError
from evenmatch.match import places_by_score

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAN, INF = float("nan"), float("inf")


def duel(**changes):
    teams = (Team.of("ann", place=1), Team.of("bob", place=2))
    return Match(**{"id": "m", "played_at": NOON, "teams": teams} | changes)


# What is made, and what its refusal says
REFUSED = [
    (lambda: Appearance(""), "player's name is empty"),
    (lambda: Appearance("ann", seconds=-0.5), "seconds of 'ann' is -0.5; expected a number from 0"),
    (lambda: Appearance("ann", seconds=NAN), "seconds of 'ann' is nan"),
    (lambda: Appearance("ann", score=NAN), "score of 'ann' is nan; expected a finite number"),
    (lambda: Appearance("ann", performance=1.01), "performance of 'ann' is 1.01; expected a number from -1 to 1"),
    (lambda: Appearance("ann", entry=NAN), "entry of 'ann' is nan; expected a number from -1e9 to 1e9"),
    (lambda: Appearance("ann", entry=2e9), "entry of 'ann' is 2000000000.0"),
    (lambda: Team(()), "a team has no players"),
    (lambda: Team.of("ann", place=0), "place is 0; expected a whole number from 1"),
    (lambda: Team.of("ann", score=NAN), "score of 'a team' is nan"),
    (lambda: duel(teams=()), "has 0 team"),
    (lambda: duel(teams=(Team.of("ann", place=1),)), "has 1 team; expected two or more"),
    (lambda: duel(teams=(Team.of("ann", place=1), Team.of("ann", place=2))), "player 'ann' appears more than once"),
    (lambda: duel(teams=(Team.of("ann", place=1), Team.of("bob"))), "a place for 1 of 2 teams; give all or none"),
    (lambda: duel(teams=(Team.of("ann"), Team.of("bob"))), "neither a place nor a score for every team"),
    (lambda: duel(teams=(Team.of("ann", score=1), Team.of("bob"))), "neither a place nor a score for every team"),
    (lambda: duel(duration=-1.0), "duration of \"match 'm'\" is -1.0"),
    (lambda: duel(id=""), "empty"),
    (lambda: Team.of("ann", place=2**31), "place is 2147483648"),
]


@pytest.mark.parametrize(("make", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_an_impossible_match_is_refused_when_it_is_created(make, said):
    with pytest.raises(InputError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("played_at", "micros"),
    [
        (datetime(1970, 1, 1), 0),
        (datetime(2026, 11, 21, 12), 1795262400_000000),
        (NOON, 1795262400_000000),
        (datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=5, minutes=30))), 1795242600_000000),
        (datetime(2026, 11, 21, 12, 0, 0, 1), 1795262400_000001),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), -1),
        (datetime(2099, 12, 31, 23, 59, 59, 999999), 4102444799_999999),
    ],
)
def test_the_time_is_in_microseconds_since_the_epoch_and_utc_where_no_zone_is_named(played_at, micros):
    assert duel(played_at=played_at).time == micros
    assert from_matches([duel(played_at=played_at)]).history.columns.time.tolist() == [micros]


@pytest.mark.parametrize(
    ("teams", "places"),
    [
        ((Team.of("ann", place=2, score=9), Team.of("bob", place=1, score=3)), (2, 1)),  # the place wins
        ((Team.of("ann", score=3), Team.of("bob", score=9)), (2, 1)),
        ((Team.of("ann", score=3), Team.of("bob", score=5), Team.of("cat", score=3)), (2, 1, 2)),
        ((Team.of("ann", score=0), Team.of("bob", score=-1), Team.of("cat", score=0)), (1, 3, 1)),
        ((Team.of("ann", place=1, score=2), Team.of("bob", place=1)), (1, 1)),
    ],
)
def test_places_are_as_given_or_else_by_score(teams, places):
    assert duel(teams=teams).places == places


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=8))
def test_a_place_is_one_more_than_the_number_of_better_teams(scores):
    places = places_by_score(scores)
    assert min(places) == 1
    for one, score in enumerate(scores):
        for other, rival in enumerate(scores):
            assert (places[one] < places[other]) == (score > rival)
    better = sorted(scores, reverse=True)
    assert places == tuple(better.index(score) + 1 for score in scores)


def test_places_of_a_hundred_thousand_scores_take_no_pair_of_them():
    scores = [at % 50_000 for at in range(100_000)]
    places = places_by_score(scores)
    assert (places[49_999], places[0], places[50_000]) == (1, 99_999, 99_999)
