"""Rows of tickets: picked, and put one after the other under all their regions and roles."""

import numpy as np

from evenmatch.lab.queue.ticket_source import append, pick
from evenmatch.matchmaking.tickets import Member, Met, Ticket, TicketChoice, Tickets


def made_ticket(number, *members):
    return Ticket(
        id=number,
        queued=number,
        members=tuple(
            Member(player=10 * number + at, percentile=50.0 + at, rating=1500.0, **more)
            for at, more in enumerate(members)
        ),
    )


FIRST = [
    made_ticket(1, {"ping": {"eu": 20.0}, "roles": ("tank",)}, {"roles": ("healer", "tank")}),
    made_ticket(2, {"avoid": (5, 6), "attributes": {"mode": ("ctf",)}, "vetoes": ("dust",)}),
]
SECOND = [
    made_ticket(3, {"ping": {"asia": 50.0, "eu": 90.0}, "max_ping": 60.0, "roles": ("scout",), "met": (Met(77, 4),)}),
    made_ticket(4, {"ping": {"asia": 55.0}, "roles": ("scout", "tank")}, {}, {"loose": False}),
    made_ticket(5, {"attributes": {"mode": ("dm", "ctf")}}),
    made_ticket(6, {"vetoes": ("dust",)}, {"attributes": {"mode": ("ctf",)}}),
]


def accepted(tickets):
    """What each ticket accepts."""
    return [tickets.choices[row] for row in tickets.choice.tolist()]


def same(one, other):
    """Whether they are the same tickets, whatever the order of regions and roles."""
    regions = [[tickets.region_names.index(name) for name in sorted(tickets.region_names)] for tickets in (one, other)]
    np.testing.assert_array_equal(one.ping[:, regions[0]], other.ping[:, regions[1]])
    for tickets in (one, other):
        assert len(tickets.roles) == len(tickets.player)
    offers = [
        [{name for at, name in enumerate(tickets.role_names) if int(mask) >> at & 1} for mask in tickets.roles]
        for tickets in (one, other)
    ]
    assert offers[0] == offers[1]
    assert accepted(one) == accepted(other)
    for column in ("id", "queued", "start", "player", "percentile", "within", "loose", "named_start", "named", "met"):
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column))


def test_tickets_that_know_other_regions_and_roles_are_put_together():
    both = append([Tickets.of(FIRST), Tickets.of(SECOND)])
    same(both, Tickets.of(FIRST + SECOND))
    assert both.region_names == ("eu", "asia")
    assert both.role_names == ("healer", "tank", "scout")
    same(append([both]), both)


def test_rows_are_picked_with_all_that_is_theirs():
    everything = Tickets.of(FIRST + SECOND)
    picked = pick(everything, np.array([3, 1, 2]))
    same(append([picked]), append([Tickets.of([SECOND[1], FIRST[1]]), Tickets.of([SECOND[0]])]))


def test_tickets_without_choices_are_put_together_with_choosy_ones():
    plain = Tickets.of(FIRST[:1])
    assert len(plain.choice) == 0
    both = append([plain, Tickets.of(FIRST[1:])])
    assert accepted(both) == [TicketChoice(), TicketChoice((("mode", ("ctf",)),), ("dust",))]
    assert accepted(pick(both, np.array([1, 0, 1]))) == [accepted(both)[row] for row in (1, 0, 1)]
    both.check()


def test_nothing_put_together_is_nothing():
    assert len(append([])) == 0
    append([]).check()
    assert len(pick(Tickets.of(FIRST), np.empty(0, np.int64))) == 0
