"""Several queues and their offers: who waits, who is asked, what an answer does."""

import pytest

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.matchmaking import Queues
from matchmaking.sample_tickets import NOW, SECOND, party, plain_policy, solo

DUEL, TEAMS = plain_policy(), plain_policy(team_size=2)


def made_queues(**policies):
    return Queues(policies if policies else {"duel": DUEL}, accept_within=20)


def waiting_tickets(all_queues):
    return {name: queue.ids for name, queue in all_queues.queues.items()}


def pair_asked():
    """Two players who are asked about a duel, and the offer."""
    all_queues = made_queues()
    all_queues.join({"duel": solo(1, 50, waited=7)})
    all_queues.join({"duel": solo(2, 50)})
    (offer,) = all_queues.tick(NOW).offers
    return all_queues, offer


def test_a_match_begins_when_all_its_players_have_accepted():
    all_queues, offer = pair_asked()
    assert (offer.id, offer.queue, offer.deadline) == (1, "duel", NOW + 20 * SECOND)
    assert sorted(offer.proposal.tickets) == [1, 2]
    assert all_queues.offers == (offer,)
    assert waiting_tickets(all_queues) == {"duel": []}
    assert all_queues.accept(1) is None
    assert all_queues.accept(1) is None  # saying it twice is harmless
    assert all_queues.accept(2) == offer
    assert all_queues.offers == ()
    assert waiting_tickets(all_queues) == {"duel": []}
    all_queues.join({"duel": solo(1, 50)})  # and both are free again
    all_queues.join({"duel": party(9, [50], players=[2])})


def test_who_declines_is_gone_and_the_others_wait_again_with_their_age():
    all_queues, offer = pair_asked()
    all_queues.accept(1)
    assert all_queues.decline(2) == offer
    assert all_queues.offers == ()
    assert waiting_tickets(all_queues) == {"duel": [1]}
    assert all_queues.queues["duel"].tickets_of((1,)).queued.tolist() == [NOW - 7 * SECOND]
    all_queues.join({"duel": solo(3, 50)})
    (again,) = all_queues.tick(NOW + SECOND).offers
    assert (again.id, sorted(again.proposal.tickets), again.proposal.waited) == (2, [1, 3], 8)
    assert all_queues.accept(3) is None  # that the first accepted before counts no more
    assert all_queues.accept(1) == again


def test_an_offer_lapses_at_its_deadline_and_takes_out_who_said_nothing():
    all_queues, offer = pair_asked()
    all_queues.accept(2)
    early = all_queues.tick(NOW + 20 * SECOND - 1)
    assert (early.lapsed, early.offers) == ((), ())
    late = all_queues.tick(NOW + 20 * SECOND)
    assert late.lapsed == (offer,)
    assert late.offers == ()
    assert waiting_tickets(all_queues) == {"duel": [2]}
    for call in (all_queues.accept, all_queues.decline):
        with pytest.raises(InputError, match="player 1 has no open offer"):
            call(1)


def test_who_waits_again_when_an_offer_lapses_can_be_asked_in_the_same_tick():
    all_queues, _ = pair_asked()
    all_queues.accept(1)
    all_queues.join({"duel": solo(3, 50)})
    done = all_queues.tick(NOW + 30 * SECOND)
    assert len(done.lapsed) == 1
    assert [sorted(offer.proposal.tickets) for offer in done.offers] == [[1, 3]]
    assert done.offers[0].deadline == NOW + 50 * SECOND


def test_the_first_match_takes_a_ticket_out_of_all_queues():
    all_queues = made_queues(duel=DUEL, teams=TEAMS)
    all_queues.join({"duel": solo(1, 50), "teams": solo(1, 60)})
    all_queues.join({"teams": solo(2, 60), "duel": solo(2, 50)})
    all_queues.join({"teams": solo(3, 60)})
    all_queues.join({"teams": solo(4, 60)})
    (offer,) = all_queues.tick(NOW).offers
    assert (offer.queue, sorted(offer.proposal.tickets)) == ("duel", [1, 2])  # of queues as old the first by name
    assert waiting_tickets(all_queues) == {"duel": [], "teams": [3, 4]}
    all_queues.decline(2)
    assert waiting_tickets(all_queues) == {"duel": [1], "teams": [1, 3, 4]}
    assert all_queues.queues["teams"].tickets_of((1,)).percentile.tolist() == [60]
    all_queues.leave(1)
    assert waiting_tickets(all_queues) == {"duel": [], "teams": [3, 4]}


