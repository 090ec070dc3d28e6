"""Matches that are offered: accepted, declined, left without an answer; and what follows."""

import pytest

from evenmatch.errors import ConflictError, InputError, NotYetError
from evenmatch.live.live_matches import Running
from evenmatch.queues import stored_queues
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from service.sample_queues import (
    DUEL,
    PAIRS,
    Accept,
    Decline,
    Leave,
    accept_all,
    check_everything,
    granted,
    join_one,
    join_queue,
    party,
    select_rows,
    solos,
)

SECOND = 1_000_000


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", PAIRS, QueueRules(accept_within=20, penalty=30, penalty_most=100))
    return made


@pytest.fixture
def four(queue_service, ladder, maker):
    """Two solo players and a party of two, who are asked."""
    tickets = join_queue(queue_service, ladder, party("ann"), party("bob"), party("cat", "dan"))
    stepped = maker.step(ladder)
    assert len(stepped.offers) == 1
    return tickets


def test_who_accepts_together_plays_together(queue_service, ladder, service, clock, four):
    asked = queue_service.status(ladder, four[2])
    assert (asked.state, asked.offer.players, asked.offer.accepted) == ("offered", 4, 0)
    assert asked.offer.own == {"cat": False, "dan": False}
    assert asked.offer.deadline == clock() + 20 * SECOND
    assert asked.offer.odds == (0.5, 0.5)
    told = queue_service.apply(ladder, [Accept(four[0]), Accept(four[1]), Accept(four[2], "cat")])
    assert {granted(one_).state for one_ in told} == {"offered"}
    assert queue_service.status(ladder, four[2]).offer.own == {"cat": True, "dan": False}
    assert queue_service.status(ladder, four[2]).change > asked.change
    made = join_one(queue_service, ladder, Accept(four[2], "dan"))
    assert made.state == "matched"
    status = queue_service.status(ladder, four[0])
    assert (status.state, status.match.match_id, status.match.state) == ("matched", made.match_id, "open")
    assert made.match_id.startswith(f"ranked-{asked.offer.offer}-")
    assert sorted(sorted(one.player for one in team) for team in status.match.teams) == [["ann", "bob"], ["cat", "dan"]]
    ((expires_at, queue),) = select_rows(service, "SELECT expires_at, queue FROM live")
    assert (expires_at, queue) == (clock() + 7200 * SECOND, "ranked")
    with pytest.raises(NotYetError, match=f"'ann' plays match '{made.match_id}'"):
        join_one(queue_service, ladder, party("ann"))
    assert join_one(queue_service, ladder, Accept(four[0])) == granted(
        queue_service.apply(ladder, [Accept(four[0], "ann")])[0]
    )
    check_everything(service)


def test_who_declines_is_gone_and_the_others_keep_their_age(queue_service, ladder, service, clock, maker, four):
    clock.move(seconds=5)
    join_one(queue_service, ladder, Accept(four[2], "cat"))
    told = join_one(queue_service, ladder, Decline(four[2], "dan"))
    assert told.state == "gone"
    assert queue_service.status(ladder, four[2]).ended == "dan declined an offered match"
    assert [(each.state, each.waited) for each in queue_service.statuses(ladder, four[:2]).values()] == [
        ("waiting", 5.0)
    ] * 2
    assert queue_service.penalties(ladder, "dan") == stored_queues.Penalty(1.0, clock() + 30 * SECOND)
    assert queue_service.penalties(ladder, "cat") is None
    with pytest.raises(NotYetError, match="'dan' declined, missed or left a match") as refused:
        join_one(queue_service, ladder, party("cat", "dan"))
    assert refused.value.until == clock() + 30 * SECOND
    join_queue(queue_service, ladder, party("cat"), party("eve"))
    assert len(maker.step(ladder).offers) == 1
    clock.move(seconds=30)
    check_everything(service)


