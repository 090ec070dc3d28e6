"""The matchmaker: who is dropped, which process makes the matches, and that nobody is ever in two."""

import threading

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban
from evenmatch.errors import ConflictError, StoreError
from evenmatch.live.attendance import Presence
from evenmatch.live.live_matches import Running
from evenmatch.queues import matchmaker
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService, lease_of
from service.sample_queues import (
    DUEL,
    PAIRS,
    Accept,
    Leave,
    accept_all,
    always,
    check_everything,
    granted,
    join_one,
    join_queue,
    party,
    select_rows,
    solos,
)

pytestmark = pytest.mark.both_databases


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", DUEL, QueueRules(heartbeat=30))
    return made


def test_who_gives_no_sign_of_life_is_dropped(queue_service, ladder, service, clock, maker):
    queue_service.set_queue(ladder, "ranked", PAIRS)
    silent, looking = join_queue(queue_service, ladder, *solos("ann", "bob"))
    for _ in range(3):
        maker.step(ladder)
        clock.move(seconds=15)
        queue_service.status(ladder, silent)  # reading alone is no heartbeat
        queue_service.heartbeats.note(ladder, queue_service.status(ladder, looking))
        queue_service.heartbeats.write()
    assert maker.step(ladder).dropped == (silent,)
    assert queue_service.status(ladder, silent).ended == "no heartbeat for 45 s"
    assert queue_service.status(ladder, looking).state == "waiting"
    assert select_rows(service, "SELECT * FROM penalty") == []
    join_queue(queue_service, ladder, party("ann"))
    check_everything(service)


def test_after_a_restart_everybody_has_the_time_of_a_heartbeat_anew(queue_service, ladder, service, clock):
    queue_service.set_queue(ladder, "ranked", PAIRS)
    (ticket,) = join_queue(queue_service, ladder, party("ann"))
    clock.move(seconds=3600)
    maker = Matchmaker(QueueService(service))
    assert maker.step(ladder).dropped == ()
    clock.move(seconds=35)  # a heartbeat of second 30 may not be written yet
    assert maker.step(ladder).dropped == ()
    clock.move(seconds=2)
    assert maker.step(ladder).dropped == (ticket,)


@pytest.mark.parametrize("how", ["fails", "stands still"])
def test_after_an_outage_of_the_database_everybody_has_the_time_of_a_heartbeat_anew(
    queue_service, ladder, clock, maker, monkeypatch, how
):
    """Those who went on asking gave heartbeats that could not be written."""
    queue_service.set_queue(ladder, "ranked", PAIRS)
    (ticket,) = join_queue(queue_service, ladder, party("ann"))
    maker.step(ladder)
    hold, times = maker.leases.hold, []

    def held_after_a_minute(name):
        clock.move(seconds=60)
        if how == "fails":
            raise StoreError("the database is away")
        times.append(60)
        return hold(name)

    passed = matchmaker.time.monotonic
    monkeypatch.setattr(matchmaker.time, "monotonic", lambda: passed() + sum(times))
    monkeypatch.setattr(maker.leases, "hold", held_after_a_minute)
    if how == "fails":
        maker._step_due({ladder: 1.0}, {}, threading.Event())
        monkeypatch.setattr(maker.leases, "hold", hold)
    assert maker.step(ladder).dropped == ()
    monkeypatch.setattr(maker.leases, "hold", hold)
    maker._failed.clear()
    clock.move(seconds=37)
    assert maker.step(ladder).dropped == (ticket,)


def test_time_before_the_first_matchmaker_does_not_count_as_waiting(queue_service, ladder, service, clock, maker):
    (early,) = join_queue(queue_service, ladder, party("ann"))
    clock.move(seconds=40)
    told = queue_service.status(ladder, early)
    assert (told.state, told.waited, told.matchmaker, told.waiting) == ("waiting", 0.0, "starting", {})
    maker.step(ladder)
    clock.move(seconds=3)
    (late,) = join_queue(queue_service, ladder, party("bob", within=0.0))
    told = queue_service.status(ladder, early)
    assert (told.waited, told.matchmaker, told.waiting["ranked"].waited) == (3.0, "running", 3.0)
    assert maker.step(ladder).offers != ()
    assert sorted(queue_service.recent(ladder, 1)[0].waits) == [0.0, 3.0]
    assert queue_service.status(ladder, late).state == "offered"
    check_everything(service)


