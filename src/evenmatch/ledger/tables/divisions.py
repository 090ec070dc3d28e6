"""Rows of table `division`: the index of the division that each player was last shown in."""

from __future__ import annotations

from collections.abc import Iterable

from evenmatch.ledger import schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store


def read(store: Store, ladder: int) -> list[Row]:
    """(player id, division index) of every player who was shown in a division, in no particular order."""
    return store.all("SELECT player, division FROM division WHERE ladder = ?", ladder)


def put(store: Store, ladder: int, divisions: Iterable[tuple[int, int]]) -> None:
    """Insert or replace the division indices of players, as (player id, division index)."""
    store.upsert(schema.division, ("ladder", "player", "division"), [(ladder, *row) for row in divisions])


def delete(store: Store, ladder: int) -> None:
    """Delete the divisions of all players of a ladder."""
    store.run("DELETE FROM division WHERE ladder = ?", ladder)
