"""Compiled code that the matchmaker needs is loaded before anybody waits for it."""

from __future__ import annotations

from evenmatch.matchmaking import Member, Met, Opening, Policy, Queue, Ticket, backfill, propose, why

SECOND = 1_000_000
NOW = 1000 * SECOND


def warm() -> None:
    """Make a match and fill a seat of made-up players, who know everything that a party may wish."""
    policy = Policy(team_size=3, min_team_size=2, smaller_after=0.0, roles={"guard": 1}, max_odds=None, uncertainty=1.0)
    queue = Queue()
    for ticket in _tickets():
        queue.join(ticket)
    propose(queue, NOW, policy)
    why(0, queue, NOW, policy)
    inside = Ticket(id=100, queued=0, members=(_member(200),))
    backfill([Opening(match=0, formed=NOW, teams=((inside,), ()), seats=(2, 3))], queue, NOW, policy)
    for plain in (Policy(team_size=1), Policy(team_size=5), Policy(team_size=1, teams=4)):
        solos = Queue()
        for ticket in _tickets():
            if len(ticket.members) <= plain.team_size:
                solos.join(ticket)
        propose(solos, NOW, plain)


def _tickets() -> list[Ticket]:
    """Parties of one and two; each third has waited for long."""
    found = []
    for number in range(24):
        members = tuple(_member(2 * number + at) for at in range(1 + number % 2))
        found.append(Ticket(id=number, queued=0 if number % 3 else NOW - SECOND, members=members))
    return found


def _member(player: int) -> Member:
    return Member(
        player=player,
        percentile=50.0 + player % 5,
        rating=1500.0 + player,
        within=20.0,
        deviation=1.0,
        newcomer=player % 2 == 0,
        roles=("guard",) if player % 3 == 0 else (),
        ping={"here": 20.0},
        avoid=(player + 10,),
        met=(Met(player + 3, NOW - SECOND),),
    )
