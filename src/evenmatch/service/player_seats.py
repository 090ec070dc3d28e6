"""Seats of players: a player with a seat can neither join a queue nor another match.

How far a seat reaches is decided by how the player came to it. Who accepted the offer of a queue has a seat on all
ladders. Who was announced by a caller of all ladders, too. An announcement by a key of some ladders gives a seat on
the ladder of the match alone: such a key cannot keep a player from ladders that it does not cover, and is not told what
the player does there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenmatch.errors import ConflictError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import ladder_seats, seats, tickets
from evenmatch.ledger.tables.live_matches import MatchSlot
from evenmatch.ledger.tables.seats import Seat


def seat_on(store: Store, ladder: int, player: int) -> Seat | None:
    """A player's seat on a ladder: their ticket there, also if the seat of its playlist names another; None: none."""
    seat = seats.read(store, [player]).get(player)
    if seat is not None and seat.ladder == ladder:
        return seat
    match_id = ladder_seats.read(store, ladder, [player]).get(player)
    if match_id is not None:
        return Seat(ladder, None, match_id)
    if seat is None or seat.ticket is None or seat.match_id is not None:
        return None
    for row in tickets.read_playlists(store, seat.ladder, [seat.ticket]).values():
        own = [entry for entry in row.playlist if entry.ladder == ladder]
        if any(state in tickets.OPEN for state in tickets.read_states(store, own).values()):
            return Seat(ladder, own[0].ticket, None)
    return None


def take(store: Store, head: Head, match_id: str, slots: Sequence[MatchSlot], *, everywhere: bool) -> None:
    """Give the players of these slots seats in a match of this ladder. Requires the ladder's change lock.

    everywhere  the seats hold on all ladders; False: on this ladder alone
    Raises ConflictError if a player has a seat that reaches this ladder.
    """
    named = {slot["id"]: slot["player"] for slot in slots}
    for player, other in sorted(ladder_seats.read(store, head.ladder, list(named)).items()):
        if other != match_id:
            raise _taken(named[player], Seat(head.ladder, None, other), head.name, match_id)
    if everywhere:
        _take_everywhere(store, head, match_id, named)
        return
    for player, seat in sorted(seats.read(store, list(named)).items()):
        here = seat if seat.ladder == head.ladder else seat_on(store, head.ladder, player)
        if here is not None:
            raise _taken(named[player], here, head.name, match_id)
    ladder_seats.insert_missing(store, head.ladder, named, match_id)


def _take_everywhere(store: Store, head: Head, match_id: str, named: dict[int, str]) -> None:
    own = Seat(head.ladder, None, match_id)
    seats.insert_missing(store, dict.fromkeys(named, own))
    for player, ladder, seat in seats.read_with_ladders(store, list(named)):
        if seat != own:
            raise _taken(named[player], seat, ladder, match_id)


def take_again(store: Store, head: Head, match_id: str, slots: Sequence[MatchSlot], *, everywhere: bool) -> None:
    """Give players who return to a match their seats again, unless they have taken others meanwhile.

    Who came to the match by a queue has a seat on all ladders, as before.
    """
    whole = {slot["id"] for slot in slots if everywhere or slot.get("ticket") is not None}
    busy = {slot["id"] for slot in slots if seat_on(store, head.ladder, slot["id"]) is not None}
    seats.insert_missing(store, dict.fromkeys(whole - busy, Seat(head.ladder, None, match_id)))
    here = {slot["id"] for slot in slots} - whole
    ladder_seats.insert_missing(store, head.ladder, here - busy, match_id)


def free(store: Store, head: Head, match_id: str, players: Iterable[int]) -> None:
    """Delete the seats of players in a match; their seats elsewhere stay."""
    listed = list(players)
    seats.delete_of_match(store, head.ladder, match_id, listed)
    ladder_seats.delete_of_match(store, head.ladder, match_id, listed)


def _taken(name: str, seat: Seat, ladder: str, match_id: str) -> ConflictError:
    where = f"waits in ticket {seat.ticket}" if seat.match_id is None else f"plays match {seat.match_id!r}"
    return ConflictError(f"player {name!r} {where} of ladder {ladder!r} and cannot join match {match_id!r}")
