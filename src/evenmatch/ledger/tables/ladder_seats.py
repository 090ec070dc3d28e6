"""Rows of table `ladder_seat`: players in announced matches whose seats hold on one ladder only.

Writers hold the ladder's change lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store

_COLUMNS = ("ladder", "player", "match_id")


def read(store: Store, ladder: int, players: Sequence[int]) -> dict[int, str]:
    """The matches of those of these players who have a seat on this ladder only, by player id."""
    sql = "SELECT player, match_id FROM ladder_seat WHERE ladder = ? AND player IN ({})"
    return dict(store.among(sql, (ladder,), players))


def insert_missing(store: Store, ladder: int, players: Iterable[int], match_id: str) -> None:
    """Insert seats in a match; players who have a seat keep it."""
    rows = [(ladder, player, match_id) for player in sorted(players)]
    store.upsert(live_schema.ladder_seat, _COLUMNS, rows, same=True)


def delete_of_match(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Delete the seats of players in a match."""
    sql = "DELETE FROM ladder_seat WHERE ladder = ? AND match_id = ? AND player IN ({})"
    store.run_among(sql, (ladder, match_id), sorted(set(players)))
