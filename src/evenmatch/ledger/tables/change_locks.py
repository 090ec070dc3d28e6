"""A ladder's change lock (its row in table `line`): serializes writes to its queues and live matches, numbers them."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.ledger.store import Store

_ADVANCE = (
    "INSERT INTO line (ladder, change) VALUES (?, ?) "
    "ON CONFLICT (ladder) DO UPDATE SET change = line.change + excluded.change RETURNING change, {}"
)


def advance(store: Store, ladder: int, count: int) -> int:
    """Take the ladder's change lock until the transaction ends; reserve `count` change numbers, return the first.

    Numbers ascend in commit order, so a reader who has seen a change has seen all changes before it.
    """
    last: int = store.all(_ADVANCE.format(store.rows.shorten_idle_limit), ladder, count)[0][0]
    return last - count + 1


def advance_each(store: Store, counts: Mapping[int, int]) -> dict[int, int]:
    """The same for several ladders, by id: the first change number reserved on each.

    Every transaction locks in this order, so that none waits for another in a circle.
    """
    return {ladder: advance(store, ladder, counts[ladder]) for ladder in sorted(counts)}


def lock(store: Store, ladder: int) -> None:
    """Take the ladder's change lock until the transaction ends, without a change number."""
    advance(store, ladder, 0)


def last_change(store: Store, ladder: int) -> int:
    """The last change number of a ladder's tickets, offers and live matches, read without the lock; 0: none yet."""
    rows = store.all("SELECT change FROM line WHERE ladder = ?", ladder)
    return int(rows[0][0]) if rows else 0


def last_changes(store: Store) -> dict[int, int]:
    """The last change number of each ladder that ever had a queue or a live match, by the ladder's id."""
    return dict(store.all("SELECT ladder, change FROM line"))


def read_ladders(store: Store) -> list[str]:
    """The names of the ladders that ever had a queue or a live match, ascending."""
    sql = "SELECT l.name FROM line JOIN ladder l ON l.ladder = line.ladder ORDER BY l.name"
    return [row[0] for row in store.all(sql)]
