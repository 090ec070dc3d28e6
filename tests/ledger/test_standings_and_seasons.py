"""Standings by their plain definitions, divisions that do not flicker, and seasons that stay as they ended."""

import random
from dataclasses import replace

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Reinstate, Void
from evenmatch.durations import DAY
from evenmatch.errors import UnknownNameError
from evenmatch.ladders.settings import Settings
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import ManualClock, after, duel, everybody, micros, ratings, team_match

BANDS = (Division("low", 1), Division("middle", 40), Division("high", 80))
RULES = StandingsRules(placement=2, active_days=5, divisions=BANDS, division_margin=15)


@pytest.fixture
def banded(service):
    service.create_ladder("default", "elo", rules("elo"), Settings(standings=RULES))
    return service


def random_duels(seed, count=60, players=9):
    """Duels an hour apart, now and then a quitter, among players who stop playing one after another."""
    rng = random.Random(seed)
    for number in range(count):
        present = range(number // 15, players)
        a, b = rng.sample(list(present), 2)
        yield team_match(
            4 * number, (1, f"p{a}"), (rng.choice([1, 2, 2]), f"p{b}" + ("*" if rng.random() < 0.15 else ""))
        )


def test_standings_are_those_of_the_plain_definitions(banded):
    completed, last = {}, {}
    for one in random_duels(1):
        banded.record(one)
        for team in one.teams:
            for part in team.players:
                completed[part.player] = completed.get(part.player, 0) + (not part.quit)
                if not part.quit:
                    last[part.player] = one.time
    now, told = ratings(banded), everybody(banded)
    active = {name for name in now if name in last and last[name] >= banded.clock() - 5 * DAY}
    listed = {name for name in active if completed[name] >= 2}
    assert 2 < len(listed) < len(now)
    for name, standing in told.items():
        below = sum(now[other] < now[name] for other in active)
        above = sum(now[other] > now[name] for other in active)
        assert (standing.active, standing.completed) == (name in active, completed.get(name, 0))
        if name in listed:
            assert standing.rank == 1 + sum(now[other] > now[name] for other in listed)
            assert standing.percentile == min(100, 1 + 100 * below // (below + above))
        else:
            assert (standing.rank, standing.percentile, standing.division) == (None, None, None)


def test_recorded_divisions_rise_at_once_and_fall_only_below_their_margin(banded):
    recorded, flickers = {}, 0
    for number, one in enumerate(random_duels(2, count=80)):  # 40 s: none are recorded but by this test
        banded.clock.move(seconds=0.5)
        banded.record(replace(one, played_at=after(200 + number / 60)))
        standings = everybody(banded)
        banded.divide("default")
        for name, standing in standings.items():
            if standing.percentile is None:
                continue
            plain = max(at for at, band in enumerate(BANDS) if band.lowest <= standing.percentile)
            before = recorded.get(name, plain)
            falls = standing.percentile < BANDS[before].lowest - 15
            recorded[name] = plain if plain > before or falls else before
            flickers += recorded[name] != plain
            assert standing.division == BANDS[recorded[name]].name
    assert flickers > 10


def test_divisions_are_recorded_by_themselves_as_time_goes_by(service):
    bands = (Division("low", 1), Division("high", 50))
    given = Settings(standings=StandingsRules(placement=1, divisions=bands, division_margin=30))
    service.create_ladder("default", "elo", rules("elo"), given)
    service.clock.move(days=1)
    for at, two in enumerate([("a", "b"), ("b", "c"), ("a", "c")]):  # a 100, b 51, c 1
        service.record(duel(at, *two))
    assert {name: one.division for name, one in everybody(service).items()} == {"a": "high", "b": "high", "c": "low"}
    service.clock.move(seconds=61)
    service.record(duel(10, "d", "e"))  # whoever records next notes down what was so until now
    for at, two in enumerate([("d", "b"), ("d", "b"), ("e", "b")], 11):
        service.record(duel(at, *two))
    b = everybody(service)["b"]
    assert b.percentile < 50
    assert b.division == ("high" if b.percentile >= 20 else "low")
    with service.database.read() as store:
        kept = dict(store.connection.exec_driver_sql("SELECT player, division FROM division").all())
    assert kept[b.player] == 1


def test_a_new_division_table_starts_over(banded):
    for one in random_duels(3):
        banded.record(one)
    banded.divide("default")
    others = (Division("C", 1), Division("B", 55), Division("A", 95))  # nobody was ever in these
    banded.change_settings("default", {"divisions": others})
    for standing in everybody(banded).values():
        if standing.percentile is not None:
            plain = [band.name for band in others if band.lowest <= standing.percentile][-1]
            assert standing.division == plain


RESETS = {
    # reset, factor: ratings after ann (1516) and bob (1484) played, and zed was started at 1900 and did not
    "full": (("full", None), {"ann": 1500.0, "bob": 1500.0, "zed": 1500.0}),
    "soft": (("soft", 0.25), {"ann": 1504.0, "bob": 1496.0, "zed": 1600.0}),
    "none": (("none", None), {"ann": 1516.0, "bob": 1484.0, "zed": 1900.0}),
    "the ladder's own": ((None, None), {"ann": 1508.0, "bob": 1492.0, "zed": 1700.0}),
}


@pytest.mark.parametrize(("how", "wanted"), RESETS.values(), ids=RESETS)
def test_a_season_begins_as_its_rule_says(service, ladder, how, wanted):
    service.start_ratings("default", {"zed": 1900.0})
    service.record(duel(1, "ann", "bob"))
    service.open_season("default", reset=how[0], factor=how[1])
    now = everybody(service)
    assert {name: one.rating for name, one in now.items()} == wanted
    assert now["ann"].matches == (1 if how[0] == "none" else 0)
    service.record(duel(2, "cat", "dan"))
    assert ratings(service)["cat"] == 1516.0
    assert service.verify("default").is_equal


def test_final_standings_stay_as_they_were_after_later_corrections(banded):
    for one in random_duels(4):
        banded.record(one)
    ended = everybody(banded)
    opened = banded.open_season("default", title="Winter")
    assert (opened.number, opened.title) == (2, "Winter")
    kept = banded.finals("default", 1)
    assert {one.player: one[1:] for one in kept} == {
        name: (one.rank, one.rating, one.percentile, one.division, one.matches, one.completed, None)
        for name, one in ended.items()
    }
    assert [one.rank for one in kept if one.rank] == sorted(one.rank for one in kept if one.rank)
    banded.correct("default", Ban("p5"))
    banded.correct("default", Void("m8"))
    banded.change_rules("default", "elo", rules("elo", k=10.0))
    assert banded.finals("default", 1) == kept
    assert [*banded.finals("default", 1, 1, 3), *banded.finals("default", 1, 2, 100)][:3] == kept[:3]
    with pytest.raises(UnknownNameError):
        banded.finals("default", 2)
    assert [one.closed_at is None for one in banded.seasons("default")] == [False, True]
    assert banded.verify("default").is_equal


def test_a_correction_of_the_old_season_reaches_the_new_one(service, ladder):
    service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "ann", "bob"))
    service.open_season("default", reset="soft", factor=0.5)
    service.correct("default", Void("m2"))
    assert ratings(service) == {"ann": 1508.0, "bob": 1492.0}
    assert everybody(service)["ann"].matches == 0


