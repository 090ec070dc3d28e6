"""Players leave a running match and come, with what follows for their seats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenmatch.errors import UnknownNameError
from evenmatch.ledger import people
from evenmatch.ledger.store import Head, Store
from evenmatch.service.playing import live, striking
from evenmatch.service.playing.announcing import seat_all
from evenmatch.service.playing.live import Live, Slot
from evenmatch.service.playing.presence import Presence, enter, note
from evenmatch.service.queueing.lines import advance


def move(store: Store, head: Head, match: Live, told: Sequence[Presence], now: int) -> Live:
    """Note who left and who came, in order; the match as it is then. The line is locked.

    Who leaves has no seat any more, and a strike if a queue made the match; who comes back has both as before, but for
    a seat that they took elsewhere meanwhile. Raises ConflictError where somebody new has a seat elsewhere.
    """
    ids = people.ids_of(store, sorted({one.player for one in told}))
    new: set[int] = set()
    moved: set[int] = set()
    for one in told:
        slot = _slot(match, one, ids)
        if slot is None:
            admitted, _ = people.admit(store, [one.player])
            slot = enter(match, one, admitted[one.player], now)
            new.add(slot["id"])
            ids |= admitted
        elif not note(match, slot, one, now):
            continue
        moved.add(slot["id"])
    if not moved:
        return match
    live.check_on(match)
    slots = [slot for slot in match.slots() if slot["id"] in moved]
    there = [slot for slot in slots if slot["spells"][-1][1] is None]
    gone = [slot for slot in slots if slot["spells"][-1][1] is not None]
    seat_all(store, head, match.match_id, [[slot for slot in there if slot["id"] in new]])
    live.take_seats(store, head.ladder, match.match_id, [slot["id"] for slot in there if slot["id"] not in new])
    live.free_seats(store, head.ladder, match.match_id, [slot["id"] for slot in gone])
    striking.strike(store, head.ladder, match.queue, gone, now)
    striking.relent(store, head.ladder, there)
    match = match._replace(change=advance(store, head.ladder, 1))
    live.write(store, head.ladder, match)
    return match


def _slot(match: Live, told: Presence, ids: Mapping[str, int]) -> Slot | None:
    """The slot of a player who is or was in the match; None: they come for the first time.

    Raises UnknownNameError for a stranger who leaves it, or comes without a team.
    """
    found = {slot["player"]: slot for slot in match.slots()}
    by_id = {slot["id"]: slot for slot in match.slots()}
    slot = by_id.get(ids.get(told.player, 0), found.get(told.player))
    if slot is None and not (told.back and told.team is not None):
        raise UnknownNameError(f"player of match {match.match_id!r}", told.player, sorted(found))
    return slot