def test_silence_costs_a_strike_and_the_ticket(queue_service, ladder, service, clock, maker, four):
    accept_all(queue_service, ladder, four[:1])
    join_one(queue_service, ladder, Accept(four[2], "cat"))
    clock.move(seconds=20)
    assert maker.step(ladder).lapsed == ()
    clock.move(seconds=1)
    with pytest.raises(ConflictError, match="open until"):
        join_one(queue_service, ladder, Accept(four[1]))
    assert len(maker.step(ladder).lapsed) == 1
    found = queue_service.statuses(ladder, four)
    assert [found[ticket].state for ticket in four] == ["waiting", "gone", "gone"]
    assert found[four[0]].waited == 21.0
    assert found[four[2]].ended == "dan did not answer an offered match in time"
    assert [queue_service.penalties(ladder, name) is None for name in ("ann", "bob", "cat", "dan")] == [
        True,
        False,
        True,
        False,
    ]
    check_everything(service)


def test_leaving_while_asked_is_declining(queue_service, ladder, service, four):
    accept_all(queue_service, ladder, [four[2]])
    join_one(queue_service, ladder, Leave(four[2]))
    assert queue_service.status(ladder, four[2]).ended == "cat, dan left while a match was offered"
    assert queue_service.penalties(ladder, "cat").strikes == queue_service.penalties(ladder, "dan").strikes == 1.0
    assert queue_service.status(ladder, four[0]).state == "waiting"
    check_everything(service)


def test_an_answer_must_be_to_the_present_offer(queue_service, ladder, service, maker, four):
    number = queue_service.status(ladder, four[0]).offer.offer
    with pytest.raises(ConflictError, match=f"has the offer {number}, not {number + 7}"):
        join_one(queue_service, ladder, Accept(four[0], None, number + 7))
    with pytest.raises(InputError, match="player 'bob' is not in ticket"):
        join_one(queue_service, ladder, Accept(four[0], "bob"))
    join_one(queue_service, ladder, Decline(four[1], "bob", number))
    assert join_one(queue_service, ladder, Decline(four[1], "bob", number)).state == "gone"
    with pytest.raises(ConflictError, match=f"offer {number} is off"):
        join_one(queue_service, ladder, Accept(four[0], "ann", number))
    with pytest.raises(ConflictError, match="is gone"):
        join_one(queue_service, ladder, Accept(four[1]))


def test_who_plays_neither_leaves_nor_declines(queue_service, ladder, four):
    accept_all(queue_service, ladder, four)
    for wish in (Leave(four[0]), Decline(four[0])):
        with pytest.raises(ConflictError, match="already has its match"):
            join_one(queue_service, ladder, wish)


def test_answers_in_one_transaction_see_one_another(queue_service, ladder, service, four):
    told = queue_service.apply(ladder, [Accept(four[0]), Decline(four[1]), Accept(four[2]), party("fay"), party("bob")])
    assert granted(told[0]).state == "offered"
    assert granted(told[1]).state == "gone"
    assert isinstance(told[2], ConflictError)
    assert granted(told[3]).state == "waiting"
    assert isinstance(told[4], NotYetError)
    check_everything(service)


def test_strikes_grow_and_fade(queue_service, ladder, clock, maker):
    """penalty 30, at most 100, half of the strikes forgotten in 3600 s: 30 for the first; an hour later 1.5 strikes.

    30 · 2^0.5 = 42.426; in the minute they wait a little fades, so 1 + 1.5 · 2^(-60/3600) = 2.48277, 30 · 2^1.48277 =
    83.846; two minutes later 1 + 2.48277 · 2^(-120/3600) = 3.42605, which would be 161 and is 100 at most.
    """
    waits = []
    for pause in (0, 3600, 60, 120):
        clock.move(seconds=pause)
        tickets = join_queue(queue_service, ladder, *solos("ann", "bob", "cat", "dan"))
        maker.step(ladder)
        join_one(queue_service, ladder, Decline(tickets[0]))
        waits.append((queue_service.penalties(ladder, "ann").until - clock()) / SECOND)
        for ticket in tickets[1:]:
            join_one(queue_service, ladder, Leave(ticket))
    assert waits == pytest.approx([30, 42.4264, 83.8459, 100], abs=1e-3)
    assert queue_service.penalties(ladder, "ann").strikes == pytest.approx(3.42605, abs=1e-4)
    clock.move(seconds=7200)
    assert queue_service.penalties(ladder, "ann").strikes == pytest.approx(3.42605 / 4, abs=1e-4)


