"""Tickets, queues and policies for the tests of the matchmaker."""

from __future__ import annotations

from evenmatch.matchmaking import Member, Policy, Proposals, Queue, Ticket, propose

SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND

STEPS = ((0.0, 2.0), (15.0, 5.0), (30.0, 10.0), (60.0, 20.0), (120.0, 40.0), (240.0, 100.0))
PREFER_NOTHING = {
    "steps": STEPS,
    "party_wait": 0.0,
    "newcomer_wait": 0.0,
    "rematch_wait": 0.0,
    "even_spread": 100.0,
    "max_odds": None,
    "overdue_after": None,
}


def solo(ticket: int, percentile: float, *, waited: float = 0.0, rating: float = 1500.0, **wish) -> Ticket:
    """One player, numbered as the ticket, who has waited so many seconds at NOW."""
    return party(ticket, [percentile], waited=waited, ratings=[rating], players=[ticket], **wish)


def party(ticket, percentiles, *, waited=0.0, ratings=None, players=None, **wish) -> Ticket:
    """Players numbered 100 times the ticket and upwards, all with the same wishes, who have waited so many seconds."""
    players = range(100 * ticket, 100 * ticket + len(percentiles)) if players is None else players
    ratings = [1500.0] * len(percentiles) if ratings is None else ratings
    members = tuple(
        Member(player=player, percentile=percentile, rating=rating, **wish)
        for player, percentile, rating in zip(players, percentiles, ratings, strict=True)
    )
    return Ticket(id=ticket, queued=NOW - round(waited * SECOND), members=members)


def queue_of(*tickets: Ticket) -> Queue:
    queue = Queue()
    for ticket in tickets:
        queue.join(ticket)
    return queue


def plain_policy(**options) -> Policy:
    """A policy without preferences, caps and spread rule: one against one, if nothing else is said."""
    return Policy(**({"team_size": 1} | PREFER_NOTHING | options))


def proposed(tickets, policy: Policy, now: int = NOW) -> Proposals:
    return propose(queue_of(*tickets), now, policy)


def matched_tickets(tickets, policy: Policy, now: int = NOW) -> list[list[int]]:
    """The tickets of each proposed match, ascending."""
    return sorted(sorted(match.tickets) for match in proposed(tickets, policy, now))
