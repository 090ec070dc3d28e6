"""Who comes to wait, and who may not."""

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban
from evenmatch.errors import ConflictError, InputError, NotYetError, UnknownNameError
from evenmatch.live.live_matches import Running
from evenmatch.queues import queue_sql
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from ledger.sample_matches import duel
from service.sample_queues import (
    DUEL,
    PAIRS,
    Join,
    Leave,
    QueuedPlayer,
    check_everything,
    hold_lease,
    join_one,
    join_queue,
    party,
    select_rows,
    solos,
)


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", PAIRS)
    hold_lease(made, ladder)
    return made


def test_parties_join_and_get_numbers_that_rise(queue_service, ladder, service):
    first, second = join_queue(queue_service, ladder, party("ann", "bob"), party("cat"))
    assert second == first + 1
    told = queue_service.status(ladder, first)
    assert (told.state, told.players, told.queues) == ("waiting", ("ann", "bob"), ("ranked",))
    assert told.change == first
    assert told.waiting["ranked"].needed == 2
    check_everything(service)


def test_a_ticket_that_has_not_changed_is_read_without_what_it_waits_for(queue_service, ladder):
    first, second = join_queue(queue_service, ladder, party("ann"), party("bob"))
    told = queue_service.statuses(ladder, [first, second], {first: first, second: first})
    assert (told[first].change, told[first].waiting) == (first, {})
    assert (told[second].change, told[second].waiting["ranked"].needed) == (second, 3)


def test_a_player_stands_where_they_stand_on_the_ladder(queue_service, ladder, service):
    """Elo 1500 and k = 32: ann beats bob, so 1516 and 1484; each stands in the middle of a half."""
    service.record(duel(1, "ann", "bob", ladder))
    service.record(duel(2, "ann", "bob", ladder))
    service.view(ladder)  # or one that is some milliseconds old would do
    join_queue(queue_service, ladder, *solos("ann", "bob", "new"))
    queue_state = queue_service.queue_state(ladder)
    queue_state.catch_up(service.clock())
    members = {held.party.names[0]: held.party.members[0] for held in queue_state.held.values()}
    assert {name: one["percentile"] for name, one in members.items()} == {"ann": 75.0, "bob": 25.0, "new": 50.0}
    assert {name: one["newcomer"] for name, one in members.items()} == {"ann": False, "bob": False, "new": True}
    assert members["new"]["rating"] == 1500
    assert members["ann"]["rating"] == service.view(ladder).snapshot.standing(members["ann"]["id"]).rating


def test_one_who_is_refused_spoils_no_other(queue_service, ladder, service):
    told = queue_service.apply(
        ladder, [party("ann"), party("ann", "bob"), party("cat", queues=("casual",)), party("dan")]
    )
    assert [isinstance(each, Exception) for each in told] == [False, True, True, False]
    assert known_names(service) == ["ann", "dan"]
    check_everything(service)


def known_names(service):
    return sorted(name for (name,) in select_rows(service, "SELECT name FROM name"))


def test_names_to_avoid_are_not_made_players(queue_service, ladder, service):
    strangers = tuple(f"stranger-{number}" for number in range(100))
    join_queue(queue_service, ladder, party("ann", avoid=strangers))
    assert known_names(service) == ["ann"]


def test_a_player_whom_somebody_avoids_under_a_name_that_was_unknown_does_not_meet_them(queue_service, ladder, service):
    """The name is avoided although its player comes into being after the one who avoids it has joined."""
    queue_service.set_queue(ladder, "duel", DUEL)
    avoider, _ = join_queue(
        queue_service,
        ladder,
        party("ann", queues=("duel",), avoid=("eve",)),
        party("eve", queues=("duel",)),
    )
    maker = Matchmaker(queue_service)
    assert maker.step(ladder).offers == ()
    join_queue(queue_service, ladder, party("bob", queues=("duel",)))
    assert len(maker.step(ladder).offers) == 1
    assert len(select_rows(service, "SELECT offer FROM offer")) == 1
    join_one(queue_service, ladder, Leave(avoider))


