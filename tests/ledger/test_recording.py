"""Matches that are recorded: each once, whole or not at all, rated with the others and told what it did."""

import itertools
import signal
import threading
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

import evenmatch
from evenmatch import Appearance, Match, Rater, Team, rules
from evenmatch.errors import (
    BadRowsError,
    ConflictError,
    InputError,
    RatingRangeError,
    StoreError,
    UnknownNameError,
    UsageError,
)
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.recording.receipts import MatchReceipt
from evenmatch.recording.report_batch import ReportBatch
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import after, duel, dump, everybody, positions, ratings, team_match

pytestmark = pytest.mark.both_databases

LONE = (duel(1, "ann", "bob"), {"ann": 1516.0, "bob": 1484.0})  # Elo with K = 32 between equals


def test_a_receipt_tells_before_after_expected_and_position(service, ladder):
    receipt = service.record(LONE[0])
    ann, bob = receipt.teams[0][0].change, receipt.teams[1][0].change
    assert (receipt.match_id, receipt.ladder, receipt.position, receipt.rated) == ("m1", "default", 2, True)
    assert (ann.player, ann.before, ann.after, ann.expected, ann.result) == ("ann", 1500.0, 1516.0, 0.5, 1.0)
    assert (bob.player, bob.before, bob.after, bob.expected, bob.result) == ("bob", 1500.0, 1484.0, 0.5, 0.0)
    assert ratings(service) == LONE[1]


def test_receipts_of_uneven_teams_draws_and_three_sides_are_those_of_a_rater(service, ladder):
    told = [
        team_match(1, (1, "ann"), (2, "bob", "cat")),
        team_match(2, (1, "ann"), (1, "bob")),  # an unequal draw
        team_match(3, (2, "dan"), (1, "ann"), (2, "cat*")),
        team_match(60, (1, "bob~", "dan"), (2, "ann")),  # after an idle gap, with a guest
    ]
    rater = Rater(rules("elo"))
    for one in told:
        receipt = service.record(one)
        assert [[line.change for line in team] for team in receipt.teams] == [
            list(team) for team in rater.rate(one).teams
        ]


def test_the_same_report_again_changes_nothing_and_gets_the_first_receipt(service, ladder):
    first = service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "bob", "ann"))
    before = dump(service)
    assert service.record(duel(1, "ann", "bob")) == first
    assert service.record_many("default", [duel(1, "ann", "bob")] * 2) == [first, first]
    assert dump(service) == before


ANOTHER = {
    "winner": duel(1, "bob", "ann"),
    "time": Match("m1", after(1) + timedelta(microseconds=1), duel(1, "ann", "bob").teams),
    "player": duel(1, "ann", "cat"),
    "duration": duel(1, "ann", "bob", duration=60.0),
    "quit": team_match(1, (1, "ann"), (2, "bob*")),
    "guest": team_match(1, (1, "ann"), (2, "bob~")),
    "score": Match("m1", after(1), (Team.of("ann", place=1, score=2), Team.of("bob", place=2, score=1))),
    "seconds": Match("m1", after(1), (Team((Appearance("ann", seconds=0),), 1), Team.of("bob", place=2))),
    "performance": Match("m1", after(1), (Team((Appearance("ann", performance=0),), 1), Team.of("bob", place=2))),
    "entry": Match("m1", after(1), (Team((Appearance("ann", entry=0),), 1), Team.of("bob", place=2))),
    "order of teams": Match("m1", after(1), duel(1, "ann", "bob").teams[::-1]),
}


@pytest.mark.parametrize("other", ANOTHER.values(), ids=ANOTHER)
def test_the_same_id_with_other_content_is_a_conflict_and_leaves_nothing(service, ladder, other):
    service.record(LONE[0])
    before = dump(service)
    with pytest.raises(ConflictError, match="'m1' is already on ladder 'default', with other content"):
        service.record(other)
    assert dump(service) == before
    with pytest.raises(ConflictError):
        service.record(LONE[0], rated=False)


