"""The matchmaker: proposes matches from a queue, a time and a policy."""

from __future__ import annotations

from evenmatch.matchmaking.match_details import no_matches, tell
from evenmatch.matchmaking.overdue import serve_overdue
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tick import TickState
from evenmatch.matchmaking.view import view_of
from evenmatch.policy import Policy


def propose(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Propose the matches that can begin now; the queue is not changed.

    now  microseconds since the epoch
    Equal tickets, time and policy give equal matches, regardless of the order of joining. Windows, ping limits, avoid
    lists, roles and parties are always respected; preferences are weighed in seconds of waiting.
    Raises BadParameterError if the policy's `odds` return anything other than chances.
    """
    view, expired = view_of(queue, now, policy)
    smallest = policy.team_size if policy.min_team_size is None else policy.min_team_size
    if view.t["size"].sum() < policy.teams * smallest:
        return no_matches(queue, policy, expired)
    tick = TickState(queue, view, now, policy)
    serve_overdue(tick)
    for size in range(policy.team_size, smallest - 1, -1):
        tick.serve(size)
    return tell(queue, tick.view, policy, now, tick.matches(), expired)