@pytest.mark.parametrize("waits", [True, False])
def test_a_name_that_comes_into_being_after_it_was_avoided_is_avoided_by_all_processes(
    queue_service, other_service, ladder, waits
):
    queue_service.set_queue(ladder, "duel", DUEL)
    maker = Matchmaker(queue_service)
    join_queue(queue_service, ladder, party("ann", queues=("duel",), avoid=("eve",)))
    if waits:
        assert maker.step(ladder).offers == ()  # ann's ticket is read before eve's
    join_queue(QueueService(other_service), ladder, party("eve", queues=("duel",)))
    assert maker.step(ladder).offers == ()


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)  # SQLite has one writer at a time
def test_a_party_that_lost_a_seat_while_it_joined_leaves_no_new_player(
    queue_service, other_service, ladder, service, monkeypatch
):
    """Between the look at the seats and their taking, another process seats one of the party on another ladder."""
    service.create_ladder("arena", "elo", rules("elo"))
    queue_service.set_queue("arena", "ranked", DUEL)
    service.record(duel(1, "bob", "cat", ladder))
    insert, other = queue_sql.insert_missing_seats, QueueService(other_service)

    def insert_late(store, wanted):
        monkeypatch.setattr(queue_sql, "insert_missing_seats", insert)
        join_queue(other, "arena", party("bob"))
        insert(store, wanted)

    monkeypatch.setattr(queue_sql, "insert_missing_seats", insert_late)
    refused, granted = queue_service.apply(ladder, [party("bob", "new"), party("dan")])
    assert "'bob' waits" in str(refused)
    assert not isinstance(granted, Exception)
    assert known_names(service) == ["bob", "cat", "dan"]
    check_everything(service)


enemies = Join(members=(QueuedPlayer(name="ann", avoid=("bob",)), QueuedPlayer(name="bob")), queues=("ranked",))
REFUSED = [
    (party("ann", queues=("rankd",)), UnknownNameError, "unknown queue 'rankd' (did you mean 'ranked'?)"),
    (party("ann", queues=()), InputError, "name at least one queue"),
    (party("ann", queues=("ranked", "ranked")), InputError, "queue 'ranked' is named twice"),
    (party("a", "b", "c"), InputError, "a party of 3 is too large for queue 'ranked'; its teams have 2 players"),
    (party("ann", "ann"), InputError, "player 'ann' is in the party twice"),
    (party(), InputError, "the party has 0 members"),
    (party("ann\0"), InputError, "contains the character NUL"),
    (party("ann", within=101.0), InputError, "player 'ann': within is 101.0; expected a number from 0 to 100"),
    (party("bob", "ann", ping={"eu": -1.0}), InputError, "player 'bob': ping to 'eu' is -1.0"),
    (party("ann", ping={"eu": 90.0}, max_ping=50.0), InputError, "no region is within the ping limits"),
    (party("ann", roles=("tank",)), InputError, "offers the role 'tank'; none of its queues has roles"),
    (enemies, InputError, "player 'ann' avoids 'bob', who is in the same party"),
    (party("ann", avoid=("ann",)), InputError, "player 'ann' avoids 'ann', who is in the same party"),
]