def test_the_id_of_a_correction_is_no_id_for_a_match(service, ladder):
    with pytest.raises(ConflictError, match="ladder:default"):
        service.record(replace(LONE[0], id="ladder:default"))


def test_a_match_that_the_system_cannot_rate_leaves_nothing(service):
    service.create_ladder("default", "wager", rules("wager"))
    service.record(duel(1, "ann", "bob"))
    before = dump(service)
    with pytest.raises(BadRowsError, match="3 teams"):
        service.record(team_match(2, (1, "ann"), (2, "eve"), (3, "mallory")))
    assert dump(service) == before
    service.record(
        team_match(2, (1, "ann"), (2, "eve"), (3, "mallory")), rated=False
    )  # unrated is recorded all the same
    assert everybody(service).keys() == {"ann", "bob"}


# one bad match among good ones: (it, its error)
BAD = {
    "cannot be rated": (team_match(5, (1, "ann"), (2, "eve"), (3, "dan")), BadRowsError),
    "conflict": (duel(1, "eve", "dan"), ConflictError),
    "NUL in a name": (duel(5, "ann\0", "bob"), InputError),
    "NUL in its id": (replace(duel(5, "ann", "bob"), id="m\0"), InputError),
}


@pytest.mark.parametrize(("bad", "error"), BAD.values(), ids=BAD)
def test_one_bad_match_of_a_batch_does_not_harm_the_others(service, bad, error):
    service.create_ladder("default", "wager", rules("wager"))
    service.record(duel(1, "ann's old name", "bob"))
    service.rename("ann's old name", "ann")
    outcomes = service.record_many("default", [duel(2, "ann", "bob"), bad, duel(3, "bob", "cat")])
    assert isinstance(outcomes[1], error), outcomes[1]
    assert [outcomes[0].position, outcomes[2].position] == [4, 5]
    assert service.verify("default").is_equal


def test_a_rating_out_of_range_is_the_fault_of_its_match_alone(service):
    service.create_ladder("default", "wager", rules("wager"))
    service.start_ratings("default", dict.fromkeys(("rich", "richer"), 8.9e11))  # wager ends at 9e11
    told = [duel(1, "ann", "bob"), duel(2, "rich", "richer"), duel(3, "cat", "ann")]
    outcomes = service.record_many("default", told)
    assert [type(one) for one in outcomes] == [MatchReceipt, RatingRangeError, MatchReceipt]
    assert "'m2'" in str(outcomes[1])
    assert "'rich'" in str(outcomes[1])
    assert ratings(service)["rich"] == 8.9e11
    assert service.verify("default").is_equal


@pytest.mark.parametrize(
    ("duration", "seconds"), [(-0.0, None), (None, -0.0)], ids=["of the match", "the longest of a player"]
)
def test_a_duration_of_minus_zero_is_recorded_as_zero(service, ladder, tmp_path, duration, seconds):
    teams = tuple(Team((Appearance(name, seconds=seconds),), place) for place, name in enumerate("ab", 1))
    service.record(Match("m1", after(1), teams, duration=duration))
    service.record(Match("m1", after(1), teams, duration=None if duration is None else 0.0))  # the same match
    file = tmp_path / "matches.csv"
    cells = ",".join("" if value is None else "-0" for value in (duration, seconds))
    rows = [f"m2,2026-01-02,{team},{player},{team + 1},{cells}" for team, player in enumerate("ab")]
    file.write_text("\n".join(["match_id,played_at,team,player,place,duration,seconds", *rows]))
    service.import_matches("default", evenmatch.read(file))
    with service.database.read() as store:
        durations = store.all("SELECT duration FROM event WHERE kind = 'match-recorded'")
    assert [str(value) for (value,) in durations] == ["0.0", "0.0"]
    assert service.verify("default").is_equal


