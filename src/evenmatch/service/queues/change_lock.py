"""A ladder's change lock (its row in table `line`): serializes writes to its queues and live matches, numbers them."""

from __future__ import annotations

from evenmatch.ledger.store import Store

_ADVANCE = (
    "INSERT INTO line (ladder, change) VALUES (?, ?) "
    "ON CONFLICT (ladder) DO UPDATE SET change = line.change + excluded.change RETURNING change"
)


def advance(store: Store, ladder: int, count: int) -> int:
    """Take the ladder's change lock until the transaction ends; reserve `count` change numbers, return the first.

    Numbers ascend in commit order, so a reader who has seen a change has seen all changes before it.
    """
    last: int = store.all(_ADVANCE, ladder, count)[0][0]
    return last - count + 1
