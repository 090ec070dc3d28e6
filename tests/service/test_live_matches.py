"""Live matches: announced, followed, closed into the ledger. Every number is computed by hand."""

import json
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa

from evenmatch import rules
from evenmatch.errors import BadRowsError, ConflictError, InputError, UnknownNameError
from evenmatch.ledger import player_rows
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.live import live_matches
from evenmatch.live import slots as slots_rows
from evenmatch.live.attendance import Ending, PlayerEnd, Presence, TeamEnd
from evenmatch.live.live_matches import Running
from evenmatch.match import Appearance, Match, Team
from evenmatch.matchmaking import Policy
from evenmatch.queues import stored_queues
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_sql import Seat, insert_missing_seats
from evenmatch.queues.stored_queues import QueueSetup, strike

pytestmark = pytest.mark.both_databases

SECOND = 1_000_000
ONE_DATABASE = pytest.mark.parametrize(
    "store_url", ["sqlite"], indirect=True
)  # the behavior under test does not depend on it
TEAMS = [["ann", "bob"], ["cid", "dan"]]
WON = Ending((TeamEnd(1), TeamEnd(2)))


@pytest.fixture
def running(service, ladder):
    return Running(service)


@pytest.fixture
def start(clock):
    return clock.now


def time_after(start, seconds):
    return start + round(seconds * SECOND)


def select_rows(service, sql, **values):
    with service.database.read() as store:
        return [tuple(row) for row in store.connection.execute(sa.text(sql), values).all()]


def seated_players(service):
    """Who has a seat in which match, by name."""
    return dict(select_rows(service, "SELECT p.name, s.match_id FROM seat s JOIN player p ON p.player = s.player"))


def change_numbers(service):
    """Of every match its last change, and how many changes were counted."""
    last = select_rows(service, "SELECT change FROM line")[0][0]
    return dict(select_rows(service, "SELECT match_id, change FROM live")), last


SLOT = np.dtype(
    [("score", "<f8"), ("seconds", "<f8"), ("performance", "<f8"), ("quit", "u1"), ("", "V3"), ("entry", "<f4")]
)


def recorded_times(service, match_id):
    """seconds, quit of everybody in a recorded match, by name, and its duration: as its bytes in the ledger say."""
    (row,) = select_rows(service, "SELECT duration, players, slots FROM event WHERE id = :id", id=match_id)
    names = dict(select_rows(service, "SELECT player, name FROM player"))
    slots = np.frombuffer(bytes(row[2]), SLOT)
    players = [names[one] for one in np.frombuffer(bytes(row[1]), "<i8").tolist()]
    told = zip(slots["seconds"].tolist(), slots["quit"].tolist(), strict=True)
    return dict(zip(players, told, strict=True)), row[0]


def make_queue(service, ladder="duel", name="ranked", **options):
    with service.database.write() as store:
        number = store.head(ladder).ladder
        change = reserve_changes(store, number, 1)
        setup = QueueSetup(name, change, Policy(team_size=2, teams=2), QueueRules(**options))
        stored_queues.put(store, number, setup)


def make_match(service, clock, match_id="q-1", ladder="duel", queue="ranked", teams=TEAMS):
    """A match as the queue makes it: its row, and everybody's seat."""
    with service.database.write() as store:
        number = store.head(ladder).ladder
        ids, _ = player_rows.admit(store, [name for team in teams for name in team])
        change = reserve_changes(store, number, 1)
        body = {
            "teams": [[{"player": one, "id": ids[one], "ticket": 7, "role": None} for one in team] for team in teams],
            "region": "eu",
            "odds": [0.5, 0.5],
            "spread": 3.0,
        }
        slots_rows.begin(store, number, match_id, change, queue, clock.now, clock.now + 7200 * SECOND, body)
        insert_missing_seats(store, dict.fromkeys(ids.values(), Seat(number, None, match_id)))


def penalties_by_name(service):
    """Strikes and until when, by name."""
    found = select_rows(
        service, "SELECT p.name, x.strikes, x.until FROM penalty x JOIN player p ON p.player = x.player"
    )
    return {name: (strikes, until) for name, strikes, until in found}


# the whole life


