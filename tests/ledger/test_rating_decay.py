"""Ratings of inactive players that fall by an event of the ledger: by hand, replayed, corrected, and applied twice."""

import itertools
import json
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

from evenmatch import rules, systems
from evenmatch.corrections.corrections import Ban, Unvoid, Void
from evenmatch.errors import BadParameterError, ConflictError
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.settings import Settings
from evenmatch.match import Appearance, Match, Team
from evenmatch.operations.service import Service
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import START, after, duel, everybody, micros, positions, ratings, team_match
from ledger.test_concurrent_writes import at_once

BANDS = (Division("low", 1), Division("middle", 40), Division("high", 80))


@pytest.fixture
def decaying(service, clock):
    """A ladder since 1 January: 10 points a week after three idle days, from two completed matches on."""
    clock.now = micros(START)
    return made(service)


def made(service, system="elo", **changes):
    rule = {"placement": 2, "active_days": 365, "divisions": BANDS, "inactivity": "rating", "grace_days": 3}
    settings = Settings(standings=StandingsRules(**rule), rating_decay=10.0).changed(changes)
    service.create_ladder("default", system, rules(system), settings)
    return DailyDecay(service)


def on(clock, day, hour=0):
    """Let it be this day of January 2026."""
    clock.now = micros(after(24 * (day - 1) + hour))


def decays(service):
    """What the decays of the ladder say, in order."""
    with service.database.read() as store:
        sql = "SELECT body FROM event WHERE kind = 'ratings-decayed' ORDER BY position"
        return [json.loads(body) for body in store.connection.execute(sa.text(sql)).scalars()]


def win(own, other):
    """Elo's points for a win, with K 32."""
    return 32 * (1 - 1 / (1 + 10 ** ((other - own) / 400)))


def test_a_rating_falls_for_each_whole_week_after_the_grace_days(service, clock, decaying):
    service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "ann", "bob"))  # 02:00 on 1 January; the first week ends at 02:00 on the 11th
    ann, bob = 1516 + win(1516, 1484), 1484 - win(1516, 1484)
    on(clock, 6)
    service.record(duel(97, "cat", "bob"))
    service.record(duel(98, "cat", "bob"))  # 02:00 on 5 January
    first, second = win(1500, bob), win(1500 + win(1500, bob), bob - win(1500, bob))
    cat, bob = 1500 + first + second, bob - first - second
    assert ratings(service) == pytest.approx({"ann": ann, "bob": bob, "cat": cat})
    assert 30 < ann - 1500 < 40  # three whole weeks, and a part of 10 down to a newcomer's rating
    assert 20 < cat - 1500 < 30
    fallen = {}
    for day in range(6, 45):
        on(clock, day, 13)
        result = decaying.apply("default")
        if result is not None:
            assert (result.position, result.until) == (positions(service)[-1], micros(after(24 * (day - 1))))
            assert result.players == 1
            fallen[day] = ratings(service)["ann"], ratings(service)["cat"]
    wanted = {
        12: (ann - 10, cat),
        16: (ann - 10, cat - 10),
        19: (ann - 20, cat - 10),
        23: (ann - 20, cat - 20),
        26: (ann - 30, cat - 20),
        30: (ann - 30, 1500.0),
        33: (1500.0, 1500.0),
    }
    assert list(fallen) == list(wanted)
    assert [*fallen.values()] == [pytest.approx(pair) for pair in wanted.values()]
    assert ratings(service)["bob"] == pytest.approx(bob)
    assert service.verify("default").is_equal


def test_weeks_count_once_however_rarely_it_is_applied(service, clock, decaying):
    for number in range(6):
        service.record(duel(number, "ann", f"b{number % 2}"))
    ann = ratings(service)["ann"]
    on(clock, 27)  # weeks ended on the 11th, the 18th and the 25th
    assert decaying.apply("default").players == 1
    assert ratings(service)["ann"] == pytest.approx(ann - 30)
    assert decaying.apply("default") is None
    on(clock, 40, 23)  # two more
    decaying.apply("default")
    assert ratings(service)["ann"] == pytest.approx(ann - 50)
    assert [event["until"] for event in decays(service)] == [micros(after(24 * 26)), micros(after(24 * 39))]


def test_a_completed_match_ends_idle_time_and_a_match_that_was_quit_does_not(service, clock, decaying):
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
        service.record(duel(10 + number, "eve", "bob"))
    on(clock, 10)
    service.record(duel(215, "ann", "zoe"))  # 23:00 on 9 January
    service.record(team_match(216, (1, "zoe"), (2, "eve*")))
    before = ratings(service)
    on(clock, 12)
    decaying.apply("default")
    now = ratings(service)
    assert {name: round(now[name] - before[name], 6) for name in now if now[name] != before[name]} == {"eve": -10.0}
    assert service.verify("default").is_equal


