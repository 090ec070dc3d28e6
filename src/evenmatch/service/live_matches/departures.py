"""Players leave or join a live match, with the consequences for their seats and strikes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenmatch.errors import UnknownNameError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import live_matches, player_identities
from evenmatch.ledger.tables.change_locks import advance
from evenmatch.ledger.tables.live_matches import LiveMatchRow, MatchSlot
from evenmatch.service import player_seats
from evenmatch.service.live_matches import strikes
from evenmatch.service.live_matches.attendance import Presence, change_side, enter, note
from evenmatch.service.live_matches.match_slots import check_on
from evenmatch.service.name_rule import check_names


def move(
    store: Store, head: Head, match: LiveMatchRow, presences: Sequence[Presence], now: int, *, everywhere: bool
) -> LiveMatchRow:
    """Record players who left or joined, in order; return the changed match. Requires the ladder's change lock.

    A player who leaves loses the seat, and gets a strike if a queue created the match; returning undoes both, unless
    the player has taken a seat elsewhere meanwhile. Raises ConflictError if a new player has a seat elsewhere.

    everywhere  whether the seats of those who join hold on all ladders, see player_seats
    """
    ids = player_identities.ids_of(store, sorted({presence.player for presence in presences}))
    new: set[int] = set()
    moved: set[int] = set()
    for presence in presences:
        slot = _slot(match, presence, ids)
        if slot is None:
            check_names(store, head, [presence.player])
            admitted, _ = player_identities.admit(store, [presence.player])
            slot = enter(match, presence, admitted[presence.player], now)
            new.add(slot["id"])
            ids |= admitted
        elif not _note(match, slot, presence, now):
            continue
        moved.add(slot["id"])
    if not moved:
        return match
    check_on(match)
    slots = [slot for slot in match.slots() if slot["id"] in moved]
    present = [slot for slot in slots if slot["spells"][-1][1] is None]
    absent = [slot for slot in slots if slot["spells"][-1][1] is not None]
    joining = [slot for slot in present if slot["id"] in new]
    returning = [slot for slot in present if slot["id"] not in new]
    player_seats.take(store, head, match.match_id, joining, everywhere=everywhere)
    player_seats.take_again(store, head, match.match_id, returning, everywhere=everywhere)
    player_seats.free(store, head, match.match_id, [slot["id"] for slot in absent])
    strikes.strike(store, head.ladder, match.queue, absent, now)
    strikes.relent(store, head.ladder, present)
    match = match._replace(change=advance(store, head.ladder, 1))
    live_matches.put(store, head.ladder, match)
    return match


def _note(match: LiveMatchRow, slot: MatchSlot, presence: Presence, now: int) -> bool:
    """Record that a player joined, left or changed sides; False: it was recorded before."""
    is_there = slot["spells"][-1][1] is None
    if not presence.back or presence.team is None:
        return note(match, slot, presence, now)
    returned = not is_there and note(match, slot, presence, now)
    return change_side(match, slot, presence, now) or returned


def _slot(match: LiveMatchRow, presence: Presence, ids: Mapping[str, int]) -> MatchSlot | None:
    """The slot of a player who is or was in the match; None: the player joins for the first time.

    Raises UnknownNameError for another player who leaves, or joins without a team.
    """
    by_name = {slot["player"]: slot for slot in match.slots()}
    by_id = {slot["id"]: slot for slot in match.slots()}
    slot = by_id.get(ids.get(presence.player, 0), by_name.get(presence.player))
    if slot is None and not (presence.back and presence.team is not None):
        raise UnknownNameError(f"player of match {match.match_id!r}", presence.player, sorted(by_name))
    return slot