def test_an_announced_match_is_on_until_it_is_closed_into_the_ledger(service, running, ladder, clock, start):
    told = running.announce(ladder, "m1", TEAMS, started_at=start)
    assert (told.state, told.queue, told.made_by, told.confirmed) == ("open", None, "announcement", True)
    assert told.expires_at == time_after(start, 7200)
    assert [[one.player for one in team] for team in told.teams] == TEAMS
    assert seated_players(service) == dict.fromkeys(("ann", "bob", "cid", "dan"), "m1")

    clock.move(seconds=600)
    receipt = running.close(ladder, "m1", WON)

    assert (receipt.match_id, receipt.rated) == ("m1", True)
    assert [line.change.player for team in receipt.teams for line in team] == ["ann", "bob", "cid", "dan"]
    assert receipt.teams[0][0].change.after > receipt.teams[0][0].change.before
    assert recorded_times(service, "m1") == (dict.fromkeys(("ann", "bob", "cid", "dan"), (600.0, 0)), 600.0)
    assert seated_players(service) == {}
    status = running.status(ladder, "m1")
    assert (status.state, status.ended_at) == ("closed", time_after(start, 600))
    assert not any(one.there for team in status.teams for one in team)


def test_seconds_are_those_of_the_spells_and_who_is_gone_at_the_end_has_quit(service, running, ladder, clock, start):
    running.announce(ladder, "m1", [["ann", "bob", "eve"], ["cid", "dan", "fay"]], started_at=start)
    clock.move(seconds=1000)
    running.leaves(
        ladder,
        "m1",
        [
            Presence("ann", time_after(start, 100)),  # away from 100 to 160, and from 400 to 405.5
            Presence("bob", time_after(start, 250.25)),  # gone for good
            Presence("ann", time_after(start, 160), back=True),
            Presence("cid", time_after(start, 900)),  # in the very moment in which it ends
            Presence("ann", time_after(start, 400)),
            Presence("ann", time_after(start, 405.5), back=True),
            Presence("dan", time_after(start, 50)),
            Presence("dan", time_after(start, 950), back=True),  # too late: it was over
            Presence("eve", time_after(start, 899.999999)),
            Presence("gus", time_after(start, 700), back=True, team=1),  # a late joiner
            Presence("hal", time_after(start, 920), back=True, team=0),  # who came after the end
        ],
    )
    running.close(ladder, "m1", Ending((TeamEnd(2), TeamEnd(1)), ended_at=time_after(start, 900)))
    players, duration = recorded_times(service, "m1")
    assert duration == 900.0
    assert players == {
        "ann": (900 - 60 - 5.5, 0),
        "bob": (250.25, 1),
        "eve": (899.999999, 1),
        "cid": (900.0, 0),
        "dan": (50.0, 1),
        "fay": (900.0, 0),
        "gus": (200.0, 0),
        "hal": (0.0, 0),
    }


@ONE_DATABASE
def test_scores_performances_guests_and_the_duration_are_recorded_as_told(service, running, ladder, clock, start):
    running.announce(ladder, "m1", [["ann"], ["bob"]], started_at=start)
    clock.move(seconds=300)
    ended = Ending(
        (TeamEnd(score=3.0), TeamEnd(score=5.0)),
        {"ann": PlayerEnd(score=12.0, performance=-0.25, entry=1834.5), "bob": PlayerEnd(keep=False)},
        duration=280.5,
    )
    receipt = running.close(ladder, "m1", ended)
    ann, bob = receipt.teams[0][0].change, receipt.teams[1][0].change
    assert ann.after < ann.before  # 3 against 5 is lost
    assert bob.after == bob.before  # a guest
    assert recorded_times(service, "m1")[1] == 280.5
    ((slots,),) = select_rows(service, "SELECT slots FROM event WHERE id = 'm1'")
    assert np.frombuffer(bytes(slots), SLOT)["entry"].tolist() == [1834.5, 0.0]


# the same again


def test_the_same_announcement_again_changes_nothing_and_another_one_is_a_conflict(service, running, ladder, start):
    running.announce(ladder, "m1", TEAMS, started_at=start, expires_in=600)
    before = change_numbers(service)
    again = running.announce(ladder, "m1", [["bob", "ann"], ["cid", "dan"]], started_at=start, expires_in=600)
    assert again.expires_at == time_after(start, 600)
    assert change_numbers(service) == before
    others = [
        ([["ann", "cid"], ["bob", "dan"]], {"started_at": start, "expires_in": 600}),
        ([["cid", "dan"], ["ann", "bob"]], {"started_at": start, "expires_in": 600}),
        (TEAMS, {"started_at": start + 1, "expires_in": 600}),
        (TEAMS, {"started_at": start, "expires_in": 601}),
        (TEAMS, {"started_at": start}),
    ]
    for teams, options in others:
        with pytest.raises(ConflictError, match="'m1' was announced with other content"):
            running.announce(ladder, "m1", teams, **options)


