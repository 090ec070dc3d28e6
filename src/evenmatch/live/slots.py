"""The slots of a live match, and seats. A player with a seat can join neither a queue nor another match.

A player who accepts a queue's offer, or is announced by a key for all ladders, gets a seat on all ladders. A key that
is limited to some ladders gives a seat that holds only on the ladder of the match. So it can neither keep a player from
other ladders nor learn what the player does there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger.store import Head, Store
from evenmatch.live import live_sql
from evenmatch.live.live_sql import EXPIRED, OPEN, LiveMatchBody, LiveMatchRow, MatchSlot
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import Seat
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
) -> LiveMatchRow:
    """Add a live match and return it. Players without attendance spans are present from the start."""
    for slot in (slot for team in body["teams"] for slot in team):
        slot.setdefault("spells", [[started_at, None]])
    match = LiveMatchRow(match_id, change, OPEN, queue, started_at, expires_at, body, None)
    live_sql.insert(store, ladder, match)
    return match


def fill_teams(
    store: Store, ladder: int, match_id: str, change: int, teams: Sequence[Sequence[MatchSlot]], now: int
) -> bool:
    """Add players to the open slots of teams, present from now on.

    Returns False and changes nothing if the match is over or has too few open slots, or if a player is present or has
    left another team of the match. A player who left the same team gets a new attendance span.
    """
    match = live_sql.read(store, ladder, [match_id]).get(match_id)
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
    live_sql.put(store, ladder, match._replace(change=change, openings=match.openings if any(seats) else None))
    return True


def state_in_words(match: LiveMatchRow) -> str:
    """The state of a match that is over, for messages. For an expired match, it names the settings that limit it."""
    return "expired (longest_match of its queue, or expires_in)" if match.state == EXPIRED else match.state


def check_on(match: LiveMatchRow) -> None:
    """Raise ConflictError if a match is over or is being closed."""
    if not match.is_on:
        state = "being closed" if match.state == OPEN else state_in_words(match)
        raise ConflictError(f"match {match.match_id!r} is {state}; it can no longer be changed")


def check_expiry(match_id: str, queue: str | None, expires_at: int, limit: int) -> None:
    """Raise InputError if a match would occupy the players of a queue on all ladders for too long."""
    if expires_at > limit:
        raise InputError(
            f"match {match_id!r} would occupy its players on all ladders until {iso_time(expires_at)}; a key that is "
            f"limited to some ladders may do so until {iso_time(limit)} (longest_match of queue {queue!r})"
        )


def seat_on(store: Store, ladder: int, player: int) -> Seat | None:
    """A player's seat on a ladder, which may be a playlist's ticket; None: the player has none."""
    seat = queue_sql.read_seats(store, [player]).get(player)
    if seat is not None and seat.ladder == ladder:
        return seat
    match_id = queue_sql.read_ladder_seats(store, ladder, [player]).get(player)
    if match_id is not None:
        return Seat(ladder, None, match_id)
    if seat is None or seat.ticket is None or seat.match_id is not None:
        return None
    for row in queue_sql.read_playlists(store, seat.ladder, [seat.ticket]).values():
        own = [entry for entry in row.playlist if entry.ladder == ladder]
        if any(state in queue_sql.TICKETS_OPEN for state in queue_sql.read_ticket_states(store, own).values()):
            return Seat(ladder, own[0].ticket, None)
    return None


def take(store: Store, head: Head, match_id: str, slots: Sequence[MatchSlot], *, everywhere: bool) -> None:
    """Give players seats in a match of this ladder. Requires the ladder's change lock.

    everywhere  whether the seats hold on all ladders, or on this one only
    Raises ConflictError if a player has a seat that reaches this ladder.
    """
    named = {slot["id"]: slot["player"] for slot in slots}
    for player, other in sorted(queue_sql.read_ladder_seats(store, head.ladder, list(named)).items()):
        if other != match_id:
            raise _taken(named[player], Seat(head.ladder, None, other), head.name, match_id)
    if everywhere:
        _take_everywhere(store, head, match_id, named)
        return
    for player, seat in sorted(queue_sql.read_seats(store, list(named)).items()):
        here = seat if seat.ladder == head.ladder else seat_on(store, head.ladder, player)
        if here is not None:
            raise _taken(named[player], here, head.name, match_id)
    queue_sql.insert_missing_ladder_seats(store, head.ladder, named, match_id)


def _take_everywhere(store: Store, head: Head, match_id: str, named: dict[int, str]) -> None:
    own = Seat(head.ladder, None, match_id)
    queue_sql.insert_missing_seats(store, dict.fromkeys(named, own))
    for player, ladder, seat in queue_sql.read_seats_with_ladders(store, list(named)):
        if seat != own:
            raise _taken(named[player], seat, ladder, match_id)


def take_again(store: Store, head: Head, match_id: str, slots: Sequence[MatchSlot], *, everywhere: bool) -> None:
    """Give players who return to a match their seats back, unless they have other seats by now.

    A player who came from a queue gets a seat on all ladders, as before.
    """
    whole = {slot["id"] for slot in slots if everywhere or slot.get("ticket") is not None}
    busy = {slot["id"] for slot in slots if seat_on(store, head.ladder, slot["id"]) is not None}
    queue_sql.insert_missing_seats(store, dict.fromkeys(whole - busy, Seat(head.ladder, None, match_id)))
    here = {slot["id"] for slot in slots} - whole
    queue_sql.insert_missing_ladder_seats(store, head.ladder, here - busy, match_id)


def free(store: Store, head: Head, match_id: str, players: Iterable[int]) -> None:
    """Delete the seats of players in a match. Their other seats stay."""
    listed = list(players)
    queue_sql.delete_seats_of_match(store, head.ladder, match_id, listed)
    queue_sql.delete_ladder_seats_of_match(store, head.ladder, match_id, listed)


def _taken(name: str, seat: Seat, ladder: str, match_id: str) -> ConflictError:
    where = f"waits in ticket {seat.ticket}" if seat.match_id is None else f"plays match {seat.match_id!r}"
    return ConflictError(f"player {name!r} {where} of ladder {ladder!r} and cannot join match {match_id!r}")
