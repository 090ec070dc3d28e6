"""Rows of table `division`: the index of the division that each player was last shown in."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evenmatch.ledger import schema
from evenmatch.ledger.codec import division_checksums
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store


def read(store: Store, ladder: int) -> list[Row]:
    """(player id, division index) of every player who was shown in a division, in no particular order."""
    return store.all("SELECT player, division FROM division WHERE ladder = ?", ladder)


def read_some(store: Store, ladder: int, players: list[int]) -> list[Row]:
    """(player id, division index) of those of these players who were shown in a division, in no particular order."""
    return store.among("SELECT player, division FROM division WHERE ladder = ? AND player IN ({})", (ladder,), players)


def read_damaged(store: Store, ladder: int) -> list[int]:
    """The ids of the players whose row is not as it was written, ascending."""
    rows = store.all("SELECT player, division, checksum FROM division WHERE ladder = ? ORDER BY player", ladder)
    expected = _checksums(ladder, [row[:2] for row in rows])
    return [row[0] for row, checksum in zip(rows, expected, strict=True) if row[2] != checksum]


def put(store: Store, ladder: int, divisions: Iterable[tuple[int, int]]) -> None:
    """Insert or replace the division indices of players, as (player id, division index)."""
    rows = list(divisions)
    checked = zip(rows, _checksums(ladder, rows), strict=True)
    columns = ("ladder", "player", "division", "checksum")
    store.upsert(schema.division, columns, [(ladder, *row, checksum) for row, checksum in checked])


def _checksums(ladder: int, rows: list[tuple[int, int]]) -> list[int]:
    numbers = np.array(rows, np.int64).reshape(-1, 2)
    checksums: list[int] = division_checksums(ladder, numbers[:, 0], numbers[:, 1]).tolist()
    return checksums


def delete(store: Store, ladder: int) -> None:
    """Delete the divisions of all players of a ladder."""
    store.run("DELETE FROM division WHERE ladder = ?", ladder)


def delete_some(store: Store, ladder: int, players: list[int]) -> None:
    """Delete the divisions of these players."""
    store.run_among("DELETE FROM division WHERE ladder = ? AND player IN ({})", (ladder,), players)
