"""The matchmaker: from a queue, a time and a policy to proposed matches."""

from __future__ import annotations

from evenmatch.matchmaking.match_details import no_matches, proposals_of
from evenmatch.matchmaking.overdue import serve_overdue
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tick import TickState
from evenmatch.matchmaking.view import view_of
from evenmatch.policy import Policy


def propose(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Propose the matches that can begin now. Does not change the queue.

    now  microseconds since the epoch
    The same tickets, time and policy give the same matches, whatever the order in which the tickets joined. Windows,
    ping limits, avoid lists, roles and parties are never violated; preferences are measured in seconds of waiting.
    Raises BadParameterError if the policy's `odds` return anything but chances.
    """
    view, expired = view_of(queue, now, policy)
    smallest = policy.team_size if policy.min_team_size is None else policy.min_team_size
    if view.t["size"].sum() < policy.teams * smallest:
        return no_matches(queue, policy, expired)
    tick = TickState(queue, view, now, policy)
    serve_overdue(tick)
    for size in range(policy.team_size, smallest - 1, -1):
        tick.serve(size)
    return proposals_of(queue, tick.view, policy, now, tick.matches(), expired)
