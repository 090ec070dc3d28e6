"""Strikes for who leaves a running match, and their taking back where the player returns."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.service.playing.live import Slot
from evenmatch.service.queueing import penalties
from evenmatch.service.queueing.queue_rules import rules_of

_COLUMNS = ("strikes", "struck_at", "until")


def strike(store: Store, ladder: int, queue: str | None, slots: Sequence[Slot], now: int) -> None:
    """Strike the players of these slots who were not struck in this match yet, and note in their slots what it did.

    queue  by whose rules; None: nobody is struck, since nobody was let down who had waited
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


def relent(store: Store, ladder: int, slots: Sequence[Slot]) -> None:
    """Take back the strikes that the players of these slots were given in this match.

    A strike stays where another one, or forgiveness, came since.
    """
    noted = {slot["id"]: struck for slot in slots if (struck := slot.get("struck")) is not None}
    if not noted:
        return
    present = _read(store, ladder, list(noted))
    back = {player: before for player, (before, after) in noted.items() if present.get(player) == after}
    for player in [player for player, before in back.items() if before is None]:
        penalties.forgive(store, ladder, player)
    rows = [(ladder, player, *before) for player, before in back.items() if before is not None]
    store.rows.upsert(store.connection, live_schema.penalty, ("ladder", "player", *_COLUMNS), rows)
    for slot in slots:
        slot.pop("struck", None)


def _read(store: Store, ladder: int, players: Sequence[int]) -> dict[int, list[float]]:
    sql = f"SELECT player, {', '.join(_COLUMNS)} FROM penalty WHERE ladder = ? AND player IN ({{}})"
    return {row[0]: list(row[1:]) for row in store.rows.among(store.connection, sql, (ladder,), players)}
