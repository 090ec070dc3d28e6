"""Rows of table `queue`: the policy and the rules of each queue, as JSON."""

from __future__ import annotations

from evenmatch.ledger.store import Store


def ladders_with_queues(store: Store) -> list[int]:
    """The ids of the ladders that have a queue, in no particular order."""
    return [row[0] for row in store.all("SELECT DISTINCT ladder FROM queue")]
