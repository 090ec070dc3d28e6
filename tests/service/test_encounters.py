"""Whom a player met and when they did well, against counts made by hand."""

from itertools import pairwise

import pytest

from evenmatch import rules
from evenmatch.service.encounters import Tally, encounters, steps
from evenmatch.service.reading import Reading
from ledger.made import duel, match


@pytest.fixture
def told(service):
    """Elo with newcomers at 1500, so that the first match of all is expected to be a half."""
    service.create_ladder("default", "elo", rules("elo"))
    return Reading(service)


def test_a_record_counts_wins_draws_and_losses_against_and_beside(service, told):
    service.record_many(
        "default",
        [
            match(1, (1, "ann", "bob"), (2, "joe", "zoe")),
            match(2, (1, "ann", "joe"), (1, "bob", "zoe")),
            match(3, (2, "ann"), (1, "bob")),
            match(4, (2, "ann"), (1, "bob"), (3, "zoe")),  # second of three: half of the rivals are behind
        ],
    )
    found = told.encounters("default", "ann")
    by_name = {one.player: (one.against[:3], one.beside[:3]) for one in found.others}
    assert by_name == {
        "bob": ((0, 1, 2), (1, 0, 0)),
        "joe": ((1, 0, 0), (0, 1, 0)),
        "zoe": ((2, 1, 0), (0, 0, 0)),
    }
    assert found.whole[:3] == (1, 2, 1)
    assert found.whole.score == pytest.approx(1 + 0.5 + 0 + 0.5)
    assert not found.latest


def test_hours_are_those_of_the_day_in_utc_and_beside_what_was_expected(service, told):
    service.record_many("default", [duel(5, "ann", "bob"), duel(29, "ann", "bob"), duel(40, "bob", "ann")])
    hours = told.encounters("default", "ann").hours
    second = 1 / (1 + 10 ** (-32 / 400))  # after the first, 16 points apart each
    assert hours[5][:3] == (2, 0, 0)
    assert hours[5].expected == pytest.approx(0.5 + second)
    assert hours[5].surplus == pytest.approx((2 - 0.5 - second) / 2)
    assert hours[16][:3] == (0, 0, 1)
    assert [at for at, one in enumerate(hours) if one.matches] == [5, 16]


def test_matches_that_do_not_count_are_in_no_record(service, told):
    service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "ann", "bob"), rated=False)
    assert told.encounters("default", "ann").whole == Tally(1, 0, 0, 1.0, 0.5)


def test_a_merged_player_has_the_matches_of_both(service, told):
    service.record_many("default", [duel(1, "ann", "bob"), duel(2, "anne", "bob")])
    service.merge("anne", "ann")
    assert told.encounters("default", "ann").whole.won == 2


def test_steps_are_the_way_of_a_rating_in_order(service, told):
    service.record_many("default", [duel(1, "ann", "bob"), match(2, (1, "ann"), (1, "bob")), duel(3, "bob", "ann")])
    name, way = told.steps("default", "ann", 100)
    assert name == "ann"
    assert [(one.match_id, one.word) for one in way] == [("m1", "won"), ("m2", "drew"), ("m3", "lost")]
    assert (way[0].before, way[0].after) == (1500.0, 1516.0)
    assert all(one.after == two.before for one, two in pairwise(way))


def test_a_long_way_is_told_by_steps_spread_evenly(service, told):
    service.record_many("default", [duel(at, "ann", "bob") for at in range(1, 102)])
    with service.reading("default") as (store, head):
        chosen = steps(store, head, service.player("ann"), 11)
        assert encounters(store, head, service.player("ann")).whole.won == 101
    assert [one.match_id for one in chosen] == [f"m{at}" for at in range(1, 102, 10)]
