"""Where a player's seat reaches: who announced them for one ladder keeps them from no other, and learns of no other."""

from dataclasses import replace

import pytest

from evenmatch.errors import ConflictError, InputError, NotYetError
from evenmatch.live.attendance import Ending, Presence, TeamEnd
from evenmatch.live.live_matches import Running
from evenmatch.queues import queue_sql
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from service.sample_queues import (
    DUEL,
    Leave,
    accept_all,
    check_everything,
    hold_lease,
    join_one,
    join_queue,
    party,
    select_rows,
    solos,
)

DAYS = 86_400.0
RESULT = Ending(teams=[TeamEnd(place=1), TeamEnd(place=2)])


@pytest.fixture
def queue_service(service, ladders):
    made = QueueService(service)
    for ladder in ladders:
        made.set_queue(ladder, "ranked", DUEL, QueueRules(longest_match=3600))
        hold_lease(made, ladder)
    return made


@pytest.fixture
def running(service):
    return Running(service)


def test_an_announcement_for_one_ladder_locks_nobody_out_of_another(queue_service, running, service):
    running.announce("duel", "m1", [["ann"], ["bob"]], expires_in=7 * DAYS, everywhere=False)
    with pytest.raises(NotYetError, match="'ann' plays match 'm1' of ladder 'duel'"):
        join_one(queue_service, "duel", party("ann"))
    with pytest.raises(NotYetError, match="'ann' plays match 'm1' of ladder 'duel'"):
        join_one(queue_service, "arena", party("ann", playlist={"duel": ("ranked",)}))
    join_one(queue_service, "arena", party("ann"))
    assert queue_service.seat("duel", "ann").match_id == "m1"
    assert queue_service.seat("arena", "ann").ticket is not None
    check_everything(service)


def test_an_announcement_for_all_ladders_keeps_its_players_from_all(queue_service, running, service):
    running.announce("duel", "m1", [["ann"], ["bob"]])
    for ladder in ("duel", "arena"):
        with pytest.raises(NotYetError, match="plays match 'm1' of ladder 'duel'"):
            join_one(queue_service, ladder, party("ann"))
    with pytest.raises(ConflictError, match="'ann' plays match 'm1' of ladder 'duel' and cannot join match 'm2'"):
        running.announce("arena", "m2", [["ann"], ["cat"]])
    check_everything(service)


def test_an_announcement_for_one_ladder_is_not_refused_by_what_its_players_do_on_another(
    queue_service, running, service
):
    join_queue(queue_service, "arena", party("ann"))
    running.announce("arena", "there", [["bob"], ["cat"]])
    running.announce("duel", "m1", [["ann"], ["bob"]], everywhere=False)
    running.close("duel", "m1", RESULT)
    assert queue_service.seat("duel", "ann") is None
    assert queue_service.seat("arena", "ann").ticket is not None
    assert queue_service.seat("arena", "bob").match_id == "there"
    check_everything(service)


def test_who_waits_or_plays_on_the_ladder_itself_cannot_be_announced_there(queue_service, running, service):
    joined = join_one(queue_service, "arena", party("ann", playlist={"duel": ("ranked",)}))
    running.announce("duel", "m1", [["bob"], ["cat"]], everywhere=False)
    with pytest.raises(ConflictError, match=f"'ann' waits in ticket {joined.playlist['duel']} of ladder 'duel'"):
        running.announce("duel", "m2", [["ann"], ["dan"]], everywhere=False)
    for everywhere in (False, True):
        with pytest.raises(ConflictError, match="'bob' plays match 'm1' of ladder 'duel'"):
            running.announce("duel", "m2", [["bob"], ["dan"]], everywhere=everywhere)
    check_everything(service)


def test_matches_of_queues_put_nobody_into_two(queue_service, running, service, clock):
    """Whoever a queue made a match for has a seat on all ladders, whatever was announced elsewhere for one ladder."""
    running.announce("arena", "side-show", [["ann"], ["eve"]], everywhere=False)
    tickets = join_queue(queue_service, "duel", *solos("ann", "bob"))
    assert len(Matchmaker(queue_service).step("duel").offers) == 1
    accept_all(queue_service, "duel", tickets)
    ((match_id,),) = select_rows(service, "SELECT match_id FROM live WHERE queue IS NOT NULL")
    with pytest.raises(NotYetError):
        join_one(queue_service, "duel", party("ann"))
    running.cancel("arena", "side-show")
    with pytest.raises(NotYetError, match=match_id):
        join_one(queue_service, "arena", party("ann"))
    check_everything(service)


def test_a_key_of_one_ladder_cannot_stretch_the_match_of_a_queue(queue_service, running, service, clock):
    tickets = join_queue(queue_service, "duel", *solos("ann", "bob"))
    Matchmaker(queue_service).step("duel")
    accept_all(queue_service, "duel", tickets)
    ((match_id,),) = select_rows(service, "SELECT match_id FROM live")
    teams = [[player.player for player in team] for team in running.status("duel", match_id).teams]
    clock.move(seconds=10)
    with pytest.raises(InputError, match="would occupy its players on all ladders until"):
        running.announce("duel", match_id, teams, expires_in=7 * DAYS, everywhere=False)
    with pytest.raises(InputError, match="longest_match of queue 'ranked'"):
        running.announce("duel", match_id, teams, started_at=clock() + 3_000_000_000, everywhere=False)
    running.announce("duel", match_id, teams, expires_in=1800, everywhere=False)
    assert running.status("duel", match_id).expires_at <= clock() + 1_800_000_000


