"""Rows of table `journal`: journal lines of a generation that differ from those first recorded with the event."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.ledger import generation_rows, schema
from evenmatch.ledger.block_rating import Block
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store


def insert(store: Store, rows: Sequence[Row]) -> None:
    """Insert rows of (ladder, generation, position, lines)."""
    store.insert(schema.journal, ("ladder", "generation", "position", "lines"), rows)


def read(store: Store, head: Head, positions: Sequence[int]) -> dict[int, tuple[bytes, int]]:
    """The current journal lines of matches by position: (lines, generation that determines their system)."""
    sql = (
        "SELECT e.position, COALESCE(j.lines, e.told), CASE WHEN j.lines IS NULL THEN e.generation ELSE ? END "
        "FROM event e LEFT JOIN journal j ON j.ladder = e.ladder AND j.generation = ? AND j.position = e.position "
        "WHERE e.ladder = ? AND e.position IN ({})"
    )
    values = [int(position) for position in positions]
    rows = store.among(sql, (head.generation, head.generation, head.ladder), values)
    return {row[0]: (bytes(row[1]), row[2]) for row in rows if row[1] is not None}


def read_changed(store: Store, head: Head, block: Block) -> dict[int, bytes]:
    """The lines by position, of matches of a block, that differ from those first recorded with the event."""
    sql = "SELECT position, lines FROM journal WHERE ladder = ? AND generation = ? AND position "
    first, last = int(block.counts_at[0]), int(block.counts_at[-1])
    rows = store.all(sql + "BETWEEN ? AND ?", head.ladder, head.generation, first, last)
    inserted = block.positions[block.positions != block.counts_at]
    rows += store.among(sql + "IN ({})", (head.ladder, head.generation), inserted.tolist())
    return dict(rows)


def count(store: Store, head: Head) -> int:
    """The number of matches of the current generation whose lines differ from those first recorded."""
    sql = "SELECT COUNT(*) FROM journal WHERE ladder = ? AND generation = ?"
    return int(store.all(sql, head.ladder, head.generation)[0][0])


def rated_among(store: Store, head: Head, positions: Ids) -> list[int]:
    """Those of these positions whose match is rated in the current generation, in no fixed order."""
    sql = (
        "SELECT e.position FROM event e "
        "LEFT JOIN journal j ON j.ladder = e.ladder AND j.generation = ? AND j.position = e.position "
        "WHERE e.ladder = ? AND LENGTH(COALESCE(j.lines, e.told)) > 0 AND e.position IN ({})"
    )
    return [row[0] for row in store.among(sql, (head.generation, head.ladder), positions.tolist())]


def copy(store: Store, head: Head, generation: int, first: int, last: int) -> None:
    """Copy the lines of the current generation at positions from `first` to `last` into another generation."""
    columns = ("position", "lines")
    generation_rows.copy(store, schema.journal, columns, head.ladder, head.generation, generation, (first, last))


def copy_inserted(store: Store, head: Head, generation: int, since: int) -> None:
    """Copy the lines of matches from position `since` on that count before it into another generation."""
    store.run(
        "INSERT INTO journal (ladder, generation, position, lines) SELECT j.ladder, ?, j.position, j.lines "
        "FROM event e JOIN journal j ON j.ladder = e.ladder AND j.position = e.position AND j.generation = ? "
        "WHERE e.ladder = ? AND e.counts_before < ? AND e.position >= ?",
        *(generation, head.generation, head.ladder, since, since),
    )


def delete_some(store: Store, ladder: int, generation: int, limit: int, *, earlier: bool) -> bool:
    """Delete up to `limit` rows of a generation (earlier: of all before it); False: none was left."""
    table = schema.journal
    return generation_rows.delete_some(store, table, "position", ladder, generation, limit, earlier=earlier)