def test_two_ladders_are_independent_and_share_their_players(service, ladder):
    service.create_ladder("other", "elo", rules("elo"))
    service.record(duel(1, "ann", "bob"))
    before = ratings(service)
    service.record(duel(1, "bob", "ann", ladder="other"))  # the same id: ids are a ladder's own
    service.record(duel(2, "bob", "cat", ladder="other"))
    assert ratings(service) == before
    assert ratings(service, "other").keys() == {"ann", "bob", "cat"}
    assert everybody(service)["ann"].player == everybody(service, "other")["ann"].player
    assert positions(service) == [1, 2]
    assert positions(service, "other") == [1, 2, 3]


def test_a_ladder_or_a_match_of_another_ladder_is_refused(service, ladder):
    with pytest.raises(UnknownNameError, match="did you mean 'default'"):
        service.record(duel(1, "ann", "bob", ladder="defualt"))
    with pytest.raises(UsageError, match="expected matches of ladder 'default'"):
        service.record_many("default", [duel(1, "ann", "bob", ladder="other")])


def test_unrated_matches_and_guests_change_no_rating(service, ladder):
    service.record(duel(1, "ann", "bob"))
    before = ratings(service)
    receipt = service.record(duel(2, "bob", "cat"), rated=False)
    assert (receipt.rated, receipt.teams) == (False, ())
    assert ratings(service) == before
    service.record(team_match(3, (1, "bob~"), (2, "ann")))
    now = everybody(service)
    assert now["bob"].rating == before["bob"]
    assert now["ann"].rating < before["ann"]
    assert {name: one.matches for name, one in now.items()} == {"ann": 2, "bob": 1}


def test_percentile_and_division_stand_in_a_receipt_once_a_player_is_placed(service):
    bands = (Division("low", 1), Division("high", 60))
    placed = Settings(standings=StandingsRules(placement=2, divisions=bands))
    service.create_ladder("default", "elo", rules("elo"), placed)
    first = [service.record(duel(at, *two)) for at, two in enumerate([("a", "b"), ("c", "d"), ("a", "c"), ("b", "d")])]
    assert [line.percentile for team in first[0].teams for line in team] == [None, None]
    service.view("default")  # a > c > b > d, all of them placed
    told = service.record(duel(10, "a", "b"))
    # Among four active: nobody is above a, so 100; only d is below b's new rating, so 1 + 100 * 1 // 3 of b's rivals;
    # see test_percentile for the definition.
    assert (told.teams[0][0].percentile, told.teams[0][0].division) == (100, "high")
    assert (told.teams[1][0].percentile, told.teams[1][0].division) == (34, "low")
    assert service.record(duel(10, "a", "b")) == told


def test_a_receipt_shows_percentile_and_division_as_the_standings_do_from_the_first_match_on(service, clock):
    """Matches of uneven teams, three sides and a quitter; "long ago" becomes inactive before the last of them."""
    shown = Settings(standings=StandingsRules(placement=1, active_days=5, division_margin=0))
    service.create_ladder("default", "elo", rules("elo"), shown)
    sides = [
        [(1, "ann"), (2, "bob")],
        [(1, "long ago", "cat"), (2, "dan")],
        [(1, "dan"), (1, "ann"), (3, "eve")],
        [(2, "bob", "fay*"), (1, "eve", "gil")],
        [(1, "cat", "gil", "bob"), (2, "ann", "dan")],
        [(2, "eve"), (1, "hal")],
    ]
    for number, teams in enumerate(sides):
        clock.move(days=2)
        service.view("default")
        receipt = service.record(team_match(number, *teams, at=240 + 48 * (number + 1)))
        snapshot = service.view("default").snapshot
        for team in receipt.teams:
            for line in team:
                now = snapshot.standing(service.player(line.change.player))
                assert (line.percentile, line.division) == (now.percentile, now.division), (number, line.change.player)


