"""The seats of a running match that a queue is to fill."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger.store import Head, Store
from evenmatch.service.playing.live import Live, Openings
from evenmatch.service.queueing import queue_rules


def wish(store: Store, head: Head, match: Live, queue: str | None, seats: Sequence[int] | None) -> Openings | None:
    """The wish for so many players in each team; None: for nobody.

    queue  None: the one that made the match
    Raises InputError for seats that the matches of the queue do not have.
    """
    name = repr(match.match_id)
    if seats is None or not any(seats):
        return None
    if queue is None and match.queue is None:
        raise InputError(f"match {name} was made by no queue; accepted is the name of one that is to fill its seats")
    policy = queue_rules.find(queue_rules.read(store, head.ladder), str(match.queue if queue is None else queue)).policy
    there = [sum(slot["spells"][-1][1] is None for slot in side) for side in match.body["teams"]]
    if len(there) != policy.teams:
        raise ConflictError(f"match {name} has {len(there)} teams; the queue fills matches of {policy.teams}")
    if len(seats) != len(there) or min(seats) < 0:
        raise InputError(f"seats are {list(seats)}; accepted is a number from 0 for each of {len(there)} teams")
    if not any(there):
        raise ConflictError(f"nobody is left in match {name}; accepted is one that somebody still plays")
    for at, (players, wished) in enumerate(zip(there, seats, strict=True)):
        if players + wished > policy.team_size:
            raise InputError(
                f"team {at} of match {name} has {players} players and would have {wished} open seats; accepted are "
                f"teams of at most {policy.team_size}"
            )
    return {"queue": str(match.queue if queue is None else queue), "seats": list(seats)}