def test_a_penalty_is_forgiven(queue_service, ladder, four):
    join_one(queue_service, ladder, Decline(four[0]))
    assert queue_service.forgive(ladder, "ann")
    assert not queue_service.forgive(ladder, "ann")
    join_queue(queue_service, ladder, party("ann"))


def test_a_ticket_in_two_queues_is_taken_by_one(queue_service, ladder, service, maker):
    queue_service.set_queue(ladder, "duels", DUEL, QueueRules(accept_within=5))
    both = ("ranked", "duels")
    tickets = join_queue(queue_service, ladder, *(party(name, queues=both) for name in "abc"), party("d"))
    stepped = maker.step(ladder)
    assert len(stepped.offers) == 1
    assert [each.state for each in queue_service.statuses(ladder, tickets).values()].count("offered") in (2, 4)
    asked = [each for each in queue_service.statuses(ladder, tickets).values() if each.offer is not None]
    assert {each.offer.queue for each in asked} == {"duels"}  # both have waited as long, and d comes before r
    join_one(queue_service, ladder, Decline(asked[0].ticket))
    other = queue_service.status(ladder, asked[1].ticket)
    assert other.state == "waiting"
    assert set(other.waiting) == set(both)
    check_everything(service)


def test_who_met_lately_is_not_met_again_at_once(service, ladder, clock):
    queue_service = QueueService(service)
    queue_service.set_queue(
        ladder, "ranked", {**DUEL, "rematch_wait": 60.0, "rematch_fade": 600.0}, QueueRules(heartbeat=None)
    )
    maker = Matchmaker(queue_service)
    accept_all(queue_service, ladder, _asked(queue_service, maker, ladder, "ann", "bob"))
    _over(service, ladder)
    clock.move(seconds=60)
    tickets = join_queue(queue_service, ladder, *solos("ann", "bob"))
    for other in (maker, Matchmaker(QueueService(service), maker.leases)):  # as it followed, and as it is read anew
        assert other.step(ladder).offers == ()
    clock.move(seconds=100)
    assert len(maker.step(ladder).offers) == 1
    assert queue_service.status(ladder, tickets[0]).state == "offered"


def test_a_meeting_is_as_long_ago_as_the_match_is_over(service, ladder, clock):
    """A match of 700 s, after which it is minded for 600 s."""
    queue_service = QueueService(service)
    queue_service.set_queue(
        ladder, "ranked", {**DUEL, "rematch_wait": 60.0, "rematch_fade": 600.0}, QueueRules(heartbeat=None)
    )
    maker = Matchmaker(queue_service)
    accept_all(queue_service, ladder, _asked(queue_service, maker, ladder, "ann", "bob"))
    maker.step(ladder)
    clock.move(seconds=700)
    _over(service, ladder)
    maker.step(ladder)
    join_queue(queue_service, ladder, *solos("ann", "bob"))
    assert maker.step(ladder).offers == ()
    clock.move(seconds=100)
    assert len(maker.step(ladder).offers) == 1


def _asked(queue_service, maker, ladder, *names):
    tickets = join_queue(queue_service, ladder, *solos(*names))
    assert len(maker.step(ladder).offers) == 1
    return tickets


def _over(service, ladder):
    ((match_id,),) = select_rows(service, "SELECT match_id FROM live WHERE state = 'open'")
    Running(service).cancel(ladder, match_id, "test")


def test_listeners_hear_of_every_ticket_that_changed(queue_service, ladder, maker):
    heard = []
    queue_service.listen(lambda where, tickets: heard.append((where, tickets)))
    tickets = join_queue(queue_service, ladder, *solos("ann", "bob", "cat", "dan"))
    maker.step(ladder)
    assert heard == [(ladder, tickets)]
    join_one(queue_service, ladder, Accept(tickets[0]))
    assert heard[1:] == [(ladder, tickets)]


def test_removing_a_queue_takes_its_offers_back_without_strikes(queue_service, ladder, service, four):
    queue_service.set_queue(ladder, "casual", PAIRS)
    assert queue_service.remove_queue(ladder, "ranked", force=True) == 3
    assert {each.state for each in queue_service.statuses(ladder, four).values()} == {"gone"}
    assert select_rows(service, "SELECT * FROM penalty") == []
    check_everything(service)
