"""The matchmaker: a queue, a moment and a policy in, proposed matches out."""

from __future__ import annotations

from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.serving import serve_overdue
from evenmatch.matchmaking.telling import tell
from evenmatch.matchmaking.tick import Tick
from evenmatch.matchmaking.view import view_of


def propose(queue: Queue, now: int, policy: Policy) -> Proposals:
    """The matches that can begin now; the queue stays as it is.

    now  microseconds since the epoch
    The same tickets, moment and policy give the same matches, whatever the order in which the tickets joined. No
    window, ping limit, avoid list, role or party is ever broken; preferences are weighed in seconds of waiting.
    Raises BadParameterError where the policy's `odds` give anything but chances.
    """
    view, expired = view_of(queue, now, policy)
    tick = Tick(queue, view, now, policy)
    if len(view.t):
        serve_overdue(tick)
        smallest = policy.team_size if policy.min_team_size is None else policy.min_team_size
        for size in range(policy.team_size, smallest - 1, -1):
            tick.serve(size)
    return tell(queue, tick.view, policy, now, tick.matches(), expired)
