"""The queue: joining and leaving, refusals that change nothing, and its columns against a plain dictionary."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch.errors import InputError
from evenmatch.matchmaking import Member, Met, Queue, Ticket, Tickets, propose
from evenmatch.matchmaking.tickets import FOREVER
from matchmaking.sample_tickets import NOW, SECOND, party, plain_policy, queue_of, solo


def ticket_values(told: Tickets) -> dict[int, tuple]:
    """Each ticket as plain values, whatever the order of names of regions and roles."""
    found = {}
    for at, ticket in enumerate(told.id.tolist()):
        own, named = slice(*told.start[at : at + 2]), slice(*told.named_start[at : at + 2])
        ping = dict(zip(told.region_names, told.ping[at].tolist(), strict=True))
        anywhere = all(map(math.isnan, ping.values()))
        found[ticket] = (
            int(told.queued[at]),
            told.player[own].tolist(),
            told.percentile[own].tolist(),
            told.rating[own].tolist(),
            told.within[own].tolist(),
            told.loose[own].tolist(),
            told.newcomer[own].tolist(),
            [
                {name for bit, name in enumerate(told.role_names) if mask >> bit & 1}
                for mask in told.roles[own].tolist()
            ],
            None if anywhere else {name: value for name, value in ping.items() if value < math.inf},
            list(zip(told.named[named].tolist(), told.met[named].tolist(), strict=True)),
        )
    return found


def row(ticket: Ticket) -> tuple:
    """The same from the ticket itself."""
    members = ticket.members
    pings = None
    if ticket.regions is not None:
        pings = {name: max(one.ping[name] for one in members if one.ping) for name in ticket.regions}
    return (
        ticket.queued,
        [one.player for one in members],
        [one.percentile for one in members],
        [one.rating for one in members],
        [one.within for one in members],
        [one.loose for one in members],
        [one.newcomer for one in members],
        [set(one.roles) for one in members],
        pings,
        [(other, FOREVER) for one in members for other in one.avoid]
        + [tuple(met) for one in members for met in one.met],
    )


def agree(queue: Queue, model: dict[int, Ticket]) -> None:
    """Assert that the queue holds exactly these tickets."""
    assert len(queue) == len(model)
    assert queue.ids == sorted(model)
    assert queue.players == sum(len(ticket.members) for ticket in model.values())
    assert ticket_values(queue.tickets_of(queue.ids)) == {number: row(ticket) for number, ticket in model.items()}
    by_low = sorted(
        model.values(), key=lambda ticket: (min(one.percentile for one in ticket.members), ticket.queued, ticket.id)
    )
    assert queue.tickets["id"][queue.order()].tolist() == [ticket.id for ticket in by_low]
    for ticket in model.values():
        assert ticket.id in queue
        assert all(queue.ticket_of(one.player) == ticket.id for one in ticket.members)


def drawn(draw: np.random.Generator, number: int) -> Ticket:
    """A ticket with a bit of everything."""
    size = int(draw.choice([1, 1, 1, 2, 3, 5]))
    regions = [name for name in ("eu", "us", "asia", "sa") if draw.random() < 0.5] if draw.random() < 0.5 else []
    members = tuple(
        Member(
            player=1000 * number + at,
            percentile=float(draw.integers(0, 21) * 5),  # many are equal
            rating=float(draw.normal(1500, 300)),
            within=float(draw.uniform(0, 20)),
            loose=bool(draw.random() < 0.7),
            newcomer=bool(draw.random() < 0.2),
            roles=tuple(name for name in ("tank", "healer", "damage") if draw.random() < 0.3),
            ping={name: float(draw.integers(5, 200)) for name in regions},
            avoid=tuple(int(one) for one in 7 + draw.integers(0, 10**6, draw.integers(0, 3)) * 1000),
            met=tuple(Met(3 + 1000 * int(one), NOW) for one in draw.integers(10**7, 2 * 10**7, draw.integers(0, 2))),
        )
        for at in range(size)
    )
    return Ticket(id=number, queued=NOW - int(draw.integers(0, 5)) * SECOND, members=members)


def test_thousands_of_joins_and_leaves_leave_what_a_dictionary_holds():
    draw = np.random.default_rng(1)
    queue, model, number = Queue(), {}, 0
    for turn in range(160):
        fresh = [drawn(draw, number + at) for at in range(int(draw.integers(0, 30)))]
        number += len(fresh)
        if turn % 2 and fresh:
            queue.join_all(Tickets.of(fresh))
        else:
            for ticket in fresh:
                queue.join(ticket)
        model |= {ticket.id: ticket for ticket in fresh}
        share = 0.95 if turn % 30 == 29 else draw.uniform(0, 0.2)
        gone = [one for one in model if draw.random() < share]
        queue.leave_all(np.array(gone, np.int64) if turn % 3 else gone)
        for one in gone:
            del model[one]
        if turn % 10 == 9:
            agree(queue, model)
    assert number > 2000
    assert len(queue.tickets) <= 1024  # slots are used again
    assert len(queue.members) <= 4096  # and so are members' rows


STEPS = st.lists(
    st.tuples(st.sampled_from(["join", "bulk", "leave", "take", "order"]), st.integers(0, 30)), max_size=40
)


@settings(max_examples=40)
@given(STEPS, st.integers(0, 2**32 - 1))
def test_any_order_of_joining_and_leaving_leaves_what_a_dictionary_holds(steps, seed):
    draw = np.random.default_rng(seed)
    queue, model, number = Queue(), {}, 0
    for step, amount in steps:
        if step == "join":
            ticket = drawn(draw, number)
            number += 1
            queue.join(ticket)
            model[ticket.id] = ticket
        elif step == "bulk":
            fresh = [drawn(draw, number + at) for at in range(amount)]
            number += amount
            if fresh:
                queue.join_all(Tickets.of(fresh))
            model |= {ticket.id: ticket for ticket in fresh}
        elif step == "leave" and model:
            one = sorted(model)[amount % len(model)]
            queue.leave(one)
            del model[one]
        elif step == "take" and model:
            some = sorted(model)[:amount]
            queue.join_all(queue.take(some), arriving=False)  # out, and in again
        elif step == "order":
            queue.order()
    agree(queue, model)


def test_a_ticket_read_from_one_queue_is_the_same_in_another():
    draw = np.random.default_rng(5)
    tickets = [drawn(draw, number) for number in range(60)]
    first, other = queue_of(*tickets), Queue()
    other.join(solo(9999, 50, roles=("scout", "tank"), ping={"us": 1.0, "moon": 500.0}))  # names in another order
    other.join_all(first.take(first.ids[::-1]))
    assert len(first) == 0
    assert first.players == 0
    other.leave(9999)
    agree(other, {ticket.id: ticket for ticket in tickets})


def test_a_waiting_player_is_refused_and_nothing_changes():
    queue = queue_of(solo(1, 10), party(2, [20, 30], avoid=(7,), ping={"eu": 20.0}))
    before = ticket_values(queue.tickets_of(queue.ids))
    cases = [
        ([solo(1, 50)], "ticket 1 is already waiting"),
        ([solo(9, 50, ping={"us": 1.0}, roles=("tank",)), solo(2, 50)], "ticket 2 is already waiting"),
        ([party(9, [50], players=[201])], "player 201 is already waiting, in ticket 2"),
        ([solo(8, 50), party(9, [50, 51], players=[5, 1])], "player 1 is already waiting, in ticket 1"),
        ([solo(8, 50), solo(8, 51)], "ticket 8 is already waiting"),
        ([party(8, [50], players=[5]), party(9, [50], players=[5])], "player 5 is already waiting;"),
    ]
    for tickets, named in cases:
        with pytest.raises(InputError, match=named):
            queue.join_all(Tickets.of(tickets))
        if len(tickets) == 1:
            with pytest.raises(InputError, match=named):
                queue.join(tickets[0])
        assert queue.ids == [1, 2]
        assert queue.players == 3
        assert ticket_values(queue.tickets_of(queue.ids)) == before
        assert queue.ticket_of(5) is None
        assert queue.region_names == ["eu"]
        assert queue.arrivals_a_second(NOW).sum() * 30 == pytest.approx(3, rel=1)
    queue.join(solo(8, 50))
    assert queue.ids == [1, 2, 8]


def test_too_many_names_are_refused_and_nothing_changes():
    queue = queue_of(solo(1, 50, roles=tuple(f"role {at}" for at in range(60))))
    with pytest.raises(InputError, match="roles one too many would exceed the limit; expected at most 60"):
        queue.join(solo(2, 50, roles=("one too many",), ping={"eu": 20.0}))
    assert queue.ids == [1]
    assert queue.region_names == []
    queue = queue_of(*(solo(at, 50, ping={f"region {at}": 1.0}) for at in range(60)))
    for join in (queue.join, lambda ticket: queue.join_all(Tickets.of([ticket]))):
        with pytest.raises(InputError, match="regions moon would exceed the limit; expected at most 60"):
            join(solo(60, 50, ping={"moon": 1.0}))
    assert queue.ids == list(range(60))
    queue.join(solo(60, 50, ping={"region 59": 1.0}))
    assert [pings_in(queue, at) for at in range(61)] == [{f"region {min(at, 59)}": 1.0} for at in range(61)]


def pings_in(queue, ticket):
    return ticket_values(queue.tickets_of((ticket,)))[ticket][8]


@pytest.mark.parametrize("settles", [False, True])
def test_regions_that_one_ticket_alone_names_give_way_to_those_of_others(settles):
    """A player names sixty regions that do not exist, and waits or has left: others still have theirs."""
    made_up = {f"made up {at}": 1.0 for at in range(58)}
    queue = queue_of(solo(1, 50, ping={"eu": 20.0}), solo(2, 50, ping={"eu": 9.0, "us": 80.0}), solo(3, 50))
    queue.join(solo(4, 50, ping=made_up))
    if settles:
        queue.settle()
    queue.join(solo(5, 50, ping={"asia": 30.0, "africa": 70.0}))
    queue.join_all(Tickets.of([solo(6, 50, ping={"asia": 35.0}), solo(7, 50, ping={"oceania": 5.0, "us": 200.0})]))
    assert [pings_in(queue, at) for at in (1, 2, 3, 5, 6, 7)] == [
        *({"eu": 20.0}, {"eu": 9.0, "us": 80.0}, None, {"asia": 30.0, "africa": 70.0}),
        *({"asia": 35.0}, {"oceania": 5.0, "us": 200.0}),
    ]
    assert len(pings_in(queue, 4)) == 55
    assert pings_in(queue, 4).items() < made_up.items()
    others = solo(8, 50, ping={f"others {at}": 1.0 for at in range(55)})
    with pytest.raises(InputError, match="would exceed the limit; expected at most 60"):
        queue.join(others)
    queue.leave(4)
    queue.join(others)
    assert len(pings_in(queue, 8)) == 55
    queue.leave_all([3, 7, 8])
    found = {(match.region, *sorted(match.tickets)) for match in propose(queue, NOW, plain_policy())}
    assert found == {("eu", 1, 2), ("asia", 5, 6)}


def test_leaving_is_refused_where_one_does_not_wait_and_nothing_changes():
    queue = queue_of(solo(1, 10), solo(2, 20), solo(3, 30))
    for wrong, named in (
        ((1, 9), "ticket 9 is not waiting here"),
        ((2, 2), "given twice"),
        (np.array([3, 4]), "ticket 4 is not waiting"),
        (("1",), "ticket 1 is not waiting|ticket '1' is not waiting"),
    ):
        for call in (queue.leave_all, queue.tickets_of, queue.take):
            with pytest.raises(InputError, match=named):
                call(wrong)
        assert queue.ids == [1, 2, 3]
        assert queue.players == 3
    queue.leave(2)
    with pytest.raises(InputError, match="ticket 2 is not waiting here; expected a waiting ticket"):
        queue.leave(2)
    queue.leave_all(())
    assert queue.ids == [1, 3]
    queue.join(solo(2, 20))  # the number is free again, and so is the player
    assert queue.ticket_of(2) == 2


def test_tickets_stand_by_lowest_percentile_then_by_age_then_by_number():
    queue = queue_of(
        solo(5, 50, waited=3),
        solo(4, 50, waited=3),
        solo(9, 50, waited=8),
        party(7, [60, 49.5], waited=1),
        solo(1, 80, waited=99),
    )
    assert queue.tickets["id"][queue.order()].tolist() == [7, 9, 4, 5, 1]
    queue.leave(9)
    queue.join(solo(2, 50, waited=3))
    queue.join(solo(3, 80, waited=100))
    assert queue.tickets["id"][queue.order()].tolist() == [7, 2, 4, 5, 3, 1]
    assert queue.order() is queue.order()


def arrive(queue, number, second, percentile):
    queue.join(
        Ticket(id=number, queued=second * SECOND, members=(Member(player=number, percentile=percentile, rating=0.0),))
    )


def test_arrivals_are_counted_by_percentile_over_ten_minutes():
    queue = Queue()
    for number, (second, percentile) in enumerate([(60, 0.0), (61, 0.99), (89, 1.0), (90, 100.0), (100, 99.5)]):
        arrive(queue, number, second, percentile)
    rate = queue.arrivals_a_second(120 * SECOND)  # the first came in the half minute that began at 60
    assert rate.shape == (100,)
    assert rate[0] * 60 == pytest.approx(2)
    assert rate[1] * 60 == pytest.approx(1)
    assert rate[99] * 60 == pytest.approx(2)
    assert rate.sum() * 60 == pytest.approx(5)
    assert queue.arrivals_a_second(600 * SECOND).sum() * 540 == pytest.approx(5)


def test_arrivals_are_forgotten_after_ten_minutes_and_leaving_forgets_none():
    queue = Queue()
    for number in range(4):
        arrive(queue, number, 30 * number, 50.5)
    queue.leave_all((0, 1, 2))
    assert queue.arrivals_a_second(120 * SECOND)[50] * 120 == pytest.approx(4)
    assert queue.arrivals_a_second(599 * SECOND)[50] * 599 == pytest.approx(4)
    assert queue.arrivals_a_second(600 * SECOND)[50] * 570 == pytest.approx(3)  # the first half minute is gone
    assert queue.arrivals_a_second(690 * SECOND)[50] == 0
    assert queue.arrivals_a_second(10**9 * SECOND).sum() == 0
    arrive(queue, 9, 10**6, 50.5)
    assert queue.arrivals_a_second((10**6 + 60) * SECOND)[50] > 0


def test_every_member_of_a_party_arrives_and_who_comes_back_does_not():
    queue = queue_of(party(1, [10.5, 10.5, 90.5]))
    rate = queue.arrivals_a_second(NOW)
    assert rate[10] == pytest.approx(2 * rate[90])
    assert np.flatnonzero(rate).tolist() == [10, 90]
    before = rate.copy()
    queue.join_all(queue.take((1,)), arriving=False)
    other = solo(2, 10.5)
    queue.join(other, arriving=False)
    assert np.array_equal(queue.arrivals_a_second(NOW), before)
