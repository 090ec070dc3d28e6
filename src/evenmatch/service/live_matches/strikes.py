"""Strikes for players who leave a live match, and their removal when the player returns."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import penalties
from evenmatch.ledger.tables.live_matches import MatchSlot
from evenmatch.ledger.tables.penalties import StoredPenalty
from evenmatch.service.penalties import strike as strike_players
from evenmatch.service.stored_queues import rules_of


def strike(store: Store, ladder: int, queue: str | None, slots: Sequence[MatchSlot], now: int) -> None:
    """Give a strike to the players of these slots who have none in this match yet; record its effect in the slot.

    queue  the queue whose rules apply; None: no strikes, because no queued player was let down
    """
    new = [slot for slot in slots if slot.get("struck") is None]
    if queue is None or not new:
        return
    ids = [slot["id"] for slot in new]
    before = penalties.read(store, ladder, ids)
    after = strike_players(store, ladder, ids, now, rules_of(store, ladder, queue))
    for slot in new:
        former = before.get(slot["id"])
        slot["struck"] = [None if former is None else list(former), list(after[slot["id"]])]


def relent(store: Store, ladder: int, slots: Sequence[MatchSlot]) -> None:
    """Remove the strikes that the players of these slots got in this match.

    A strike stays if the player's penalty has changed since, by another strike or by forgiveness.
    """
    recorded = {slot["id"]: struck for slot in slots if (struck := slot.get("struck")) is not None}
    if not recorded:
        return
    present = {player: list(penalty) for player, penalty in penalties.read(store, ladder, list(recorded)).items()}
    restored = {player: before for player, (before, after) in recorded.items() if present.get(player) == after}
    for player in [player for player, before in restored.items() if before is None]:
        penalties.delete(store, ladder, player)
    former = {player: StoredPenalty._make(before) for player, before in restored.items() if before is not None}
    penalties.put(store, ladder, former)
    for slot in slots:
        slot.pop("struck", None)