def test_a_player_idle_when_the_rule_arrives_gets_all_grace_days(service, clock):
    clock.now = micros(START)
    decaying = made(service, inactivity="leave")
    for number in range(3):
        service.record(duel(number, "ann", "bob"))
    on(clock, 300)
    with pytest.raises(ConflictError, match=r"inactivity=leave; expected inactivity=rating"):
        decaying.apply("default")
    assert decaying.step() == []
    ann = ratings(service)["ann"]
    on(clock, 301, 5)
    service.change_settings("default", {"inactivity": "rating"})
    service.change_settings("default", {"title": "Duels"})
    on(clock, 310, 23)
    assert decaying.apply("default") is None
    on(clock, 312)
    assert decaying.apply("default").players == 1
    assert ratings(service)["ann"] == pytest.approx(ann - 10)
    service.change_settings("default", {"inactivity": "leave"})
    on(clock, 400)
    service.change_settings("default", {"inactivity": "rating"})
    on(clock, 409)
    assert decaying.apply("default") is None  # the weeks in between count for nothing


def test_players_who_have_no_rank_in_this_season_keep_their_rating(service, clock, decaying):
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
    service.record(duel(5, "one match", "bob"))
    service.start_ratings("default", {"none": 1900.0})
    service.open_season("default", reset="soft", factor=0.5)
    before = ratings(service)
    on(clock, 40)
    assert decaying.apply("default") is None
    assert ratings(service) == before
    service.record(duel(24 * 39 + 1, "ann", "bob"))
    service.record(duel(24 * 39 + 2, "ann", "bob"))
    ann = ratings(service)["ann"]
    on(clock, 52)
    decaying.apply("default")
    now = ratings(service)
    assert (now["ann"], now["one match"]) == (pytest.approx(ann - 10), before["one match"])
    assert service.verify("default").is_equal


def test_a_division_stops_the_fall_at_its_lowest_rating_of_that_moment(service, clock):
    clock.now = micros(START)
    decaying = made(service, rating_stop="high", rating_floor=-1000.0)
    players = [f"p{number}" for number in range(6)]
    for number, (winner, loser) in enumerate([(a, b) for b in range(6) for a in range(b)]):
        service.record(duel(number, players[winner], players[loser]))
    cuts = {cut.division.name: cut.rating for cut in service.view("default").snapshot.cuts()}
    before = ratings(service)
    best, second = sorted(before, key=before.get, reverse=True)[:2]  # of percentiles 1, 21, 41, 61, 81, 100
    assert cuts["high"] == before[second] < before[best]
    service.change_settings("default", {"rating_decay": 25.0})
    on(clock, 40)
    decaying.apply("default")
    now = ratings(service)
    assert now == before | {best: before[second]}
    (told,) = decays(service)
    assert (told["stop"], told["bound"], told["floor"], told["rate"]) == ("high", before[second], before[second], 25.0)
    service.change_settings("default", {"divisions": (*BANDS[:2], Division("top", 90)), "rating_stop": "top"})
    service.rebuild("default", whole=True)
    assert ratings(service) == now  # the event holds the bound
    assert service.verify("default").is_equal


def play_and_decay(service, clock, decaying, days=40):
    """Some weeks in which p0 stops early and comes back, p1 stops later, and the others play on."""
    number = itertools.count(1000)
    for day in range(1, days):
        on(clock, day, 6)
        decaying.apply("default")
        pairs = [("p2", "p3"), ("p3", "p2")] if day % 2 else [("p4", "p2")]
        pairs += [("p0", "p3")] if day <= 4 or day in (30, 31) else []
        pairs += [("p1", "p4")] if day <= 9 else []
        for winner, loser in pairs:
            service.record(replace(duel(next(number), winner, loser), played_at=after(24 * (day - 1) + 6)))


def test_idle_players_are_determined_again_when_history_is_corrected(service, clock, decaying):
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
    on(clock, 10)
    service.record(duel(210, "ann", "zoe"))  # 18:00 on 9 January
    on(clock, 12, 1)
    assert decaying.apply("default") is None
    service.record(duel(264, "cat", "dan"))
    on(clock, 27)
    decaying.apply("default")  # two of ann's weeks ended, on the 19th and the 26th
    four = 1500.0
    for _ in range(4):
        four += win(four, 3000 - four)
    assert ratings(service)["ann"] == pytest.approx(four + win(four, 1500) - 20)
    service.correct("default", Void("m210"))  # so she was idle since 03:00 on the 1st: weeks ended on 11, 18, 25
    assert ratings(service)["ann"] == pytest.approx(four - 30)
    assert service.verify("default").is_equal
    foreseen = service.preview("default", Unvoid("m210"))
    service.correct("default", Unvoid("m210"))
    assert ratings(service)["ann"] == pytest.approx(four + win(four, 1500) - 20)
    (ann,) = [move for move in foreseen.moves if move.player == "ann"]
    assert (ann.before, ann.after) == (pytest.approx(four - 30), pytest.approx(four + win(four, 1500) - 20))
    assert service.verify("default").is_equal


