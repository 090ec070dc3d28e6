"""Falls by inactivity in a player's path: each of them by hand, among matches, seasons and corrections."""

from itertools import pairwise

import pytest

from evenmatch.accounts.access import Caller
from evenmatch.corrections.corrections import Void
from evenmatch.ladders.ladder_queries import LadderQueries
from ledger.sample_matches import START, duel, everybody, micros, ratings
from ledger.test_rating_decay import made, on

READER = Caller("a reader", frozenset({"read"}))


@pytest.fixture
def decaying(service, clock):
    clock.now = micros(START)
    return made(service)


def falls(service, name="ann", caller=None):
    reading = LadderQueries(service) if caller is None else LadderQueries(service, caller=caller)
    return reading.path("default", name, 100)[1].falls


def amounts(service, name="ann"):
    return [round(fall.before - fall.after, 9) for fall in falls(service, name)]


def test_every_fall_stands_between_the_matches_around_it(service, clock, decaying):
    """Ten points a week after three days, down to 1500: 31 points are won, so ann falls by 10, 10, 10 and the rest."""
    service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "ann", "bob"))
    top = ratings(service)["ann"]
    for day, total in ((12, 10), (19, 20)):
        on(clock, day, 13)
        decaying.apply("default")
        assert ratings(service)["ann"] == top - total
    on(clock, 20)
    service.record(duel(24 * 19, "ann", "cat"))  # ends inactivity
    again = ratings(service)["ann"]
    on(clock, 40, 5)  # two weeks in one event
    decaying.apply("default")
    listed = falls(service)
    assert [(fall.of, fall.before, fall.after) for fall in listed] == [
        ("rating", top, top - 10),
        ("rating", top - 10, top - 20),
        ("rating", again, ratings(service)["ann"]),
    ]
    assert again - ratings(service)["ann"] == 20
    assert [fall.fell_at for fall in listed] == [micros(START) + 86_400_000_000 * day for day in (11, 18, 39)]
    assert [str(fall.text) for fall in listed] == ["−10, not playing", "−10, not playing", "−20, not playing"]
    _, path = LadderQueries(service).path("default", "ann", 100)
    assert [step.before for step in path.steps][2] == listed[1].after
    assert amounts(service, "bob") == []  # below a newcomer's rating


def test_a_correction_moves_the_falls_and_a_season_ends_them(service, clock, decaying):
    for number in (1, 2, 3):
        service.record(duel(number, "ann", "bob"))
    on(clock, 15)
    decaying.apply("default")
    assert amounts(service) == [10]
    service.correct("default", Void("m3"))
    assert amounts(service) == [10]
    assert falls(service)[0].after == ratings(service)["ann"]
    service.open_season("default", reset="full")
    assert amounts(service) == [10]
    on(clock, 25)
    service.record(duel(24 * 24, "ann", "cat"))
    assert amounts(service) == [10]
    assert ratings(service)["ann"] == 1516


@pytest.mark.parametrize("system", ["glicko2", "wager", "trueskill"])
def test_falls_add_up_for_every_kind_of_system(service, clock, system):
    clock.now = micros(START)
    decaying = made(service, system, rating_decay=0.03 if system == "wager" else 1.5)
    for number in range(1, 6):
        service.record(duel(number, "ann", "bob"))
    top = ratings(service)["ann"]
    for day in (12, 20, 35):
        on(clock, day)
        decaying.apply("default")
    listed = falls(service)
    assert len(listed) == 3
    assert (listed[0].before, listed[-1].after) == (top, ratings(service)["ann"])
    assert all(one.after == pytest.approx(two.before) for one, two in pairwise(listed))


def test_a_percentile_that_fell_is_told_as_of_now(service, clock, ladder):
    rule = {"inactivity": "percentile", "grace_days": 5, "percentile_decay": 2, "show": "percentile"}
    service.change_settings(ladder, rule)
    for number in range(1, 5):
        service.record(duel(number, "ann", "bob"))
    on(clock, 9, 13)  # three whole days after the fifth
    assert everybody(service)["ann"].percentile == 94
    (fall,) = falls(service)
    assert (fall.of, fall.before, fall.after, str(fall.text)) == ("percentile", 100, 94, "−6, not playing")
    assert [one.of for one in falls(service, caller=READER)] == ["percentile"]
    service.change_settings(ladder, {"show": "division"})
    assert falls(service, caller=READER) == []


def test_falls_of_a_rating_are_hidden_with_it(service, clock, decaying):
    service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "ann", "bob"))
    on(clock, 15)
    decaying.apply("default")
    assert len(falls(service, caller=READER)) == 1
    for show in ("percentile", "division"):
        service.change_settings("default", {"show": show})
        assert falls(service, caller=READER) == []
        assert len(falls(service)) == 1