def test_the_same_leaves_again_are_harmless(service, running, ladder, clock, start):
    running.announce(ladder, "m1", TEAMS, started_at=start)
    clock.move(seconds=100)
    told = [
        Presence("ann", time_after(start, 10)),
        Presence("ann", time_after(start, 20), back=True),
        Presence("bob", time_after(start, 30)),
        Presence("eve", time_after(start, 40), back=True, team=1),
    ]
    first = running.leaves(ladder, "m1", told)
    before = change_numbers(service)
    assert running.leaves(ladder, "m1", told) == first
    assert running.leaves(ladder, "m1", [Presence("bob"), Presence("ann", back=True)]) == first
    assert change_numbers(service) == before
    running.close(ladder, "m1", WON)
    running.leaves(ladder, "m1", told)  # even when it is over
    assert recorded_times(service, "m1")[0]["ann"] == (90.0, 0)


def test_a_second_close_gives_the_first_receipt_though_time_has_passed(service, running, ladder, clock, start):
    running.announce(ladder, "m1", [["ann"], ["bob"]], started_at=start)
    clock.move(seconds=60)
    first = running.close(ladder, "m1", WON)
    clock.move(seconds=60)
    assert running.close(ladder, "m1", WON) == first
    service.rename("ann", "anna")
    again = running.close(ladder, "m1", WON)
    assert again.teams[0][0].change.player == "anna"
    assert again.position == first.position
    with pytest.raises(ConflictError, match="'m1' is closed"):
        running.close(ladder, "m1", Ending((TeamEnd(2), TeamEnd(1))))


