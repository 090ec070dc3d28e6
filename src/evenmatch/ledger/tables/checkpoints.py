"""Rows of table `checkpoint`: the states of all players after an event, from which a replay can start."""

from __future__ import annotations

from evenmatch.ledger import generation_rows, schema
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store


def put(store: Store, ladder: int, generation: int, roster: Roster) -> None:
    """Insert or replace the checkpoint at the position of a complete roster."""
    store.upsert(
        schema.checkpoint,
        ("ladder", "generation", "position", "time", "states"),
        [(ladder, generation, roster.position, roster.time, roster.pack())],
    )


def read_last(store: Store, head: Head, before: int) -> tuple[int, int | None, bytes] | None:
    """(position, time, states) of the latest checkpoint before a position; None if there is none."""
    rows = store.all(
        "SELECT position, time, states FROM checkpoint WHERE ladder = ? AND generation = ? AND position < ? "
        "ORDER BY position DESC LIMIT 1",
        *(head.ladder, head.generation, before),
    )
    return (rows[0][0], rows[0][1], bytes(rows[0][2])) if rows else None


def last_position(store: Store, head: Head, before: int | None = None) -> int:
    """Position of the latest checkpoint, or of the latest one before a position; 0 if there is none."""
    sql = "SELECT MAX(position) FROM checkpoint WHERE ladder = ? AND generation = ?"
    bound, values = ("", ()) if before is None else (" AND position < ?", (before,))
    position: int | None = store.all(sql + bound, head.ladder, head.generation, *values)[0][0]
    return 0 if position is None else position


def read_positions(store: Store, head: Head) -> list[int]:
    """The positions of all checkpoints, ascending."""
    sql = "SELECT position FROM checkpoint WHERE ladder = ? AND generation = ? ORDER BY position"
    return [row[0] for row in store.all(sql, head.ladder, head.generation)]


def copy(store: Store, head: Head, generation: int, first: int, last: int) -> None:
    """Copy the checkpoints of the current generation at positions from `first` to `last` into another generation."""
    columns = ("position", "time", "states")
    generation_rows.copy(store, schema.checkpoint, columns, head.ladder, head.generation, generation, (first, last))


def delete_some(store: Store, ladder: int, generation: int, limit: int, *, earlier: bool) -> bool:
    """Delete up to `limit` rows of a generation (earlier: of all before it); False: none was left."""
    table = schema.checkpoint
    return generation_rows.delete_some(store, table, "position", ladder, generation, limit, earlier=earlier)
