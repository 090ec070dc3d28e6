"""Rows of table `queue_filter`: the filter that each player keeps on a ladder."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store


def read(store: Store, ladder: int, players: Sequence[int]) -> dict[int, str]:
    """The filters of those of these players who keep one, as JSON, by player id."""
    sql = "SELECT player, body FROM queue_filter WHERE ladder = ? AND player IN ({})"
    return dict(store.among(sql, (ladder,), players))


def put(store: Store, ladder: int, player: int, body: str) -> None:
    """Insert or replace a player's filter."""
    store.upsert(live_schema.queue_filter, ("ladder", "player", "body"), [(ladder, player, body)])


def delete(store: Store, ladder: int, player: int) -> bool:
    """Delete a player's filter; return whether there was one."""
    sql = "DELETE FROM queue_filter WHERE ladder = ? AND player = ? RETURNING player"
    return bool(store.all(sql, ladder, player))