def test_a_pause_of_the_matchmaker_does_not_count_and_earlier_waiting_does(
    queue_service, ladder, service, other_service, clock
):
    """ann waits for 7 s, then nobody makes matches for 60 s; bob joins in the middle of it, and cat 10 s after it."""
    queue_service.set_queue(ladder, "ranked", {**PAIRS, "team_size": 5})
    first, queue_state = Matchmaker(queue_service), queue_service.queue_state(ladder)
    first.step(ladder)
    (ann,) = join_queue(queue_service, ladder, party("ann"))
    clock.move(seconds=7)
    first.leases.release(lease_of(queue_state.ladder))
    clock.move(seconds=30)
    (bob,) = join_queue(queue_service, ladder, party("bob"))
    clock.move(seconds=30)
    other = QueueService(other_service)
    assert [other.status(ladder, ticket).waited for ticket in (ann, bob)] == [0.0, 0.0]
    second = Matchmaker(other)
    second.step(ladder)
    clock.move(seconds=10)
    (cat,) = join_queue(queue_service, ladder, party("cat"))
    queue_state.catch_up(clock())
    for seen in (queue_service, other):
        assert [seen.status(ladder, ticket).waited for ticket in (ann, bob, cat)] == [10.0, 10.0, 0.0]
    check_everything(service)


def test_who_has_waited_as_long_as_anybody_may_is_given_up(queue_service, ladder, service, clock, maker):
    queue_service.set_queue(ladder, "ranked", {**PAIRS, "max_wait": 20.0})
    maker.step(ladder)
    (ticket,) = join_queue(queue_service, ladder, party("ann"))
    clock.move(seconds=20)
    assert maker.step(ladder).dropped == (ticket,)
    assert queue_service.status(ladder, ticket).ended.startswith("no match was found in 20 s")
    check_everything(service)


def test_who_is_banned_while_waiting_is_removed_with_the_party(queue_service, ladder, service, maker):
    queue_service.set_queue(ladder, "ranked", PAIRS, QueueRules(heartbeat=None))
    (both, alone) = join_queue(queue_service, ladder, party("bob", "cat"), party("ann"))
    assert maker.step(ladder).offers == ()
    service.correct(ladder, Ban("bob"))
    join_queue(queue_service, ladder, party("eve"))
    stepped = maker.step(ladder)
    assert (stepped.offers, stepped.dropped) == ((), (both,))
    assert queue_service.status(ladder, both).ended == "'bob' is banned from the ladder"
    assert queue_service.status(ladder, alone).state == "waiting"
    with pytest.raises(ConflictError, match="'bob' is banned"):
        join_one(queue_service, ladder, party("bob", "cat"))
    join_queue(queue_service, ladder, party("cat"))
    check_everything(service)


def test_an_offer_to_a_player_who_is_banned_is_called_off_without_strikes(queue_service, ladder, service, maker):
    ann, bob = join_queue(queue_service, ladder, *solos("ann", "bob"))
    assert len(maker.step(ladder).offers) == 1
    join_one(queue_service, ladder, Accept(ann))
    service.correct(ladder, Ban("bob"))
    assert maker.step(ladder).offers == ()
    told = queue_service.status(ladder, bob)
    assert (told.state, told.ended) == ("gone", "'bob' is banned from the ladder")
    assert queue_service.status(ladder, ann).state == "waiting"
    assert select_rows(service, "SELECT * FROM penalty") == []
    assert maker.step(ladder).offers == ()
    check_everything(service)


def test_only_who_holds_the_lease_makes_matches(queue_service, ladder, service, other_service, maker):
    other = Matchmaker(QueueService(other_service))
    assert maker.step(ladder) is not None
    assert other.step(ladder) is None
    join_queue(other.queue_service, ladder, *solos("ann", "bob"))
    assert len(maker.step(ladder).offers) == 1
    maker.leases.release(f"matchmaker of ladder {maker.queue_service.queue_state(ladder).ladder}")


def test_a_region_too_many_is_told_and_not_kept_waiting_for_ever(queue_service, ladder, service, maker):
    queue_service.set_queue(ladder, "ranked", PAIRS)
    many = [party(f"p{at}", ping={f"r{at}": 10.0}) for at in range(61)]
    tickets = join_queue(queue_service, ladder, *many)
    assert maker.step(ladder).dropped == (tickets[60],)
    assert "expected at most 60 in a queue" in queue_service.status(ladder, tickets[60]).ended
    check_everything(service)


def test_two_matchmakers_in_turn_never_offer_a_ticket_twice(queue_service, ladder, service, other_service):
    """Each thinks of what it read before the other wrote: what no longer holds is left out when it writes."""
    makers = [always(queue_service), always(QueueService(other_service))]
    for number in range(20):
        names = [f"p{number}-{at}" for at in range(5)]
        tickets = join_queue(queue_service, ladder, *solos(*names))
        for maker in makers if number % 2 else makers[::-1]:
            maker.step(ladder)
        join_one(queue_service, ladder, Leave(tickets[4]))
        check_everything(service)


