"""The results and trends on a page of standings, counted by hand; the clock stands ten days after the first hour."""

import pytest

from evenmatch.accounts.access import ANYONE, OPERATOR
from evenmatch.corrections.corrections import Void
from evenmatch.ladders.ladder_queries import LadderQueries
from ledger.sample_matches import after, duel, micros, ratings, team_match

pytestmark = pytest.mark.usefixtures("elo_reading")
WEEK = 7 * 24  # hours
OLD, RECENT = 1, 10 * 24 - WEEK + 1  # the hours of a match before the last seven days, and of one within them


def records_of(service, caller=OPERATOR):
    """Everybody's record by name, of the latest standings."""
    reading = LadderQueries(service, service.view, caller)
    view, board = reading.view("default"), service.view("default").snapshot.board
    standings = service.named(view.snapshot.among(board.player))
    found = reading.records(view, [standing for _, standing in standings])
    return {name: found[standing.player] for name, standing in standings}


def test_wins_draws_and_losses_are_those_of_the_matches_that_count(service):
    service.record_many(
        "default",
        [
            duel(1, "ann", "bob"),
            team_match(2, (1, "ann", "joe"), (1, "bob", "zoe")),
            team_match(3, (2, "ann"), (1, "zoe"), (3, "bob")),  # second of three: half of the rivals are behind
            team_match(4, (4, "ann"), (1, "zoe"), (2, "bob"), (3, "joe")),
            team_match(5, (1, "ann*"), (2, "bob~")),  # who quits is in the match; a guest's does not count
        ],
    )
    service.record(duel(6, "ann", "bob"), rated=False)
    found = records_of(service)
    assert {name: one[:3] for name, one in found.items()} == {
        "ann": (2, 2, 1),
        "bob": (1, 1, 2),
        "joe": (0, 1, 1),
        "zoe": (2, 1, 0),
    }
    assert found["ann"].share == pytest.approx(2 / 5)
    assert found["ann"].last_completed == micros(after(4))
    service.correct("default", Void("m1"))
    assert records_of(service)["ann"][:3] == (1, 2, 1)


def test_a_trend_begins_before_the_first_rated_match_of_the_week(service):
    service.record_many("default", [duel(OLD, "ann", "bob"), duel(OLD + 1, "cat", "dan")])
    service.record(duel(RECENT, "ann", "bob"), rated=False)
    service.record_many("default", [duel(RECENT + 1, "bob", "ann"), duel(RECENT + 2, "eve", "bob")])
    favourite = 1 / (1 + 10 ** (-32 / 400))  # ann, at 1516 against 1484
    found, now = records_of(service), ratings(service)
    assert found["ann"].rating_change == pytest.approx(-32 * favourite)
    assert found["bob"].rating_change == pytest.approx(now["bob"] - 1484)
    assert found["eve"].rating_change == pytest.approx(now["eve"] - 1500)
    assert found["cat"].rating_change is None


def test_a_trend_of_two_players_who_were_merged_begins_with_the_first_match_of_either(service):
    service.record_many("default", [duel(RECENT, "old", "bob"), duel(RECENT + 1, "bob", "new")])
    service.merge("old", "new")
    assert records_of(service)["new"].rating_change == pytest.approx(ratings(service)["new"] - 1500)


def test_a_reset_begins_the_results_and_the_trend_again(service):
    service.record_many("default", [duel(RECENT, "ann", "bob"), duel(RECENT + 1, "ann", "bob")])
    service.open_season("default", reset="full")
    assert records_of(service)["ann"][:3] == (0, 0, 0)
    assert records_of(service)["ann"].rating_change is None
    service.record(duel(RECENT + 2, "bob", "ann"))
    assert records_of(service)["ann"] == (0, 0, 1, micros(after(RECENT + 2)), pytest.approx(-16))


@pytest.mark.parametrize(("show", "is_shown"), [("rating", True), ("percentile", False), ("division", False)])
def test_a_trend_is_shown_where_ratings_are(service, show, is_shown):
    service.record(duel(RECENT, "ann", "bob"))
    service.change_settings("default", {"show": show, "placement": 1})
    assert (records_of(service, ANYONE)["ann"].rating_change == pytest.approx(16)) is is_shown
