"""Rows of table `final`: the final standings of the seasons that have ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from evenmatch.ledger import schema
from evenmatch.ledger.store import Store


class FinalRow(NamedTuple):
    """A player's standing at the end of a season; rank, percentile and division are None if they were not shown."""

    player: int
    rank: int | None
    rating: float
    percentile: int | None
    division: str | None
    matches: int
    completed: int


FinalOrder = Literal["rank", "percentile", "division"]
_ORDER = {
    "rank": "CASE WHEN rank IS NULL THEN 1 ELSE 0 END, rank, rating DESC, player",
    "percentile": "CASE WHEN percentile IS NULL THEN 1 ELSE 0 END, percentile DESC, player",
    "division": "CASE WHEN division IS NULL THEN 1 ELSE 0 END, top DESC, player",
}
_COLUMNS = ", ".join(FinalRow._fields)
_PAGE = 10_000  # rows that are read at a time for a digest


def insert(store: Store, ladder: int, season: int, rows: Iterable[FinalRow]) -> None:
    """Insert the standings of a season."""
    columns = dict(zip(FinalRow._fields, zip(*rows, strict=True), strict=False))
    if columns:  # not with COPY, since the ladder is locked: the server would wait without end for a frozen process
        store.insert_columns(schema.final, {"ladder": ladder, "season": season}, columns)


def digest(store: Store, ladder: int, season: int) -> str:
    """A digest of all standings of a season, in hexadecimal digits."""
    total, last = hashlib.blake2b(digest_size=16), -1
    sql = f"SELECT {_COLUMNS} FROM final WHERE ladder = ? AND season = ? AND player > ? ORDER BY player LIMIT {_PAGE}"
    while rows := [FinalRow(*row) for row in store.all(sql, ladder, season, last)]:
        for row in rows:
            total.update(json.dumps(row).encode())
        last = rows[-1].player
    return total.hexdigest()


def read(store: Store, ladder: int, season: int, offset: int, size: int, *, by: FinalOrder = "rank") -> list[FinalRow]:
    """Up to `size` standings of a season from `offset` on, best first, players without a rank last.

    by  percentile, division: equal ones in order of player id; divisions by their highest percentile
    """
    rows = store.all(
        f"SELECT {_COLUMNS} FROM final LEFT JOIN (SELECT division AS name, max(percentile) AS top FROM final "
        "WHERE ladder = ? AND season = ? GROUP BY division) tops ON tops.name = final.division "
        f"WHERE ladder = ? AND season = ? ORDER BY {_ORDER[by]} LIMIT ? OFFSET ?",
        *(ladder, season, ladder, season, size, offset),
    )
    return [FinalRow(*row) for row in rows]


def read_of_players(store: Store, ladder: int, players: Sequence[int]) -> list[tuple[int, FinalRow]]:
    """The standings of players in all seasons, with the number of the season, in order of season and player id."""
    sql = f"SELECT season, {_COLUMNS} FROM final WHERE ladder = ? AND player IN ({{}}) ORDER BY season, player"
    return [(season, FinalRow(*row)) for season, *row in store.among(sql, (ladder,), players)]
