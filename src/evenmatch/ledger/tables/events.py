"""Rows of table `event`: the matches and corrections of each ladder's ledger, changed only to erase a name."""

from __future__ import annotations

from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store


def read_after(store: Store, ladder: int, after: int, limit: int) -> list[Row]:
    """(position, id, kind, played_at) of the first `limit` events after a position, in order."""
    sql = "SELECT position, id, kind, played_at FROM event WHERE ladder = ? AND position > ? ORDER BY position LIMIT ?"
    return store.all(sql, ladder, after, limit)
