"""A paused queue: nobody joins, nobody is offered a match, and whoever waits keeps waiting."""

import pytest

from evenmatch.accounts.access import OPERATOR
from evenmatch.accounts.audit_trail import Audit, AuditEntry
from evenmatch.errors import BadParameterError, ConflictError, InputError, UnknownNameError
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService, lease_of
from evenmatch.queues.requests import Accept
from service.sample_queues import DUEL, check_everything, hold_lease, join_queue, party, solos

RULES = QueueRules(heartbeat=None)


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", DUEL, RULES)
    made.set_queue(ladder, "quick", DUEL, RULES)
    hold_lease(made, ladder)
    return made


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", "queue 'ranked' is paused and takes no new tickets$"),
        (" Back at 18:00 UTC ", "queue 'ranked' is paused and takes no new tickets: Back at 18:00 UTC$"),
    ],
)
def test_a_paused_queue_takes_no_ticket_and_says_why(queue_service, ladder, message, told):
    queue_service.pause_queue(ladder, "ranked", message)
    for queues in (("ranked",), ("quick", "ranked")):
        with pytest.raises(ConflictError, match=told):
            join_queue(queue_service, ladder, party("ann", queues=queues))
    assert len(join_queue(queue_service, ladder, party("ann", queues=("quick",)))) == 1
    queue_service.pause_queue(ladder, "ranked", None)
    assert len(join_queue(queue_service, ladder, party("bob"))) == 1


def test_waiting_tickets_stay_without_a_match_until_the_queue_is_resumed(queue_service, ladder, service, maker):
    queue_service.pause_queue(ladder, "quick", "")
    (first,) = join_queue(queue_service, ladder, party("ann"))
    queue_service.pause_queue(ladder, "ranked", "Maintenance")
    assert maker.step(ladder).offers == ()
    told = queue_service.status(ladder, first)
    assert (told.state, told.paused, told.waiting) == ("waiting", {"ranked": "Maintenance"}, {})
    queue_service.pause_queue(ladder, "ranked", None)
    assert queue_service.status(ladder, first).paused == {}
    (second,) = join_queue(queue_service, ladder, party("bob"))
    queue_service.pause_queue(ladder, "ranked", "")
    assert maker.step(ladder).offers == ()
    queue_service.pause_queue(ladder, "ranked", None)
    assert len(maker.step(ladder).offers) == 1
    assert {queue_service.status(ladder, one).state for one in (first, second)} == {"offered"}
    check_everything(service)


def test_a_ticket_in_two_queues_finds_its_match_in_the_one_that_is_not_paused(queue_service, ladder, maker):
    both = [party(name, queues=("ranked", "quick")) for name in ("ann", "bob")]
    first, _ = join_queue(queue_service, ladder, *both)
    queue_service.pause_queue(ladder, "quick", "")
    told = queue_service.status(ladder, first)
    assert (told.paused, set(told.waiting)) == ({"quick": ""}, {"ranked"})
    (offer,) = maker.step(ladder).offers
    assert queue_service.status(ladder, first).offer.queue == "ranked"
    assert queue_service.status(ladder, first).offer.offer == offer


def test_an_offer_from_before_the_pause_can_be_accepted(queue_service, ladder, maker):
    tickets = join_queue(queue_service, ladder, *solos("ann", "bob"))
    maker.step(ladder)
    queue_service.pause_queue(ladder, "ranked", "")
    queue_service.apply(ladder, [Accept(ticket) for ticket in tickets])
    assert {queue_service.status(ladder, ticket).state for ticket in tickets} == {"matched"}


def test_a_repeated_join_gets_its_ticket_though_the_queue_is_paused(queue_service, ladder):
    (ticket,) = join_queue(queue_service, ladder, party("ann", request="r1"))
    queue_service.pause_queue(ladder, "ranked", "")
    assert join_queue(queue_service, ladder, party("ann", request="r1")) == [ticket]


def test_another_process_honours_a_pause_and_so_does_one_that_starts_later(
    queue_service, other_service, ladder, service
):
    join_queue(queue_service, ladder, *solos("ann", "bob"))
    running = QueueService(other_service)
    running.queue_state(ladder).catch_up(service.clock())
    queue_service.pause_queue(ladder, "ranked", "")
    holder = queue_service
    for elsewhere in (running, QueueService(other_service)):
        holder.leases.release(lease_of(elsewhere.levels.of(ladder).ladder))
        hold_lease(elsewhere, ladder)
        holder = elsewhere
        assert Matchmaker(elsewhere).step(ladder).offers == ()
        assert elsewhere.queue(ladder, "ranked").paused == ""
        with pytest.raises(ConflictError, match="is paused"):
            join_queue(elsewhere, ladder, party("cat"))
    queue_service.pause_queue(ladder, "ranked", None)
    assert len(Matchmaker(holder).step(ladder).offers) == 1


def test_the_pause_outlasts_another_policy(queue_service, ladder):
    queue_service.pause_queue(ladder, "ranked", "Maintenance")
    assert queue_service.set_queue(ladder, "ranked", DUEL, RULES).paused == "Maintenance"
    assert queue_service.queue(ladder, "ranked").paused == "Maintenance"


def test_a_pause_is_in_the_audit_trail(queue_service, ladder, service):
    entry = AuditEntry(OPERATOR, "queue.paused", ladder, "ranked", {"message": "Maintenance"})
    queue_service.noting(entry).pause_queue(ladder, "ranked", "Maintenance")
    (noted,) = Audit(service.database).page(ladder)
    assert (noted.action, noted.target, noted.body) == ("queue.paused", "ranked", {"message": "Maintenance"})


def test_a_pause_of_no_queue_or_with_a_message_that_cannot_be_is_refused(queue_service, ladder):
    with pytest.raises(UnknownNameError, match="'rankd'"):
        queue_service.pause_queue(ladder, "rankd", "")
    with pytest.raises(BadParameterError, match="the message has 201 characters; at most 200 are allowed"):
        queue_service.pause_queue(ladder, "ranked", "x" * 201)
    with pytest.raises(InputError):
        queue_service.pause_queue(ladder, "ranked", "a\0b")
    assert queue_service.queue(ladder, "ranked").paused is None