def test_corrections_before_and_after_many_decays_leave_what_a_replay_gives(service, clock, decaying):
    play_and_decay(service, clock, decaying)
    for wish in (Void("m1003"), Ban("p4"), Void("m1012")):
        foreseen = service.preview("default", wish)
        before = ratings(service)
        service.correct("default", wish)
        moved = {one.player: (one.before, one.after) for one in foreseen.moves}
        now = ratings(service)
        assert moved == {name: (before[name], now.get(name)) for name in before if before[name] != now.get(name)}
        assert service.verify("default").is_equal
    on(clock, 60)
    assert decaying.apply("default") is not None
    assert service.verify("default").is_equal


def test_two_processes_applying_decay_at_once_apply_it_once(service, clock, decaying, made_url):
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
    ann = ratings(service)["ann"]
    on(clock, 12)
    with Service.open(made_url, clock) as other:
        results = at_once(*[lambda by=by: DailyDecay(by).apply("default") for by in (service, other)] * 2)
    assert [result.players for result in results if result is not None] == [1]
    assert len(decays(service)) == 1
    assert ratings(service)["ann"] == pytest.approx(ann - 10)


def test_the_worker_applies_it_once_a_day_on_the_ladders_that_want_it(service, clock, decaying):
    service.create_ladder("other", "elo", rules("elo"))
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
    assert decaying.step() == []
    on(clock, 12, 1)
    assert [result.players for result in decaying.step()] == [1]
    assert decaying.step() == []
    restarted = DailyDecay(service)
    assert restarted.step() == []
    on(clock, 19, 1)
    assert [result.players for result in restarted.step()] == [1]
    service.change_settings("default", {"archived": True})
    on(clock, 26, 1)
    assert decaying.step() == []
    with pytest.raises(ConflictError, match="archived"):
        decaying.apply("default")
    on(clock, 200)
    service.change_settings("default", {"archived": False})
    on(clock, 209)
    assert decaying.step() == []  # all grace days begin when it is opened again
    on(clock, 211)
    assert [result.players for result in decaying.step()] == [1]


def test_a_preview_is_what_then_happens(service, clock, decaying):
    play_and_decay(service, clock, decaying, days=10)
    on(clock, 16)
    foreseen = decaying.preview("default")
    assert foreseen == decaying.preview("default")
    before = everybody(service)
    result = decaying.apply("default")
    now = everybody(service)
    moved = {one.player: (one.before, one.after, one.matches_before, one.matches_after) for one in foreseen.moves}
    assert moved == {
        name: (one.rating, now[name].rating, one.matches, one.matches)
        for name, one in before.items()
        if one.rating != now[name].rating
    }
    assert (len(moved), foreseen.players) == (result.players, len(before))
    assert decaying.preview("default").moves == []
    later = decaying.preview("default", days=9)
    on(clock, 25)
    assert {one.player for one in later.moves} == {
        name for name, one in everybody_after(service, decaying).items() if one.rating != now[name].rating
    }


def everybody_after(service, decaying):
    decaying.apply("default")
    return everybody(service)


def test_another_system_forgets_what_fell_in_points_of_the_one_before(service, clock, decaying):
    play_and_decay(service, clock, decaying, days=30)
    service.change_rules("default", "glicko", rules("glicko"))
    assert service.verify("default").is_equal
    plain = ratings(service)
    assert decaying.apply("default") is None  # all grace days begin with the change
    on(clock, 45)
    assert decaying.apply("default") is not None
    assert ratings(service) != plain
    service.change_rules("default", "elo", rules("elo"))
    assert service.verify("default").is_equal