def test_the_queue_whose_oldest_ticket_waits_longest_goes_first():
    all_queues = made_queues(duel=DUEL, other=DUEL)
    for ticket in (solo(1, 50, waited=5), solo(2, 50, waited=5)):
        all_queues.join({"duel": ticket, "other": ticket})
    all_queues.join({"other": solo(3, 90, waited=6)})
    (offer,) = all_queues.tick(NOW).offers
    assert offer.queue == "other"


def test_leaving_while_asked_is_declining():
    all_queues, _ = pair_asked()
    all_queues.leave(1)
    assert all_queues.offers == ()
    assert waiting_tickets(all_queues) == {"duel": [2]}
    with pytest.raises(InputError, match="ticket 1 is not waiting"):
        all_queues.leave(1)


def test_who_is_given_up_leaves_all_queues():
    all_queues = made_queues(duel=plain_policy(max_wait=60), teams=TEAMS)
    old = solo(1, 50, waited=60)
    all_queues.join({"duel": old, "teams": old})
    all_queues.join({"duel": solo(2, 50, waited=59)})
    done = all_queues.tick(NOW)
    assert (done.expired, done.offers) == ((1,), ())
    assert waiting_tickets(all_queues) == {"duel": [2], "teams": []}
    all_queues.join({"teams": solo(1, 50)})  # and may come again
    assert all_queues.tick(NOW + SECOND).expired == (2,)


def test_what_cannot_join_is_refused_and_nothing_changes():
    all_queues = made_queues(duel=DUEL, teams=TEAMS)
    all_queues.join({"duel": solo(1, 50), "teams": solo(1, 50)})
    cases = [
        ({"teams": solo(1, 50)}, InputError, "ticket 1 is already waiting"),
        ({"teams": party(5, [50, 50], players=[6, 1])}, InputError, "player 1 is already waiting, in ticket 1"),
        ({"duel": solo(5, 50), "team": solo(5, 50)}, UnknownNameError, r"unknown queue 'team' \(did you mean 'teams'"),
        ({}, InputError, "no queue is given"),
        ({"duel": solo(5, 50), "teams": solo(6, 50)}, InputError, "ticket 5 differs between queues"),
        ({"duel": solo(5, 50), "teams": solo(5, 50, waited=1)}, InputError, "ticket 5 differs between queues"),
        (
            {"duel": party(5, [50], players=[7]), "teams": party(5, [50], players=[8])},
            InputError,
            "ticket 5 differs between queues",
        ),
    ]
    for tickets, kind, named in cases:
        with pytest.raises(kind, match=named):
            all_queues.join(tickets)
        assert waiting_tickets(all_queues) == {"duel": [1], "teams": [1]}
    all_queues.join({"duel": solo(5, 50), "teams": solo(5, 70)})
    assert waiting_tickets(all_queues) == {"duel": [1, 5], "teams": [1, 5]}


def test_a_queue_that_refuses_keeps_the_ticket_out_of_the_others_too():
    """The sixty-first role is one too many for a queue."""
    all_queues = made_queues(duel=DUEL, teams=TEAMS)
    all_queues.join({"teams": solo(1, 50, roles=tuple(f"role {at}" for at in range(60)))})
    more = solo(2, 50, roles=("one too many",))
    with pytest.raises(InputError, match="one too many"):
        all_queues.join({"duel": more, "teams": more})
    assert waiting_tickets(all_queues) == {"duel": [], "teams": [1]}
    all_queues.join({"duel": solo(2, 50)})


def test_who_is_asked_can_neither_join_again_nor_be_joined():
    all_queues, _ = pair_asked()
    for ticket, named in (
        (solo(1, 50), "ticket 1 is already waiting"),
        (party(9, [50, 50], players=[8, 2]), "player 2 is already waiting, in ticket 2"),
    ):
        with pytest.raises(InputError, match=named):
            all_queues.join({"duel": ticket})


def test_answers_of_those_who_are_not_asked_are_refused():
    all_queues, _ = pair_asked()
    all_queues.join({"duel": solo(3, 90)})
    for player in (3, 77):
        for call in (all_queues.accept, all_queues.decline):
            with pytest.raises(InputError, match=f"player {player} has no open offer; expected a player with one"):
                call(player)
    assert len(all_queues.offers) == 1


def test_who_comes_back_is_no_new_arrival():
    all_queues, _ = pair_asked()
    before = all_queues.queues["duel"].arrivals_a_second(NOW).sum()
    all_queues.decline(2)
    assert all_queues.queues["duel"].arrivals_a_second(NOW).sum() == before > 0
