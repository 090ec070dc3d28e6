"""Whom a player met and when they did well, against counts made by hand."""

import pytest

from evenmatch import rules
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.players.statistics import Tally
from ledger.sample_matches import duel, team_match


@pytest.fixture
def elo_reading(service):
    """Elo with newcomers at 1500, so that the first match of all is expected to be a half."""
    service.create_ladder("default", "elo", rules("elo"))
    return LadderQueries(service)


def test_a_record_counts_wins_draws_and_losses_against_and_beside(service, elo_reading):
    service.record_many(
        "default",
        [
            team_match(1, (1, "ann", "bob"), (2, "joe", "zoe")),
            team_match(2, (1, "ann", "joe"), (1, "bob", "zoe")),
            team_match(3, (2, "ann"), (1, "bob")),
            team_match(4, (2, "ann"), (1, "bob"), (3, "zoe")),  # second of three: half of the rivals are behind
        ],
    )
    found = elo_reading.encounters("default", "ann")
    by_name = {one.player: (one.against[:3], one.beside[:3]) for one in found.others}
    assert by_name == {"bob": ((0, 1, 2), (1, 0, 0)), "joe": ((1, 0, 0), (0, 1, 0)), "zoe": ((2, 1, 0), (0, 0, 0))}
    assert found.whole[:3] == (1, 2, 1)
    assert found.whole.score == pytest.approx(1 + 0.5 + 0 + 0.5)
    assert not found.latest


def test_hours_are_those_of_the_day_in_utc_and_beside_what_was_expected(service, elo_reading):
    service.record_many("default", [duel(5, "ann", "bob"), duel(29, "ann", "bob"), duel(40, "bob", "ann")])
    hours = elo_reading.encounters("default", "ann").hours
    second = 1 / (1 + 10 ** (-32 / 400))  # after the first, 16 points apart each
    assert hours[5][:3] == (2, 0, 0)
    assert hours[5].expected == pytest.approx(0.5 + second)
    assert hours[5].surplus == pytest.approx((2 - 0.5 - second) / 2)
    assert hours[16][:3] == (0, 0, 1)
    assert [at for at, one in enumerate(hours) if one.matches] == [5, 16]


def test_matches_that_do_not_count_are_in_no_record(service, elo_reading):
    service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "ann", "bob"), rated=False)
    assert elo_reading.encounters("default", "ann").whole == Tally(1, 0, 0, 1.0, 0.5)
