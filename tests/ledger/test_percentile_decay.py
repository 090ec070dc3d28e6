"""Shown percentiles of inactive players that fall: on standings and receipts, while ratings stay."""

import pytest

from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import START, after, duel, everybody, micros, ratings, team_match

BANDS = (Division("low", 1), Division("middle", 40), Division("high", 80))


@pytest.fixture
def falling(service, clock):
    """Three days of grace, then two percentiles a day, not below 30."""
    clock.now = micros(START)
    rule = {"inactivity": "percentile", "grace_days": 3, "percentile_decay": 2, "percentile_floor": 30}
    listed = StandingsRules(placement=2, active_days=90, divisions=BANDS, division_margin=5, **rule)
    service.create_ladder("default", "elo", rules("elo"), Settings(standings=listed))
    for number, pair in enumerate([("ann", "bob"), ("ann", "bob"), ("bob", "cat"), ("bob", "cat"), ("ann", "cat")]):
        service.record(duel(number, *pair))
    return service


def shown(service):
    return {name: (one.rank, one.percentile, one.division) for name, one in everybody(service).items()}


def test_percentile_and_division_fall_while_rank_and_rating_stay(falling, clock):
    before = ratings(falling)
    assert shown(falling) == {"ann": (1, 100, "high"), "bob": (2, 51, "middle"), "cat": (3, 1, "low")}
    falling.divide("default")
    clock.now = micros(after(24 * 13 + 4))  # ten whole days: 20
    assert shown(falling) == {"ann": (1, 80, "high"), "bob": (2, 31, "low"), "cat": (3, 1, "low")}
    clock.now = micros(after(24 * 16 + 4))  # 26, farther below 80 than the margin of 5
    assert shown(falling)["ann"] == (1, 74, "middle")
    clock.now = micros(after(24 * 15 + 4))  # 24
    assert shown(falling)["ann"] == (1, 76, "high")
    clock.now = micros(after(24 * 80))
    assert shown(falling) == {"ann": (1, 30, "low"), "bob": (2, 30, "low"), "cat": (3, 1, "low")}
    assert ratings(falling) == before
    assert falling.verify("default").is_equal


def test_a_receipt_shows_what_the_standings_show(falling, clock):
    clock.now = micros(after(24 * 13 + 5))
    everybody(falling)
    played = falling.record(team_match(24 * 13 + 5, (1, "ann"), (2, "bob*")))
    lines = {line.change.player: line for team in played.teams for line in team}
    now = shown(falling)
    assert now["ann"] == (1, 100, "high")
    assert now["bob"] == (2, 31, "low")  # who quits has not completed a match
    assert {name: (line.percentile, line.division) for name, line in lines.items()} == {
        name: now[name][1:] for name in ("ann", "bob")
    }