def test_a_key_of_one_ladder_has_no_match_filled_that_outlasts_the_queue(queue_service, running, service, clock):
    """Whoever a queue brings into an announced match has a seat on all ladders, for as long as the match may last."""
    running.announce("duel", "m1", [["ann"], ["bob"]], expires_in=7 * DAYS, everywhere=False)
    running.leaves("duel", "m1", [Presence("bob")], everywhere=False)
    with pytest.raises(InputError, match=r"match 'm1' would occupy its players on all ladders until 2026-01-18"):
        running.openings("duel", "m1", "ranked", [0, 1], everywhere=False)
    assert running.openings("duel", "m1", seats=None, everywhere=False).openings is None
    clock.move(seconds=7 * DAYS - 3600)
    queue_service.set_queue("duel", "short", DUEL, QueueRules(longest_match=3599))
    with pytest.raises(InputError, match="longest_match of queue 'short'"):
        running.openings("duel", "m1", "short", [0, 1], everywhere=False)
    assert running.openings("duel", "m1", "ranked", [0, 1], everywhere=False).openings == (0, 1)
    (ticket,) = join_queue(queue_service, "duel", party("cat", within=100.0))
    assert len(Matchmaker(queue_service).step("duel").offers) == 1
    accept_all(queue_service, "duel", [ticket])
    with pytest.raises(NotYetError, match="'cat' plays match 'm1'"):
        join_one(queue_service, "arena", party("cat"))
    running.announce("arena", "long", [["dan"], ["eve"]], expires_in=7 * DAYS)
    running.leaves("arena", "long", [Presence("eve")])
    assert running.openings("arena", "long", "ranked", [0, 1]).openings == (0, 1)
    check_everything(service)


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_late_joiner_who_leaves_and_returns_has_a_seat_of_the_same_reach(
    queue_service, running, service, clock, everywhere
):
    running.announce("duel", "m1", [["ann"], ["bob"]], everywhere=everywhere)
    for presence in (Presence("cat", back=True, team=0), Presence("cat"), Presence("cat", back=True)):
        running.leaves("duel", "m1", [presence], everywhere=everywhere)
        seat = queue_service.seat("duel", "cat")
        assert (seat is not None) == presence.back
        if presence.back and everywhere:
            with pytest.raises(NotYetError):
                join_one(queue_service, "arena", party("cat"))
        else:
            join_one(queue_service, "arena", Leave(join_one(queue_service, "arena", party("cat")).ticket))
        check_everything(service)
    clock.now = running.status("duel", "m1").expires_at + 1
    running.expire("duel")
    assert queue_service.seat("duel", "cat") is None
    assert select_rows(service, "SELECT * FROM ladder_seat") == []


def test_a_player_whom_a_queue_brought_comes_back_to_a_seat_on_all_ladders(queue_service, running, service):
    tickets = join_queue(queue_service, "duel", *solos("ann", "bob"))
    Matchmaker(queue_service).step("duel")
    accept_all(queue_service, "duel", tickets)
    ((match_id,),) = select_rows(service, "SELECT match_id FROM live")
    for presence in (Presence("ann"), Presence("ann", back=True)):
        running.leaves("duel", match_id, [presence], everywhere=False)
    assert select_rows(service, "SELECT * FROM ladder_seat") == []
    with pytest.raises(ConflictError):
        join_one(queue_service, "arena", party("ann"))


def test_a_refusal_names_no_ladder_that_the_sender_may_not_read(queue_service, running):
    join_queue(queue_service, "arena", party("ann"))
    running.announce("arena", "secret", [["bob"], ["cat"]])
    for name in ("ann", "bob"):
        wish = party(name)
        with pytest.raises(ConflictError) as refused:
            join_one(queue_service, "duel", replace(wish, readable=frozenset({"duel"})))
        assert str(refused.value) == f"player '{name}' waits or plays on another ladder and cannot join"
        assert not isinstance(refused.value, NotYetError)  # which says until when
        with pytest.raises(ConflictError, match="'arena'"):
            join_one(queue_service, "duel", replace(wish, readable=frozenset({"duel", "arena"})))


def test_players_in_announced_matches_are_counted_as_playing(service, running, queue_service):
    running.announce("duel", "m1", [["ann"], ["bob"]], everywhere=False)
    running.announce("duel", "m2", [["cat"], ["dan"]])
    join_queue(queue_service, "duel", party("eve"))
    with service.database.read() as store:
        number = store.head("duel").ladder
        assert queue_sql.count_seats_by_ladder(store) == [(number, 1, 4, 2)]
