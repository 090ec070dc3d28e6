"""Rows of table `delivery`: the deliveries of events to webhooks."""

from __future__ import annotations

from evenmatch.ledger.store import Store


def count_waiting(store: Store) -> int:
    """The number of deliveries that wait for their next attempt."""
    count: int = store.all("SELECT COUNT(*) FROM delivery WHERE next_at IS NOT NULL")[0][0]
    return count


def count_dead(store: Store) -> int:
    """The number of deliveries that were given up."""
    sql = "SELECT COUNT(*) FROM delivery WHERE next_at IS NULL AND delivered_at IS NULL"
    count: int = store.all(sql)[0][0]
    return count
