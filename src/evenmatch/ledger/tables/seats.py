"""Rows of table `seat`: where each player waits or plays, in one place over all ladders."""

from __future__ import annotations

from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store


def count_by_ladder(store: Store) -> list[Row]:
    """(ladder id, waiting players, playing players, open matches with players) of each ladder with seats."""
    sql = (
        "SELECT ladder, COUNT(*) - COUNT(match_id), COUNT(match_id), COUNT(DISTINCT match_id) FROM seat GROUP BY ladder"
    )
    return store.all(sql)