def test_two_services_of_one_database_see_each_other(store_url, clock):
    with Service.open(store_url, clock) as one, Service.open(store_url, clock) as other:
        one.create_ladder("default", "elo", rules("elo"))
        one.record(duel(1, "a", "b"))
        other.record(duel(2, "a", "b"))
        assert ratings(one) == ratings(other)
        other.change_rules("default", "elo", rules("elo", k=64.0), start=False)
        assert one.record(duel(3, "c", "d")).teams[0][0].change.after == 1532.0
        other.change_rules("default", "wager", rules("wager"))
        assert one.record(duel(4, "c", "d")).teams[0][0].change.before == 1.05
        assert ratings(one) == ratings(other)
        assert one.verify("default").is_equal


def test_threads_that_record_at_once_get_their_own_receipts(service, ladder):
    count, each = 8, 12
    got, errors = {}, []

    def work(number):
        rng = np.random.default_rng(number)
        try:
            for at in range(each):
                a, b = rng.choice(10, 2, replace=False).tolist()
                one = replace(duel(at, f"p{a}", f"p{b}"), id=f"{number} {at}")
                got[one.id] = (one, service.record(one))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sorted(receipt.position for _, receipt in got.values()) == list(range(2, 2 + count * each))
    assert positions(service) == list(range(1, 2 + count * each))
    rater = Rater(rules("elo"))
    for one, receipt in sorted(got.values(), key=lambda both: both[1].position):
        assert [[line.change for line in team] for team in receipt.teams] == [
            list(team) for team in rater.rate(one).teams
        ]
        assert service.record(one) == receipt
    assert service.verify("default").is_equal


def test_receipts_go_by_what_another_process_has_just_changed(service, made_url, clock):
    service.create_ladder("default", "elo", rules("elo"), Settings(standings=StandingsRules(placement=1)))
    for at, two in enumerate([("a", "b"), ("b", "c"), ("a", "c")]):
        service.record(duel(at, *two))
    service.view("default")
    with Service.open(made_url, clock) as other:
        other.change_settings("default", {"divisions": [["low", 1], ["high", 60]]})
        other.change_rules("default", "wager", rules("wager"))  # ratings near 1, all of them below any of Elo's
    told = service.record(duel(3, "a", "b"))
    assert [(one.percentile, one.division) for (one,) in told.teams] == [(100, "high"), (1, "low")]
    assert service.record(duel(3, "a", "b")) == told


LONG = "x" * 257


def gathered(*late):
    """Takes these matches, each a report of its own, under the lock, up to the first that must not join."""

    def gather(fits):
        reports = [ReportBatch.of([match], [True]) for match in late]
        return list(itertools.takewhile(fits, reports))

    return gather


@pytest.mark.parametrize("late", [[], ["m2"], ["m2", "m3"]])
def test_matches_that_join_under_the_lock_are_rated_after_those_that_were_prepared(service, ladder, late):
    matches = [duel(1, "ann", "bob"), duel(2, "bob", "eve"), team_match(3, (2, "ann"), (1, "eve", "joe"))]
    prepared = service.recorder.prepare("default", ReportBatch.of(matches[:1], [True]))
    receipts = service.recorder.write(prepared, gather=gathered(*matches[1 : 1 + len(late)])).outcomes
    rater = Rater(rules("elo"))
    expected = [list(map(list, rater.rate(match).teams)) for match in matches[: 1 + len(late)]]
    assert [[[line.change for line in team] for team in receipt.teams] for receipt in receipts] == expected
    assert [receipt.match_id for receipt in receipts] == ["m1", *late]
    assert service.verify("default").is_equal


def test_an_invalid_match_that_joined_is_refused_alone(service, ladder):
    prepared = service.recorder.prepare("default", ReportBatch.of([duel(1, "ann", "bob")], [True]))
    gather = gathered(duel(2, "ann", "x\0"), duel(3, "bob", "eve"))
    first, second, third = service.recorder.write(prepared, gather=gather).outcomes
    assert isinstance(second, InputError)
    assert (first.match_id, third.match_id) == ("m1", "m3")
    assert ratings(service)["ann"] == 1516.0
    assert service.verify("default").is_equal