@pytest.mark.parametrize(("wish", "kind", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_what_cannot_be_is_refused_with_its_reason(queue_service, ladder, service, wish, kind, said):
    with pytest.raises(kind) as refused:
        join_one(queue_service, ladder, wish)
    assert said in str(refused.value)
    assert select_rows(service, "SELECT * FROM seat") == []
    assert select_rows(service, "SELECT * FROM player") == []
    assert select_rows(service, "SELECT * FROM name") == []


def test_a_role_of_one_of_its_queues_is_accepted(queue_service, ladder):
    queue_service.set_queue(ladder, "roles", {**PAIRS, "roles": {"tank": 1}})
    (ticket,) = join_queue(queue_service, ladder, party("ann", queues=("ranked", "roles"), roles=("tank",)))
    assert set(queue_service.status(ladder, ticket).waiting) == {"ranked", "roles"}
    with pytest.raises(InputError, match="offers the role 'mage'; the roles are tank"):
        join_one(queue_service, ladder, party("bob", queues=("roles",), roles=("mage",)))


def test_who_waits_cannot_join_again_here_or_on_another_ladder(queue_service, ladder, service):
    service.create_ladder("arena", "elo", rules("elo"))
    queue_service.set_queue("arena", "ranked", DUEL)
    (ticket,) = join_queue(queue_service, ladder, party("ann", "bob"))
    said = f"player 'bob' waits in ticket {ticket} of ladder '{ladder}'"
    for where in (ladder, "arena"):
        with pytest.raises(ConflictError, match=said):
            join_one(queue_service, where, party("bob"))
    join_one(queue_service, ladder, Leave(ticket))
    join_queue(queue_service, "arena", party("bob"))
    check_everything(service)


def test_the_same_request_gives_the_same_ticket(queue_service, ladder, service, clock):
    first, second = join_queue(
        queue_service, ladder, party("ann", "bob", request="r1"), party("bob", "ann", request="r1")
    )
    assert first == second
    clock.move(seconds=5)
    assert join_queue(queue_service, ladder, party("ann", "bob", request="r1")) == [first]
    for other in (party("ann", "bob", request="r2"), party("ann", request="r1"), party("ann", "bob")):
        with pytest.raises(ConflictError, match="waits in ticket"):
            join_one(queue_service, ladder, other)
    join_one(queue_service, ladder, Leave(first))
    assert join_queue(queue_service, ladder, party("ann", "bob", request="r1")) != [first]
    check_everything(service)


def test_two_names_of_one_player_are_one_player(queue_service, ladder, service):
    join_queue(queue_service, ladder, party("ann"))
    service.rename("ann", "anna")
    with pytest.raises(ConflictError, match="'anna' waits in ticket"):
        join_one(queue_service, ladder, party("anna"))
    (ticket,) = [number for (number,) in select_rows(service, "SELECT ticket FROM ticket")]
    join_one(queue_service, ladder, Leave(ticket, "anna"))
    with pytest.raises(InputError, match="under two names"):
        join_one(queue_service, ladder, party("ann", "anna"))


def test_the_banned_are_refused(queue_service, ladder, service):
    service.record(duel(1, "ann", "bob", ladder))
    service.correct(ladder, Ban("bob", rule="void"))
    with pytest.raises(ConflictError, match="'bob' is banned"):
        join_one(queue_service, ladder, party("bob"))
    join_queue(queue_service, ladder, party("ann"))


def test_who_plays_is_told_until_when(queue_service, ladder, service, clock):
    Running(service).announce(ladder, "m1", [["ann"], ["bob"]], expires_in=600.0)
    with pytest.raises(NotYetError, match="'bob' plays match 'm1' of ladder 'duel' until") as refused:
        join_one(queue_service, ladder, party("bob"))
    assert refused.value.until == clock() + 600_000_000


def test_only_who_is_in_a_ticket_speaks_for_it(queue_service, ladder):
    (ticket,) = join_queue(queue_service, ladder, party("ann", "bob"))
    with pytest.raises(InputError, match="player 'eve' is not in ticket"):
        join_one(queue_service, ladder, Leave(ticket, "eve"))
    with pytest.raises(UnknownNameError, match="unknown ticket '999'"):
        join_one(queue_service, ladder, Leave(999))
    told = join_one(queue_service, ladder, Leave(ticket, "bob"))
    assert told.state == "gone"
    assert join_one(queue_service, ladder, Leave(ticket)).state == "gone"
    assert queue_service.status(ladder, ticket).ended == "left the queue"


def test_a_queue_is_replaced_and_removed(queue_service, ladder, service):
    (ticket,) = join_queue(queue_service, ladder, party("ann"))
    queue_service.set_queue(ladder, "ranked", DUEL, QueueRules(tick=0.5, heartbeat=None))
    assert queue_service.queue(ladder, "ranked").policy.team_size == 1
    assert queue_service.queue(ladder, "ranked").rules == QueueRules(tick=0.5, heartbeat=None)
    assert queue_service.status(ladder, ticket).waiting["ranked"].needed == 1
    with pytest.raises(ConflictError, match="1 ticket waits in queue 'ranked'"):
        queue_service.remove_queue(ladder, "ranked")
    assert queue_service.remove_queue(ladder, "ranked", force=True) == 1
    assert queue_service.status(ladder, ticket).ended == "queue 'ranked' was removed"
    assert queue_service.queues(ladder) == []
    with pytest.raises(UnknownNameError, match="unknown queue 'ranked'"):
        join_one(queue_service, ladder, party("ann"))
    check_everything(service)


def test_who_waits_is_counted_by_queue_band_and_region(queue_service, ladder, clock):
    queue_service.set_queue(ladder, "casual", PAIRS)
    join_queue(
        queue_service,
        ladder,
        party("ann", "bob", ping={"eu": 20.0, "us": 90.0}),
        party("cat", queues=("ranked", "casual")),
    )
    clock.move(seconds=3)
    counts = queue_service.counts(ladder)
    assert (counts["ranked"].tickets, counts["ranked"].players, counts["ranked"].oldest) == (2, 3, 3.0)
    assert counts["ranked"].bands == (0, 0, 0, 0, 0, 3, 0, 0, 0, 0)
    assert counts["ranked"].regions == {"eu": 2, "us": 2}
    assert counts["casual"].players == 1


def test_a_restart_loses_nobodys_place(queue_service, ladder, service, clock):
    (ticket,) = join_queue(queue_service, ladder, party("ann", "bob"))
    clock.move(seconds=20)
    told = QueueService(service).status(ladder, ticket)
    assert (told.state, told.waited) == ("waiting", 20.0)
    assert told.waiting["ranked"].waited == 20.0
