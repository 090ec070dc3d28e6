"""Statements that the tables of a generation share: `state`, `journal` and `checkpoint`.

Each works on a limited number of rows, so that other transactions can write in between.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from evenmatch.ledger.store import Store


def selected(*, earlier: bool) -> str:
    """The SQL condition that follows `generation`, with one placeholder: that one, or (earlier) all before it."""
    return "< ?" if earlier else "= ?"


def copy(
    store: Store,
    table: sa.Table,
    columns: Sequence[str],
    ladder: int,
    source: int,
    target: int,
    positions: tuple[int, int],
) -> None:
    """Copy the rows of a generation at positions from the first to the last of `positions` into another generation."""
    listed = ", ".join(columns)
    store.run(
        f"INSERT INTO {table.name} (ladder, generation, {listed}) SELECT ladder, ?, {listed} FROM {table.name} "
        "WHERE ladder = ? AND generation = ? AND position BETWEEN ? AND ?",
        *(target, ladder, source, *positions),
    )


def delete_some(
    store: Store, table: sa.Table, key: str, ladder: int, generation: int, limit: int, *, earlier: bool
) -> bool:
    """Delete up to `limit` rows of a generation (earlier: of all before it) in order of `key`; False: none was left."""
    which = selected(earlier=earlier)
    end: int | None = store.all(
        f"SELECT MAX({key}), COUNT(*) FROM (SELECT {key} FROM {table.name} WHERE ladder = ? "
        f"AND generation {which} ORDER BY generation, {key} LIMIT ?) AS part",
        *(ladder, generation, limit),
    )[0][0]
    if end is None:
        return False
    store.run(
        f"DELETE FROM {table.name} WHERE ladder = ? AND generation {which} AND {key} <= ?", ladder, generation, end
    )
    return True