def test_a_match_that_is_too_large_does_not_join(service, clock):
    service.create_ladder("default", "elo", rules("elo"), Settings(player_limit=4))
    prepared = service.recorder.prepare("default", ReportBatch.of([duel(1, "ann", "bob")], [True]))
    gather = gathered(team_match(2, (1, "ann", "joe"), (2, "eve", "kim", "zoe")))
    assert len(service.recorder.write(prepared, gather=gather).outcomes) == 1


def test_a_text_that_no_database_could_find_again_is_refused_and_spares_the_others(service, ladder):
    bad = [duel(1, LONG, "b"), Match(LONG, after(1), duel(1, "a", "b").teams)]
    told = service.record_many("default", [duel(0, "a", "b"), *bad, *(duel(at, "a", "c") for at in range(2, 9))])
    assert [isinstance(one, MatchReceipt) for one in told] == [True, False, False, *[True] * 7]
    assert all("257 characters; expected at most 256" in str(told[at]) for at in (1, 2))
    assert positions(service) == list(range(1, 10))
    assert service.record(duel(9, LONG[1:], "b")).rated


class GaveUpError(Exception):
    """Somebody did not want to wait any longer."""


def test_a_caller_that_gives_up_waiting_lets_the_others_go_on(service, ladder):
    held, release, told = threading.Event(), threading.Event(), []

    def hold():
        with service._write("default"):
            held.set()
            release.wait(20)

    def give_up(*_):
        raise GaveUpError

    holder = threading.Thread(target=hold)
    leader = threading.Thread(target=lambda: told.append(service.record(duel(1, "a", "b"))))
    before = signal.signal(signal.SIGUSR1, give_up)
    alarm = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1))
    try:
        holder.start()
        assert held.wait(20)
        leader.start()
        while "default" not in service.recorder.together._waiting:
            time.sleep(0.01)
        alarm.start()
        with pytest.raises(GaveUpError):
            service.record(duel(2, "a", "b"))
    finally:
        alarm.cancel()
        signal.signal(signal.SIGUSR1, before)
        release.set()
    last = threading.Thread(target=lambda: told.append(service.record(duel(3, "a", "b"))), daemon=True)
    for thread in (holder, leader, last):
        if thread is last:
            thread.start()
        thread.join(20)
        assert not thread.is_alive()
    assert [one.match_id for one in told] == ["m1", "m3"]
    assert positions(service) == [1, 2, 3]


def test_a_bug_is_raised_to_the_leading_caller_and_the_others_are_told_to_retry(service, ladder):
    begun, go, told = threading.Event(), threading.Event(), {}
    real = service.recorder.record

    def fail(_, sheet):
        begun.set()
        go.wait(20)
        raise KeyboardInterrupt if sheet.ids == ["m1"] else ZeroDivisionError

    def record(number):
        try:
            service.record(duel(number, "a", "b"))
        except BaseException as error:
            told[number] = error

    threads = [threading.Thread(target=record, args=(number,)) for number in (1, 2, 3)]
    service.recorder.record = fail
    threads[0].start()
    assert begun.wait(20)
    for waiting, thread in enumerate(threads[1:], 1):
        thread.start()
        while len(service.recorder.together._waiting["default"]) < waiting:
            time.sleep(0.01)
    go.set()
    for thread in threads:
        thread.join(20)
    service.recorder.record = real
    assert [type(told[number]) for number in (1, 2, 3)] == [KeyboardInterrupt, ZeroDivisionError, StoreError]
    assert "(ZeroDivisionError()); send it again" in str(told[3])
    assert service.recorder.together._waiting == {}
    assert service.record(duel(1, "a", "b")).position == 2
