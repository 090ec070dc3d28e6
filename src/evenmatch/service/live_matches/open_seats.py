"""Open slots of a live match that a queue should fill."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables.live_matches import LiveMatchRow, Openings
from evenmatch.service import stored_queues
from evenmatch.service.live_matches.match_slots import check_expiry


def request_backfill(
    store: Store,
    head: Head,
    match: LiveMatchRow,
    queue: str | None,
    seats: Sequence[int] | None,
    limited_at: int | None,
) -> Openings | None:
    """The validated number of open slots for each team; None: none.

    queue       None: the queue that created the match
    limited_at  the time now, for a caller of some ladders only: the queue's players will hold seats on all ladders, so
                the match may not last longer from now on than this queue allows; None: as long as it says
    Raises InputError or ConflictError for slots that do not fit the queue's policy.
    """
    name = repr(match.match_id)
    if seats is None or not any(seats):
        return None
    if queue is None and match.queue is None:
        raise InputError(f"match {name} was not created by a queue; name the queue that should fill its open slots")
    filling = str(match.queue if queue is None else queue)
    setup = stored_queues.find(stored_queues.read(store, head.ladder), filling)
    policy = setup.policy
    present = [sum(slot["spells"][-1][1] is None for slot in side) for side in match.body["teams"]]
    if len(present) != policy.teams:
        raise ConflictError(f"match {name} has {len(present)} teams; the queue fills matches of {policy.teams} (teams)")
    if len(seats) != len(present) or min(seats) < 0:
        raise InputError(f"seats are {list(seats)}; expected a number from 0 for each of the {len(present)} teams")
    if not any(present):
        raise ConflictError(f"nobody is left in match {name}; only a match with players can be filled")
    for team, (players, open_slots) in enumerate(zip(present, seats, strict=True)):
        if players + open_slots > policy.team_size:
            raise InputError(
                f"team {team} of match {name} has {players} players and would have {open_slots} open seats; "
                f"a team has at most {policy.team_size} (team_size)"
            )
    if limited_at is not None:
        check_expiry(match.match_id, filling, match.expires_at, limited_at + round(setup.rules.longest_match * 1e6))
    return {"queue": filling, "seats": list(seats)}
