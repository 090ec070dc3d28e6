"""The line of a ladder: by it the writers of its queues and matches wait for one another, and number their changes."""

from __future__ import annotations

from evenmatch.ledger.store import Store

_ADVANCE = (
    "INSERT INTO line (ladder, change) VALUES (?, ?) "
    "ON CONFLICT (ladder) DO UPDATE SET change = line.change + excluded.change RETURNING change"
)


def advance(store: Store, ladder: int, count: int) -> int:
    """The first of so many numbers for changes; the ladder's queues are locked until the transaction ends.

    Numbers rise in the order of commits, so who has read up to one misses nothing before it.
    """
    last: int = store.all(_ADVANCE, ladder, count)[0][0]
    return last - count + 1