def test_what_changed_while_it_was_thinking_is_left_out(queue_service, ladder, service, other_service):
    """Between the thinking and the writing of one matchmaker the other makes its offers, and a player leaves."""
    slow, quick = always(queue_service), always(QueueService(other_service))
    queue_state = queue_service.queue_state(ladder)
    think = queue_state.propose

    def think_long(now, taken):
        found = think(now, taken)
        quick.step(ladder)
        join_queue(quick.queue_service, ladder, party("eve"))
        return found

    tickets = join_queue(queue_service, ladder, *solos("ann", "bob", "cat"))
    queue_state.propose = think_long
    assert slow.step(ladder).offers == ()
    check_everything(service)
    states = [each.state for each in queue_service.statuses(ladder, tickets).values()]
    assert sorted(states) == ["offered", "offered", "waiting"]
    queue_state.propose = think
    assert len(slow.step(ladder).offers) == 1  # who was left over, and who came
    check_everything(service)


def test_a_ladder_that_fails_keeps_no_other_from_its_matches(queue_service, ladder, service, monkeypatch):
    service.create_ladder("arena", "elo", rules("elo"))
    queue_service.set_queue("arena", "ranked", DUEL, QueueRules(tick=0.05))
    maker, stop, asked = Matchmaker(queue_service), threading.Event(), threading.Event()
    step = maker.step

    def failing(where):
        if where == "arena":
            raise StoreError("the disk is full")
        return step(where)

    monkeypatch.setattr(maker, "step", failing)
    queue_service.notifier.listen(lambda *_: asked.set())
    join_queue(queue_service, ladder, *solos("ann", "bob"))
    loop = threading.Thread(target=maker.run, args=(stop,))
    loop.start()
    try:
        assert asked.wait(20)
    finally:
        stop.set()
        loop.join()


def test_two_processes_at_once_put_nobody_in_two_matches(service, other_service, ladder):
    """Two matchmakers that both believe in their lease, and players who join, accept and leave through both desks."""
    service.create_ladder("arena", "elo", rules("elo"))
    desks = [QueueService(service), QueueService(other_service)]
    for where in (ladder, "arena"):
        desks[0].set_queue(where, "ranked", PAIRS)
    over, failures = threading.Event(), []

    def make(queue_service):
        maker = always(queue_service)
        while not over.is_set():
            for where in (ladder, "arena"):
                maker.step(where)

    def play(queue_service, number):
        for turn in range(12):
            where = (ladder, "arena")[(turn + number) % 2]
            names = [f"p{(number + turn + at) % 8}" for at in range(3)]
            told = queue_service.apply(where, solos(*names))
            mine = [each.ticket for each in told if not isinstance(each, Exception)]
            queue_service.apply(where, [Accept(ticket) for ticket in mine])
            queue_service.apply(where, [Leave(ticket) for ticket in mine[: turn % 3]])

    def guarded(work, *values):
        try:
            work(*values)
        except Exception as error:
            failures.append(error)

    players = [threading.Thread(target=guarded, args=(play, desks[at % 2], at)) for at in range(4)]
    makers = [threading.Thread(target=guarded, args=(make, queue_service)) for queue_service in desks]
    for thread in (*makers, *players):
        thread.start()
    for thread in players:
        thread.join()
    over.set()
    for thread in makers:
        thread.join()
    assert failures == []
    check_everything(service)


def test_the_loop_makes_matches_and_lets_go_when_it_stops(queue_service, ladder, service, other_service):
    queue_service.set_queue(ladder, "ranked", DUEL, QueueRules(tick=0.05))
    asked, stop = threading.Event(), threading.Event()
    tickets = join_queue(queue_service, ladder, *solos("ann", "bob"))
    queue_service.notifier.listen(lambda *_: asked.set())
    loop = threading.Thread(target=Matchmaker(queue_service).run, args=(stop,))
    loop.start()
    try:
        assert asked.wait(20)
    finally:
        stop.set()
        loop.join()
    assert queue_service.status(ladder, tickets[0]).state == "offered"
    assert Matchmaker(QueueService(other_service)).step(ladder) is not None


def test_other_processes_hear_of_changes(queue_service, ladder, other_service, request):
    if "sqlite" in request.node.name:
        pytest.skip("SQLite tells nothing")
    heard, told, stop = [], threading.Event(), threading.Event()
    other = QueueService(other_service).notifier
    other.listen(lambda where, tickets: (heard.append((where, tickets)), told.set()))
    tickets = join_queue(queue_service, ladder, *solos("ann", "bob"))
    thread = threading.Thread(target=other.hear, args=(stop,))
    thread.start()
    try:
        for _ in range(100):
            join_one(queue_service, ladder, Leave(join_queue(queue_service, ladder, party("cat"))[0]))
            if told.wait(0.1):
                break
        heard.clear()
        told.clear()
        Matchmaker(queue_service).step(ladder)
        assert told.wait(10)
        assert (ladder, tickets) in heard
    finally:
        stop.set()
        thread.join()