def test_a_view_that_catches_up_equals_a_new_one(banded):
    for one in random_duels(5):
        banded.record(one)
        caught = everybody(banded)
        banded._boards.forget("default")
        assert everybody(banded) == caught


def test_a_banned_player_is_on_no_list_and_back_when_reinstated(banded):
    for one in random_duels(6):
        banded.record(one)
    before = everybody(banded)
    chosen = next(name for name, one in before.items() if one.rank)
    banded.correct("default", Ban(chosen, "refund", since=micros(after(10_000))))  # changes no rating
    now = everybody(banded)
    assert (now[chosen].rank, now[chosen].active) == (None, False)
    assert {name: one.rating for name, one in now.items()} == {name: one.rating for name, one in before.items()}
    assert max(one.rank for one in now.values() if one.rank) == max(one.rank for one in before.values() if one.rank) - 1
    banded.correct("default", Reinstate(chosen))
    assert everybody(banded)[chosen].rank == before[chosen].rank


def test_a_player_who_was_banned_before_the_first_match_is_on_no_list_of_a_view_that_catches_up(banded):
    banded.create_ladder("other", "elo", rules("elo"))
    banded.record(duel(1, "eve", "x", ladder="other"))
    banded.correct("default", Ban("eve", "refund"))
    for number in range(241, 247):
        banded.record(duel(number, *("ab" if number < 243 else ("eve", "a"))))
        caught = everybody(banded)
        banded._boards.forget("default")
        assert caught == everybody(banded)
    assert (caught["eve"].completed, caught["eve"].rank, caught["eve"].active) == (4, None, False)


def test_a_player_who_returns_has_the_recorded_division_in_a_view_that_catches_up(service):
    bands = (Division("low", 1), Division("high", 50))
    given = Settings(standings=StandingsRules(placement=1, divisions=bands, division_margin=30))
    service.create_ladder("default", "elo", rules("elo"), given)
    service.clock.move(days=1)
    for number, pair in enumerate(("ab", "cd")):
        service.record(duel(number, *pair))
    everybody(service)
    service.clock.move(seconds=61)
    service.record(duel(2, "e", "d"))  # records the divisions: c is high
    service.correct("default", Void("m1"))
    service.record(duel(3, "b", "d"))
    assert "c" not in everybody(service)
    service.record(duel(4, "a", "c"))
    caught = everybody(service)
    assert (caught["c"].percentile, caught["c"].division) == (26, "high")  # low is below 20 for a high player
    service._boards.forget("default")
    assert caught == everybody(service)


def test_nobody_is_on_the_board_of_a_new_ladder(service, ladder):
    snapshot = service.view("default").snapshot
    assert (len(snapshot), snapshot.pages(10), snapshot.page(1, 10)) == (0, 0, [])
    assert service.open_season("default").number == 2
    assert service.finals("default", 1) == []
    assert ManualClock()() == service.clock()
