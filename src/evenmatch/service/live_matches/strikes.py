"""Strikes for players who leave a live match, and their removal when the player returns."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.service.live_matches.match_rows import MatchSlot
from evenmatch.service.queues import penalties
from evenmatch.service.queues.queue_rules import rules_of

_COLUMNS = ("strikes", "struck_at", "until")


def strike(store: Store, ladder: int, queue: str | None, slots: Sequence[MatchSlot], now: int) -> None:
    """Give a strike to the players of these slots who have none in this match yet; record its effect in the slot.

    queue  the queue whose rules apply; None: no strikes, because no queued player was let down
    """
    new = [slot for slot in slots if slot.get("struck") is None]
    if queue is None or not new:
        return
    ids = [slot["id"] for slot in new]
    before = _read(store, ladder, ids)
    penalties.strike(store, ladder, ids, now, rules_of(store, ladder, queue))
    after = _read(store, ladder, ids)
    for slot in new:
        slot["struck"] = [before.get(slot["id"]), after[slot["id"]]]


def relent(store: Store, ladder: int, slots: Sequence[MatchSlot]) -> None:
    """Remove the strikes that the players of these slots got in this match.

    A strike stays if the player's penalty has changed since, by another strike or by forgiveness.
    """
    recorded = {slot["id"]: struck for slot in slots if (struck := slot.get("struck")) is not None}
    if not recorded:
        return
    present = _read(store, ladder, list(recorded))
    restored = {player: before for player, (before, after) in recorded.items() if present.get(player) == after}
    for player in [player for player, before in restored.items() if before is None]:
        penalties.forgive(store, ladder, player)
    rows = [(ladder, player, *before) for player, before in restored.items() if before is not None]
    store.rows.upsert(store.connection, live_schema.penalty, ("ladder", "player", *_COLUMNS), rows)
    for slot in slots:
        slot.pop("struck", None)


def _read(store: Store, ladder: int, players: Sequence[int]) -> dict[int, list[float]]:
    sql = f"SELECT player, {', '.join(_COLUMNS)} FROM penalty WHERE ladder = ? AND player IN ({{}})"
    return {row[0]: list(row[1:]) for row in store.rows.among(store.connection, sql, (ladder,), players)}
