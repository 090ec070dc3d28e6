"""The slots of a live match: all of them at its start, and those that a queue fills later."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import live_matches
from evenmatch.ledger.tables.live_matches import EXPIRED, OPEN, LiveMatchBody, LiveMatchRow, MatchSlot
from evenmatch.times import iso_time


def begin(
    store: Store,
    ladder: int,
    match_id: str,
    change: int,
    queue: str | None,
    started_at: int,
    expires_at: int,
    body: LiveMatchBody,
) -> None:
    """Add a live match; players without attendance spans are there from its start."""
    for slot in (slot for team in body["teams"] for slot in team):
        slot.setdefault("spells", [[started_at, None]])
    match = LiveMatchRow(match_id, change, OPEN, queue, started_at, expires_at, body, None)
    live_matches.insert(store, ladder, match)


def fill_teams(
    store: Store, ladder: int, match_id: str, change: int, teams: Sequence[Sequence[MatchSlot]], now: int
) -> bool:
    """Add players to the open slots of teams, present from now on.

    Returns False and changes nothing if the match is over, has too few open slots, or has one of the players already,
    present or having left another team. A player who left the same team before gets a new attendance span.
    """
    match = live_matches.read(store, ladder, [match_id]).get(match_id)
    if match is None or not match.is_on or match.openings is None:
        return False
    seats = match.openings["seats"]
    if len(teams) > len(seats) or any(len(joining) > seats[index] for index, joining in enumerate(teams)):
        return False
    known = {slot["id"]: (index, slot) for index, side in enumerate(match.body["teams"]) for slot in side}
    returning = [
        (index, *known[new["id"]]) for index, joining in enumerate(teams) for new in joining if new["id"] in known
    ]
    if any(index != before or slot["spells"][-1][1] is None for index, before, slot in returning):
        return False
    for _, _, slot in returning:
        slot["spells"].append([now, None])
    for index, joining in enumerate(teams):
        match.body["teams"][index] += [{**new, "spells": [[now, None]]} for new in joining if new["id"] not in known]
        seats[index] -= len(joining)
    live_matches.put(store, ladder, match._replace(change=change, openings=match.openings if any(seats) else None))
    return True


def state_in_words(match: LiveMatchRow) -> str:
    """The state of a match that is over, for messages; for an expired one with what let it expire."""
    return "expired (longest_match of its queue, or expires_in)" if match.state == EXPIRED else match.state


def check_on(match: LiveMatchRow) -> None:
    """Raise ConflictError if a match is over or being closed."""
    if not match.is_on:
        state = "being closed" if match.state == OPEN else state_in_words(match)
        raise ConflictError(f"match {match.match_id!r} is {state}; it cannot be changed any more")


def check_expiry(match_id: str, queue: str | None, expires_at: int, limit: int) -> None:
    """Raise InputError if a match would keep the players of a queue from all ladders for too long."""
    if expires_at > limit:
        raise InputError(
            f"match {match_id!r} would keep its players from all ladders until {iso_time(expires_at)}; at most "
            f"{iso_time(limit)} is allowed for a key of some ladders only (longest_match of queue {queue!r})"
        )