def test_a_close_that_was_cut_off_before_its_match_was_recorded_ends_at_the_same_moment(
    service, running, ladder, clock, start, monkeypatch
):
    running.announce(ladder, "m1", [["ann"], ["bob"]], started_at=start)
    clock.move(seconds=60)

    def dies(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(service, "record", dies)
        with pytest.raises(KeyboardInterrupt):
            running.close(ladder, "m1", WON)
    clock.move(seconds=60)
    with pytest.raises(ConflictError, match="being closed"):
        running.leaves(ladder, "m1", [Presence("ann")])
    running.close(ladder, "m1", WON)
    assert recorded_times(service, "m1") == ({"ann": (60.0, 0), "bob": (60.0, 0)}, 60.0)
    assert seated_players(service) == {}


def test_a_close_that_was_cut_off_after_its_match_was_recorded_is_finished_by_the_next(
    service, running, ladder, clock, start, monkeypatch
):
    running.announce(ladder, "m1", [["ann"], ["bob"]], started_at=start)
    clock.move(seconds=60)

    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(live_matches, "settle", dies)
        with pytest.raises(KeyboardInterrupt):
            running.close(ladder, "m1", WON)
    assert len(seated_players(service)) == 2
    clock.move(seconds=60)
    assert (
        running.close(ladder, "m1", WON).position
        == select_rows(service, "SELECT position FROM event WHERE id = 'm1'")[0][0]
    )
    assert seated_players(service) == {}


def test_a_close_that_the_ladder_refuses_leaves_the_match_on(service, running, clock):
    service.create_ladder("pairs", "trophies", rules("trophies"))
    running.announce("pairs", "m1", [["ann"], ["bob"], ["cid"]])
    with pytest.raises(BadRowsError):
        running.close("pairs", "m1", Ending((TeamEnd(1), TeamEnd(2), TeamEnd(3))))
    assert running.status("pairs", "m1").state == "open"
    assert running.leaves("pairs", "m1", [Presence("ann")]).state == "open"
    assert running.cancel("pairs", "m1", "of three").state == "cancelled"


# what is refused

REFUSED = [
    (lambda r, _: r.announce("duel", "m9", [["ann"]]), InputError, "has 1 teams of 1"),
    (lambda r, _: r.announce("duel", "m9", [["ann"], []]), InputError, "two or more teams of one or more"),
    (lambda r, _: r.announce("duel", "m9", [["ann"], ["ann"]]), InputError, "'ann' and 'ann' are the same player"),
    (
        lambda r, _: r.announce("duel", "m9", [["new"], ["bob"]]),
        ConflictError,
        "'bob' plays match 'm1' of ladder 'duel'",
    ),
    (lambda r, _: r.announce("none", "m9", [["new"], ["old"]]), UnknownNameError, "unknown ladder 'none'"),
    (lambda r, _: r.announce("duel", "m9", [["new"], ["old"]], queue="none"), UnknownNameError, "unknown queue 'none'"),
    (lambda r, _: r.announce("duel", "m9", [["n"], ["o"]], expires_in=0), InputError, "expires_in is 0"),
    (lambda r, t: r.announce("duel", "m9", [["n"], ["o"]], started_at=t + 86_401 * SECOND), InputError, "a day from"),
    (lambda r, _: r.announce("duel", "old", [["n"], ["o"]]), ConflictError, "'old' has already been reported"),
    (lambda r, _: r.leaves("duel", "m9", [Presence("ann")]), UnknownNameError, "unknown live match 'm9' of ladder"),
    (lambda r, _: r.leaves("duel", "m1", [Presence("zoe")]), UnknownNameError, "unknown player 'zoe' of match 'm1'"),
    (
        lambda r, _: r.leaves("duel", "m1", [Presence("zoe", back=True, team=2)]),
        InputError,
        "no team 2; its teams are 0",
    ),
    (
        lambda r, _: r.leaves("duel", "m1", [Presence("eve", back=True, team=0)]),
        ConflictError,
        "'eve' plays match 'm2'",
    ),
    (lambda r, t: r.leaves("duel", "m1", [Presence("ann", t - 361 * SECOND)]), InputError, "'ann' joined at"),
    (
        lambda r, t: r.leaves("duel", "m1", [Presence("ann", t + 86_401 * SECOND)]),
        InputError,
        "is too far in the future",
    ),
    (lambda r, _: r.close("duel", "m1", Ending((TeamEnd(1),))), InputError, "2 teams and 1 results"),
    (lambda r, t: r.close("duel", "m1", Ending(WON.teams, ended_at=t - 61 * SECOND)), InputError, "it cannot end at"),
    (lambda r, _: r.close("duel", "m1", Ending(WON.teams, {"zoe": PlayerEnd()})), UnknownNameError, "'zoe'"),
    (lambda r, _: r.close("duel", "m1", Ending((TeamEnd(1), TeamEnd()))), InputError, "a place for 1 of 2 teams"),
    (lambda r, _: r.close("duel", "m9", WON), UnknownNameError, "'m9'"),
    (lambda r, _: r.openings("duel", "m1", None, [1, 0]), InputError, "not created by a queue"),
    (lambda r, _: r.openings("duel", "m1", "none", [1, 0]), UnknownNameError, "unknown queue 'none'"),
]


@ONE_DATABASE
def test_an_impossible_request_is_refused_with_a_reason_and_changes_nothing(service, running, ladder, clock):
    service.record(
        Match("old", datetime(2026, 1, 1, tzinfo=UTC), (Team.of("ann", place=1), Team.of("bob", place=2)), ladder)
    )
    running.announce(ladder, "m1", TEAMS)
    running.announce(ladder, "m2", [["eve"], ["fay"]])
    clock.move(seconds=60)
    before = (
        change_numbers(service),
        select_rows(service, "SELECT name FROM player ORDER BY name"),
        seated_players(service),
    )
    for call, kind, said in REFUSED:
        with pytest.raises(kind) as caught:
            call(running, clock.now)
        assert said in str(caught.value)
        assert type(caught.value) is kind
    assert (
        change_numbers(service),
        select_rows(service, "SELECT name FROM player ORDER BY name"),
        seated_players(service),
    ) == before


@ONE_DATABASE
def test_a_clock_that_is_some_minutes_behind_is_forgiven(service, running, ladder, clock, start):
    running.announce(ladder, "m1", [["ann"], ["bob"]])
    clock.move(seconds=100)
    running.leaves(ladder, "m1", [Presence("ann", time_after(start, -200))])
    running.leaves(ladder, "m1", [Presence("ann", time_after(start, -200))])  # and known again
    running.close(ladder, "m1", WON)
    assert recorded_times(service, "m1")[0] == {"ann": (0.0, 1), "bob": (100.0, 0)}


# matches that a queue made


def test_the_game_server_confirms_the_start_of_a_match_that_a_queue_made(service, running, ladder, clock, start):
    make_queue(service)
    make_match(service, clock)
    assert not running.status(ladder, "q-1").confirmed
    clock.move(seconds=90)
    told = running.announce(ladder, "q-1", TEAMS, started_at=time_after(start, 60))
    assert (told.confirmed, told.made_by, told.started_at, told.expires_at) == (
        True,
        "queue",
        time_after(start, 60),
        time_after(start, 60 + 7200),
    )
    assert running.announce(ladder, "q-1", TEAMS, started_at=time_after(start, 60)) == told
    with pytest.raises(ConflictError, match="with other content"):
        running.announce(ladder, "q-1", TEAMS, started_at=time_after(start, 61))
    clock.move(seconds=30)
    running.close(ladder, "q-1", WON)
    assert recorded_times(service, "q-1") == (dict.fromkeys(("ann", "bob", "cid", "dan"), (60.0, 0)), 60.0)


@ONE_DATABASE
def test_a_match_that_a_queue_made_is_confirmed_with_its_own_players_and_queue_alone(service, running, ladder, clock):
    make_queue(service)
    make_queue(service, name="casual")
    make_match(service, clock)
    with pytest.raises(ConflictError, match="was created with other teams: ann, bob against cid, dan"):
        running.announce(ladder, "q-1", [["ann", "bob"], ["cid", "eve"]])
    with pytest.raises(ConflictError, match="belongs to queue 'ranked', not 'casual'"):
        running.announce(ladder, "q-1", TEAMS, queue="casual")
    running.cancel(ladder, "q-1")
    with pytest.raises(ConflictError, match="is cancelled"):
        running.announce(ladder, "q-1", TEAMS)


# strikes


def test_a_player_who_leaves_gets_a_strike_that_is_lifted_on_return(service, running, ladder, clock, start):
    make_queue(service, penalty=30)
    make_match(service, clock)
    clock.move(seconds=10)
    running.leaves(ladder, "q-1", [Presence("ann"), Presence("cid")])
    assert seated_players(service) == {"bob": "q-1", "dan": "q-1"}
    assert penalties_by_name(service) == {"ann": (1.0, time_after(start, 40)), "cid": (1.0, time_after(start, 40))}
    clock.move(seconds=5)
    running.leaves(ladder, "q-1", [Presence("ann", back=True)])
    assert seated_players(service) == {"ann": "q-1", "bob": "q-1", "dan": "q-1"}
    assert penalties_by_name(service) == {"cid": (1.0, time_after(start, 40))}
    clock.move(seconds=15)
    running.close(ladder, "q-1", WON)
    assert penalties_by_name(service) == {"cid": (1.0, time_after(start, 40))}  # once, not again at the end
    assert seated_players(service) == {}


def test_a_strike_that_is_taken_back_leaves_the_former_ones(service, running, ladder, clock, start):
    make_queue(service, penalty=30, penalty_fades=3600)
    for number in (1, 2):
        make_match(service, clock, f"q-{number}")
        running.leaves(ladder, f"q-{number}", [Presence("ann")])
        if number == 1:
            clock.move(seconds=10)
            running.close(ladder, "q-1", WON)
            clock.move(seconds=3590)
    assert penalties_by_name(service)["ann"] == (1.5, clock.now + round(30 * 2**0.5 * SECOND))
    running.leaves(ladder, "q-2", [Presence("ann", back=True)])
    assert penalties_by_name(service) == {"ann": (1.0, time_after(start, 30))}


@ONE_DATABASE
def test_leaving_after_the_end_brings_no_strike(service, running, ladder, clock, start):
    make_queue(service)
    make_match(service, clock)
    clock.move(seconds=100)
    running.leaves(ladder, "q-1", [Presence("ann", time_after(start, 92)), Presence("bob", time_after(start, 80))])
    running.close(ladder, "q-1", Ending(WON.teams, ended_at=time_after(start, 90)))
    assert list(penalties_by_name(service)) == ["bob"]


def test_nobody_is_struck_in_a_match_of_no_queue_or_one_that_is_cancelled(service, running, ladder, clock):
    make_queue(service)
    make_match(service, clock)
    running.announce(ladder, "m1", [["eve"], ["fay"]])
    running.leaves(ladder, "m1", [Presence("eve")])
    running.leaves(ladder, "q-1", [Presence("ann")])
    running.cancel(ladder, "q-1", "the server went down")
    assert penalties_by_name(service) == {}
    assert running.cancel(ladder, "q-1").reason == "the server went down"
    assert seated_players(service) == {"fay": "m1"}
    with pytest.raises(ConflictError, match="is cancelled"):
        running.close(ladder, "q-1", WON)


# reported as a whole


def test_a_plain_report_closes_the_match_and_gives_quitters_a_strike(service, running, ladder, clock):
    make_queue(service)
    make_match(service, clock)
    running.leaves(ladder, "q-1", [Presence("cid")])
    played_at = datetime.fromtimestamp(clock.now // SECOND, UTC)
    teams = (
        Team((Appearance("ann"), Appearance("bob", quit=True)), 1),
        Team((Appearance("cid"), Appearance("dan")), 2),
    )
    service.record(Match("q-1", played_at, teams, ladder))
    service.record(Match("other", played_at - timedelta(seconds=1), teams, ladder))

    assert running.settle_reported(ladder, ["other"], {"other": ["bob"]}) == []
    assert running.settle_reported(ladder, ["q-1", "other"], {"q-1": ["bob", "nobody"]}) == ["q-1"]
    assert running.settle_reported(ladder, ["q-1"], {"q-1": ["bob"]}) == []

    assert running.status(ladder, "q-1").state == "closed"
    assert list(penalties_by_name(service)) == ["bob"]  # the report has it that cid did not quit
    assert seated_players(service) == {}
    with pytest.raises(ConflictError, match="'q-1' is closed"):
        running.close(ladder, "q-1", WON)


def test_a_recorded_match_is_neither_cancelled_nor_closed_otherwise_nor_expired(service, running, ladder, clock, start):
    running.announce(ladder, "m1", [["ann"], ["bob"]], expires_in=60)
    ended = datetime.fromtimestamp(start // SECOND, UTC)
    service.record(Match("m1", ended, (Team.of("ann", place=1), Team.of("bob", place=2)), ladder))
    with pytest.raises(ConflictError, match="'m1' is closed"):
        running.cancel(ladder, "m1")
    with pytest.raises(ConflictError, match="with other content"):
        running.close(ladder, "m1", Ending((TeamEnd(2), TeamEnd(1))))
    clock.move(seconds=61)
    assert running.expire(ladder) == []
    assert running.status(ladder, "m1").state == "closed"
    assert seated_players(service) == {}


# expiring


def test_a_match_that_nobody_closes_expires_without_a_rating(service, other_service, running, ladder, clock, start):
    elsewhere = Running(other_service)
    assert running.expire(ladder) == []
    running.announce(ladder, "m1", [["ann"], ["bob"]], expires_in=100)
    running.announce(ladder, "m2", [["cid"], ["dan"]], expires_in=200)
    running.announce(ladder, "m3", [["eve"], ["fay"]], expires_in=100)
    assert elsewhere.expire(ladder) == []
    running.close(ladder, "m3", WON)
    clock.move(seconds=99.999)
    assert running.expire(ladder) == elsewhere.expire(ladder) == []
    clock.move(seconds=0.001)
    assert elsewhere.expire(ladder) == ["m1"]
    assert running.expire(ladder) == []
    assert running.status(ladder, "m1").state == "expired"
    assert seated_players(service) == {"cid": "m2", "dan": "m2"}
    assert select_rows(service, "SELECT id FROM event WHERE id = 'm1'") == []
    with pytest.raises(ConflictError, match="'m1' is expired"):
        running.close(ladder, "m1", WON)
    clock.now = time_after(start, 200)
    assert running.expire(ladder) == ["m2"]
    clock.now = time_after(start, 10_000)
    assert running.expire(ladder) == elsewhere.expire(ladder) == []


def test_finished_matches_are_deleted_a_day_after_their_expiry_time(service, running, ladder, clock):
    running.announce(ladder, "m1", [["ann"], ["bob"]], expires_in=100)
    running.announce(ladder, "m2", [["cid"], ["dan"]], expires_in=604_800)
    running.announce(ladder, "m3", [["eve"], ["fay"]], expires_in=200)
    running.close(ladder, "m1", WON)
    running.close(ladder, "m3", WON)
    clock.move(days=1, seconds=100.5)
    assert running.prune(ladder) == 1
    assert sorted(row[0] for row in select_rows(service, "SELECT match_id FROM live")) == ["m2", "m3"]


def test_the_background_worker_expires_matches(service, running, ladder, clock, monkeypatch):
    monkeypatch.setattr(live_matches, "EXPIRE_EVERY", 0.01)
    running.announce(ladder, "m1", [["ann"], ["bob"]], expires_in=100)
    clock.move(seconds=101)
    stop = threading.Event()
    thread = threading.Thread(target=running.run, args=(stop,))
    thread.start()
    waited = threading.Event()
    for _ in range(500):
        if running.status(ladder, "m1").state == "expired":
            break
        waited.wait(0.01)
    stop.set()
    thread.join()
    assert running.status(ladder, "m1").state == "expired"


# openings


def test_openings_are_wished_for_filled_and_gone(service, running, ladder, clock, start):
    make_queue(service)
    make_match(service, clock)
    clock.move(seconds=50)
    running.leaves(ladder, "q-1", [Presence("ann"), Presence("cid")])
    told = running.openings(ladder, "q-1", None, [1, 1])
    assert told.openings == (1, 1)
    before = change_numbers(service)
    assert running.openings(ladder, "q-1", "ranked", [1, 1]) == told
    assert change_numbers(service) == before

    def fill(team, name, number):
        with service.database.write() as store:
            head = store.head(ladder)
            change = reserve_changes(store, head.ladder, 1)
            slot = {"player": name, "id": number, "ticket": 9, "role": "tank"}
            teams = [[]] * team + [[slot]]
            return slots_rows.fill_teams(store, head.ladder, "q-1", change, teams, clock.now)

    ids = dict(select_rows(service, "SELECT name, player FROM player"))
    assert not fill(2, "eve", 99)  # there is no such team
    assert not fill(1, "ann", ids["ann"])  # she has played for the others
    assert not fill(0, "bob", ids["bob"])  # he is there
    clock.move(seconds=10)
    assert fill(0, "ann", ids["ann"])
    assert running.status(ladder, "q-1").openings == (0, 1)
    assert not fill(0, "cid", ids["cid"])  # no seat is open there
    clock.move(seconds=10)
    running.openings(ladder, "q-1", seats=None)
    assert not fill(1, "cid", ids["cid"])  # nobody is wished for
    running.openings(ladder, "q-1", seats=[0, 1])
    assert fill(1, "cid", ids["cid"])
    assert running.status(ladder, "q-1").openings is None
    clock.move(seconds=30)
    running.close(ladder, "q-1", WON)
    assert recorded_times(service, "q-1")[0] == {
        "ann": (90.0, 0),
        "bob": (100.0, 0),
        "cid": (80.0, 0),
        "dan": (100.0, 0),
    }
    assert not fill(0, "eve", 99)


@ONE_DATABASE
def test_openings_beyond_what_the_queue_plays_are_refused(service, running, ladder, clock):
    make_queue(service)
    make_match(service, clock)
    running.leaves(ladder, "q-1", [Presence("ann")])
    with pytest.raises(InputError, match="team 0 of match 'q-1' has 1 players and would have 2 open seats"):
        running.openings(ladder, "q-1", seats=[2, 0])
    with pytest.raises(InputError, match=r"seats are \[1\]"):
        running.openings(ladder, "q-1", seats=[1])
    with pytest.raises(InputError, match=r"seats are \[1, -1\]"):
        running.openings(ladder, "q-1", seats=[1, -1])
    running.leaves(ladder, "q-1", [Presence("bob"), Presence("cid"), Presence("dan")])
    with pytest.raises(ConflictError, match="has no players left"):
        running.openings(ladder, "q-1", seats=[1, 1])
    running.close(ladder, "q-1", WON)
    running.openings(ladder, "q-1", seats=None)  # nobody is wished for anyhow
    with pytest.raises(ConflictError, match="has no players left"):
        running.openings(ladder, "q-1", seats=[1, 0])


# at once


def test_many_threads_closing_one_match_record_it_once(service, other_service, ladder, clock, start):
    both = [Running(service), Running(other_service)]
    both[0].announce(ladder, "m1", TEAMS, started_at=start)
    clock.move(seconds=77)
    told = []

    def close(number):
        told.append(both[number % 2].close(ladder, "m1", WON))

    threads = [threading.Thread(target=close, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(told) == 6
    assert all(one == told[0] for one in told)
    assert select_rows(service, "SELECT COUNT(*) FROM event WHERE id = 'm1'") == [(1,)]


def test_of_two_announcements_at_once_that_share_a_player_one_is_refused(service, other_service, ladders, clock):
    """They lock different lines, so the seats alone keep them apart."""
    both = [Running(service), Running(other_service)]
    said = []

    def announce(number):
        for turn in range(5):
            try:
                both[number].announce(
                    ladders[number], f"m{number}-{turn}", [[f"ann{turn}"], [f"bob{turn}", str(number)]]
                )
            except ConflictError as error:
                said.append((turn, str(error)))

    threads = [threading.Thread(target=announce, args=(number,)) for number in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    on = select_rows(service, "SELECT match_id, body FROM live")
    players = [slot["player"] for _, body in on for team in json.loads(body)["teams"] for slot in team]
    assert len(players) == len(set(players))
    assert sorted(seated_players(service)) == sorted(players)


# Which side counts, and the teams of the receipt: eve is 400 s with cid and dan, then 200 s with ann and bob, who win
SIDES = {
    "time": [["ann", "bob"], ["cid", "dan", "eve"]],
    "first": [["ann", "bob"], ["cid", "dan", "eve"]],
    "last": [["ann", "bob", "eve"], ["cid", "dan"]],
}


@pytest.mark.parametrize("rule", SIDES)
def test_the_ladder_says_which_side_counts_for_who_changes_it(service, running, ladder, clock, rule):
    service.change_settings(ladder, {"side_counts": rule})
    running.announce(ladder, "s-1", [["ann", "bob"], ["cid", "dan", "eve"]])
    clock.move(seconds=400)
    moved = running.leaves(ladder, "s-1", [Presence("eve", back=True, team=0)])
    assert [[player.player for player in team] for team in moved.teams] == [["ann", "bob", "eve"], ["cid", "dan"]]
    again = running.leaves(ladder, "s-1", [Presence("eve", back=True, team=0)])
    assert again.change == moved.change
    clock.move(seconds=200)
    receipt = running.close(ladder, "s-1", WON)
    assert [sorted(line.change.player for line in team) for team in receipt.teams] == SIDES[rule]
    gains = {line.change.player: line.change.after - line.change.before for team in receipt.teams for line in team}
    assert (gains["eve"] > 0) == (rule == "last")


@pytest.mark.parametrize(("seconds", "struck"), [(59, True), (60, True), (61, False)])
def test_changing_to_the_winning_side_at_the_end_brings_a_strike(service, running, ladder, clock, seconds, struck):
    """Within 60 seconds of the end, in a match of a queue; whoever changes to the losing side is not."""
    make_queue(service, penalty=30)
    make_match(service, clock)
    clock.move(seconds=500)
    running.leaves(ladder, "q-1", [Presence("cid", back=True, team=0), Presence("bob", back=True, team=1)])
    clock.move(seconds=seconds)
    receipt = running.close(ladder, "q-1", WON)
    assert [sorted(line.change.player for line in team) for team in receipt.teams] == TEAMS  # 500 s count more than 60
    assert set(penalties_by_name(service)) == ({"cid"} if struck else set())


def test_a_change_of_sides_that_cannot_be_is_refused_and_changes_nothing(service, running, ladder, clock, start):
    running.announce(ladder, "s-1", [["ann"], ["bob", "cid"]])
    with pytest.raises(InputError, match="has no team 2"):
        running.leaves(ladder, "s-1", [Presence("cid", back=True, team=2)])
    with pytest.raises(InputError, match="expected a later time"):
        running.leaves(ladder, "s-1", [Presence("cid", time_after(start, -900), back=True, team=0)])
    at = time_after(start, 5)
    running.leaves(ladder, "s-1", [Presence("ann", at, back=True, team=1)])
    running.leaves(ladder, "s-1", [Presence("ann", at, back=True, team=1)])  # a retry
    service.change_settings(ladder, {"side_counts": "last"})
    clock.move(seconds=60)
    with pytest.raises(InputError, match="without players"):
        running.close(ladder, "s-1", WON)
    service.change_settings(ladder, {"side_counts": "first"})
    receipt = running.close(ladder, "s-1", WON)
    assert [sorted(line.change.player for line in team) for team in receipt.teams] == [["ann"], ["bob", "cid"]]


@ONE_DATABASE
def test_leaves_are_noted_all_or_not_at_all(service, running, ladder):
    running.announce(ladder, "m1", TEAMS)
    with pytest.raises(UnknownNameError):
        running.leaves(ladder, "m1", [Presence("ann"), Presence("zoe")])
    assert seated_players(service)["ann"] == "m1"
    assert running.status(ladder, "m1").teams[0][0].there


@ONE_DATABASE
def test_a_match_that_began_before_it_was_made_by_our_clock_counts_from_its_beginning(
    service, running, ladder, clock, start
):
    make_queue(service)
    make_match(service, clock)
    clock.move(seconds=50)
    running.announce(ladder, "q-1", TEAMS, started_at=time_after(start, -10))
    running.close(ladder, "q-1", WON)
    assert recorded_times(service, "q-1") == (dict.fromkeys(("ann", "bob", "cid", "dan"), (60.0, 0)), 60.0)


@ONE_DATABASE
def test_an_announced_match_of_a_queue_expires_by_its_rule(service, running, ladder, clock, start):
    make_queue(service, longest_match=900)
    assert running.announce(ladder, "m1", TEAMS, queue="ranked").expires_at == time_after(start, 900)


def test_a_strike_stays_if_another_one_came_since(service, running, ladder, clock, start):
    make_queue(service, penalty=30)
    make_match(service, clock)
    running.leaves(ladder, "q-1", [Presence("ann")])
    with service.database.write() as store:  # she declines what she is offered meanwhile
        ids = player_rows.ids_of(store, ["ann"])
        strike(store, store.head(ladder).ladder, list(ids.values()), clock.now, QueueRules())
    running.leaves(ladder, "q-1", [Presence("ann", back=True)])
    assert penalties_by_name(service) == {"ann": (2.0, time_after(start, 60))}


def test_a_player_who_returns_keeps_a_seat_elsewhere(service, running, ladder, clock):
    make_match(service, clock, queue=None)
    running.leaves(ladder, "q-1", [Presence("ann")])
    running.announce(ladder, "m2", [["ann"], ["eve"]])
    running.leaves(ladder, "q-1", [Presence("ann", back=True)])
    assert seated_players(service)["ann"] == "m2"
    running.close(ladder, "q-1", WON)
    assert seated_players(service) == {"ann": "m2", "eve": "m2"}


def test_a_player_who_changes_sides_twice_counts_where_they_played_longest(service, running, ladder, clock):
    """100 s in the first team, 150 in the second, 90 in the first: 190 against 150."""
    running.announce(ladder, "s-1", [["ann", "eve"], ["bob", "cid"]])
    for seconds, team in ((100, 1), (150, 0)):
        clock.move(seconds=seconds)
        running.leaves(ladder, "s-1", [Presence("eve", back=True, team=team)])
    clock.move(seconds=90)
    receipt = running.close(ladder, "s-1", WON)
    assert [sorted(line.change.player for line in team) for team in receipt.teams] == [["ann", "eve"], ["bob", "cid"]]