def test_an_open_seat_is_filled(queue_service, ladder, service, clock, maker):
    """bob leaves a match of two against two; dan, who waits, is asked and comes into bob's team."""
    queue_service.set_queue(ladder, "ranked", PAIRS, QueueRules(heartbeat=None))
    tickets = join_queue(queue_service, ladder, party("ann", "bob"), party("cat", "eve"))
    maker.step(ladder)
    match_id = [granted(each).match_id for each in queue_service.apply(ladder, [Accept(ticket) for ticket in tickets])][
        1
    ]
    running = Running(service)
    clock.move(seconds=30)
    running.leaves(ladder, match_id, [Presence("bob", clock(), back=False)])
    seats = [
        int("bob" in [one.player for one in team]) for team in queue_service.status(ladder, tickets[0]).match.teams
    ]
    running.openings(ladder, match_id, "ranked", seats)
    check_everything(service)
    (waiting,) = join_queue(queue_service, ladder, party("dan"))
    (offer,) = maker.step(ladder).offers
    (later,) = join_queue(queue_service, ladder, party("fay"))
    assert maker.step(ladder).offers == ()  # the seat is offered already
    join_one(queue_service, ladder, Leave(later))
    asked = queue_service.status(ladder, waiting).offer
    assert (asked.offer, asked.match_id, asked.players) == (offer, match_id, 1)
    assert join_one(queue_service, ladder, Accept(waiting)).match_id == match_id
    teams = queue_service.status(ladder, waiting).match.teams
    assert sorted(sorted(one.player for one in team) for team in teams) == [["ann", "bob", "dan"], ["cat", "eve"]]
    check_everything(service)
    assert maker.step(ladder).offers == ()


def test_who_left_a_match_is_not_offered_a_seat_of_it_in_another_team(queue_service, ladder, service, clock, maker):
    """bob leaves; later eve's team lacks one, and bob waits alone: nobody is asked, until dan comes."""
    queue_service.set_queue(ladder, "ranked", DUEL, QueueRules(heartbeat=None, penalty=0.0))
    running = Running(service)
    running.announce(ladder, "m1", [["ann", "bob"], ["cat", "eve"]], queue="ranked")
    queue_service.set_queue(ladder, "ranked", PAIRS, QueueRules(heartbeat=None, penalty=0.0))
    running.leaves(ladder, "m1", [Presence(one_, clock(), back=False) for one_ in ("bob", "eve")])
    running.openings(ladder, "m1", "ranked", [0, 1])
    clock.move(seconds=1)
    (bob,) = join_queue(queue_service, ladder, party("bob", within=100.0))
    assert maker.step(ladder).offers == ()
    assert queue_service.status(ladder, bob).state == "waiting"
    (dan,) = join_queue(queue_service, ladder, party("dan", within=100.0))
    assert len(maker.step(ladder).offers) == 1
    assert (queue_service.status(ladder, bob).state, queue_service.status(ladder, dan).state) == ("waiting", "offered")
    check_everything(service)


def test_a_seat_whose_match_is_over_is_not_given(queue_service, ladder, service, clock, maker):
    queue_service.set_queue(ladder, "ranked", DUEL, QueueRules(heartbeat=None))
    running = Running(service)
    running.announce(ladder, "m1", [["ann"], ["bob"]], queue="ranked")
    running.leaves(ladder, "m1", [Presence("bob", clock(), back=False)])
    running.openings(ladder, "m1", "ranked", [0, 1])
    (waiting,) = join_queue(queue_service, ladder, party("dan", within=100.0))
    assert len(maker.step(ladder).offers) == 1
    running.cancel(ladder, "m1", "the server fell over")
    told = join_one(queue_service, ladder, Accept(waiting))
    assert (told.state, told.match_id) == ("waiting", None)
    assert maker.step(ladder).offers == ()
    check_everything(service)


def test_what_is_long_over_is_forgotten(queue_service, ladder, service, clock):
    tickets = join_queue(queue_service, ladder, *solos("ann", "bob", "cat"))
    Matchmaker(queue_service).step(ladder)
    accept_all(
        queue_service, ladder, [one_.ticket for one_ in queue_service.statuses(ladder, tickets).values() if one_.offer]
    )
    clock.move(days=1, seconds=1)
    Matchmaker(QueueService(service), always(queue_service).leases).step(ladder)
    assert select_rows(service, "SELECT state FROM ticket") == [("waiting",)]
    assert select_rows(service, "SELECT * FROM offer") == []