@pytest.mark.parametrize("name", systems.names())
def test_ratings_of_every_system_fall_and_go_on_from_there(service, clock, name):
    clock.now = micros(START)
    decaying = made(service, name, rating_decay=0.25)
    for number in range(6):
        service.record(with_scores(number, "ann", "bob"))
        service.record(with_scores(10 + number, "cat", "dan"))
    first, before = rules(name).newcomers(1)["rating"][0], ratings(service)
    assert before["ann"] > first + 0.25
    on(clock, 12)
    assert decaying.apply("default").players == sum(rating > first for rating in before.values())
    now = ratings(service)
    wanted = {who: rating if rating <= first else max(rating - 0.25, first) for who, rating in before.items()}
    assert now == pytest.approx(wanted, abs=1e-9 if name != "wager" else 0.005)
    receipt = service.record(with_scores(250, "ann", "cat"))
    assert [team[0].change.before for team in receipt.teams] == pytest.approx([now["ann"], now["cat"]])
    assert service.verify("default").is_equal
    service.change_settings("default", {"rating_floor": -1e9, "rating_decay": 1e5})
    on(clock, 40)
    decaying.apply("default")
    floors = {"wager": 1.0, "trophies": 0.0, "battlepoints": 700.0, "scorefactor": 100.0, "planeswalker": 0.0}
    for rating in ratings(service).values():
        rules(name).starting(np.array([rating]))  # the system can hold it
        assert rating == floors[name] if name in floors else rating < -1e4 or name == "elommr"
    assert service.verify("default").is_equal


def with_scores(number, winner, loser):
    """A duel with all that any system needs."""
    teams = (
        Team((Appearance(winner, score=30.0, seconds=900.0),), 1, 3.0),
        Team((Appearance(loser, 10.0, 900.0),), 2, 1.0),
    )
    return Match(f"m{number}", after(number), teams, "default", 900.0)


WRONG = [
    ({"inactivity": "rating"}, "rating_decay=0: expected more than 0 points per week"),
    ({"inactivity": "sleep"}, "inactivity='sleep': expected leave, percentile or rating"),
    ({"rating_stop": "Wood"}, "rating_stop='Wood': expected the name of a division, or none: Bronze, Silver"),
    (
        {"rating_stop": "Gold", "divisions": [("A", 1), ("B", 50)]},
        "rating_stop='Gold': expected the name of a division",
    ),
    ({"grace_days": -1}, "grace_days=-1: expected a number from 0"),
    ({"percentile_floor": 0}, "percentile_floor=0: expected a whole number from 1 to 100"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[message[:30] for _, message in WRONG])
def test_settings_that_say_nothing_sensible_are_refused(changes, message):
    with pytest.raises(BadParameterError) as caught:
        Settings().changed(changes)
    assert message in str(caught.value)


def test_no_rating_falls_while_nobody_is_in_the_division_that_stops_it(service, clock):
    clock.now = micros(START)
    decaying = made(service, rating_stop="high", active_days=2)
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
    on(clock, 40)
    assert decaying.apply("default") is None


def test_matches_with_the_ids_of_decays_keep_no_rating_from_falling(service, clock, decaying):
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
    ann = ratings(service)["ann"]
    for day in (12, 19):  # as a reporter may have sent ahead
        service.record(replace(duel(10, "cat", "dan"), id=f"decay:2026-01-{day}"), rated=False)
    on(clock, 12)
    assert [result.players for result in decaying.step()] == [1]
    assert decaying.step() == []
    assert DailyDecay(service).step() == []
    on(clock, 19)
    assert [result.players for result in decaying.step()] == [1]
    assert ratings(service)["ann"] == pytest.approx(ann - 20)
    assert len(decays(service)) == 2
    assert service.verify("default").is_equal


def test_who_records_and_who_applies_it_at_once_come_one_after_the_other(service, clock, decaying, made_url):
    play_and_decay(service, clock, decaying, days=8)
    with Service.open(made_url, clock) as other:
        for day in range(9, 40):
            on(clock, day, 7)
            match = replace(duel(5000 + day, "p2", "p3"), played_at=after(24 * (day - 1) + 7))
            recorded, _ = at_once(lambda match=match: service.record(match), lambda: DailyDecay(other).apply("default"))
            assert not isinstance(recorded, Exception)
    assert len(decays(service)) > 4
    assert service.verify("default").is_equal


def test_a_running_worker_applies_what_is_due_and_ends_when_asked(service, clock, decaying):
    for number in range(4):
        service.record(duel(number, "ann", "bob"))
    stop = threading.Event()
    worker = threading.Thread(target=DailyDecay(service, every=0.01).run, args=(stop,), daemon=True)
    worker.start()
    try:
        for day, count in ((12, 1), (19, 2)):
            on(clock, day, 1)
            end = time.monotonic() + 30
            while len(decays(service)) < count:
                assert time.monotonic() < end
                time.sleep(0.01)
    finally:
        stop.set()
        worker.join(30)
    assert not worker.is_alive()
    assert service.verify("default").is_equal
