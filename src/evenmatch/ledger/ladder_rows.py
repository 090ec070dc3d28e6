"""Rows of the tables `ladder`, `line`, `division`, `season` and `final`.

`Store.head` and `Store.lock` read a ladder together with its current generation. Every change to a ladder's queues
locks its row of `line` and gets a number from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from evenmatch.ledger import schema
from evenmatch.ledger.codec import division_checksums
from evenmatch.ledger.store import Row, Store
from evenmatch.times import Time

MADE = "ladder:"  # begins the id of a ladder's first event, before its name


def ladder_exists(store: Store, name: str) -> bool:
    """True if there is a ladder with this name."""
    return bool(store.all("SELECT 1 FROM ladder WHERE name = ?", name))


def ladder_names(store: Store, ladders: Sequence[int]) -> dict[int, str]:
    """The names of these ladders, by id."""
    return {row[0]: row[1] for row in store.among("SELECT ladder, name FROM ladder WHERE ladder IN ({})", (), ladders)}


def insert_ladder(store: Store, name: str, settings: str, now: int) -> int:
    """Insert a ladder without events, whose current generation is 1; return its id."""
    columns = ("name", "position", "generation", "corrected", "settings", "created_at", "divided_at")
    store.insert(schema.ladder, columns, [(name, 0, 1, 0, settings, now, 0)])
    ladder: int = store.all("SELECT ladder FROM ladder WHERE name = ?", name)[0][0]
    return ladder


def set_position(store: Store, ladder: int, position: int, seal: bytes) -> None:
    """Set the position and the seal of the last event."""
    store.run("UPDATE ladder SET position = ?, seal = ? WHERE ladder = ?", position, seal, ladder)


def set_corrected(store: Store, ladder: int, position: int) -> None:
    """Set the position of the last correction."""
    store.run("UPDATE ladder SET corrected = ? WHERE ladder = ?", position, ladder)


def set_due(store: Store, ladder: int, position: int) -> None:
    """Record that a rebuild is due from this position on."""
    store.run("UPDATE ladder SET due = ? WHERE ladder = ?", position, ladder)


def set_generation(store: Store, ladder: int, generation: int) -> None:
    """Make a generation the current one and clear the due rebuild."""
    store.run("UPDATE ladder SET generation = ?, due = NULL WHERE ladder = ?", generation, ladder)


def set_settings(store: Store, ladder: int, settings: str) -> None:
    """Replace the settings, a JSON text."""
    store.run("UPDATE ladder SET settings = ? WHERE ladder = ?", settings, ladder)


def set_divided_at(store: Store, ladder: int, now: int) -> None:
    """Set the time at which the players' divisions were last recorded."""
    store.run("UPDATE ladder SET divided_at = ? WHERE ladder = ?", now, ladder)


_ADVANCE = (
    "INSERT INTO line (ladder, change) VALUES (?, ?) "
    "ON CONFLICT (ladder) DO UPDATE SET change = line.change + excluded.change RETURNING change, {}"
)


def reserve_changes(store: Store, ladder: int, count: int) -> int:
    """Take the ladder's change lock until the transaction ends; reserve `count` change numbers, return the first.

    Numbers ascend in commit order, so a reader who has seen a change has seen all changes before it.
    """
    last: int = store.all(_ADVANCE.format(store.shorten_idle_limit), ladder, count)[0][0]
    return last - count + 1


def reserve_changes_of_each(store: Store, counts: Mapping[int, int]) -> dict[int, int]:
    """The same for several ladders, by id: the first change number reserved on each.

    Every transaction locks in this order, so there is no deadlock.
    """
    return {ladder: reserve_changes(store, ladder, counts[ladder]) for ladder in sorted(counts)}


def lock_changes(store: Store, ladder: int) -> None:
    """Take the ladder's change lock until the transaction ends, without a change number."""
    reserve_changes(store, ladder, 0)


def last_change(store: Store, ladder: int) -> int:
    """The last change number of a ladder's tickets, offers and live matches, read without the lock; 0: none yet."""
    rows = store.all("SELECT change FROM line WHERE ladder = ?", ladder)
    return int(rows[0][0]) if rows else 0


def last_changes(store: Store) -> dict[int, int]:
    """The last change number of each ladder that ever had a queue or a live match, by the ladder's id."""
    return dict(store.all("SELECT ladder, change FROM line"))


def read_changed_ladders(store: Store) -> list[str]:
    """The names of the ladders that ever had a queue or a live match, ascending."""
    sql = "SELECT l.name FROM line JOIN ladder l ON l.ladder = line.ladder ORDER BY l.name"
    return [row[0] for row in store.all(sql)]


def read_divisions(store: Store, ladder: int) -> list[Row]:
    """(player id, division index) of every player who was shown in a division, in no particular order."""
    return store.all("SELECT player, division FROM division WHERE ladder = ?", ladder)


def read_divisions_of(store: Store, ladder: int, players: list[int]) -> list[Row]:
    """(player id, division index) of these players, omitting players never shown a division; in no fixed order."""
    return store.among("SELECT player, division FROM division WHERE ladder = ? AND player IN ({})", (ladder,), players)


def read_damaged_divisions(store: Store, ladder: int) -> list[int]:
    """The ids of the players whose row was altered, ascending."""
    rows = store.all("SELECT player, division, checksum FROM division WHERE ladder = ? ORDER BY player", ladder)
    expected = _checksums(ladder, [row[:2] for row in rows])
    return [row[0] for row, checksum in zip(rows, expected, strict=True) if row[2] != checksum]


def put_divisions(store: Store, ladder: int, divisions: Iterable[tuple[int, int]]) -> None:
    """Insert or replace the division indices of players, as (player id, division index)."""
    rows = list(divisions)
    checked = zip(rows, _checksums(ladder, rows), strict=True)
    columns = ("ladder", "player", "division", "checksum")
    store.upsert(schema.division, columns, [(ladder, *row, checksum) for row, checksum in checked])


def _checksums(ladder: int, rows: list[tuple[int, int]]) -> list[int]:
    numbers = np.array(rows, np.int64).reshape(-1, 2)
    checksums: list[int] = division_checksums(ladder, numbers[:, 0], numbers[:, 1]).tolist()
    return checksums


def delete_divisions(store: Store, ladder: int) -> None:
    """Delete the divisions of all players of a ladder."""
    store.run("DELETE FROM division WHERE ladder = ?", ladder)


def delete_divisions_of(store: Store, ladder: int, players: list[int]) -> None:
    """Delete the divisions of these players."""
    store.run_among("DELETE FROM division WHERE ladder = ? AND player IN ({})", (ladder,), players)


FIRST_TITLE = "Season 1"


class Season(NamedTuple):
    """A season of a ladder.

    number     counted from 1
    position   ledger position of the event that opened the season
    closed_at  null: the season is open
    """

    number: int
    title: str
    position: int
    opened_at: Time
    closed_at: Time | None


def read_seasons(store: Store, ladder: int) -> list[Season]:
    """All seasons of a ladder, oldest first."""
    sql = "SELECT season, title, position, opened_at, closed_at FROM season WHERE ladder = ? ORDER BY season"
    return [Season(*row) for row in store.all(sql, ladder)]


def last_season(store: Store, ladder: int) -> int:
    """The number of a ladder's open season."""
    number: int = store.all("SELECT MAX(season) FROM season WHERE ladder = ?", ladder)[0][0]
    return number


def insert_season(store: Store, ladder: int, season: int, title: str, *, position: int, now: int) -> None:
    """Insert a season that begins after the event at a position."""
    columns = ("ladder", "season", "title", "position", "opened_at")
    store.insert(schema.season, columns, [(ladder, season, title, position, now)])


def replace_seasons(store: Store, ladder: int, seasons: Sequence[Season]) -> None:
    """Replace all seasons of a ladder."""
    store.run("DELETE FROM season WHERE ladder = ?", ladder)
    columns = ("ladder", "season", "title", "position", "opened_at", "closed_at")
    store.insert(schema.season, columns, [(ladder, *season) for season in seasons])


def set_season_closed_at(store: Store, ladder: int, season: int, now: int) -> None:
    """Close a season."""
    store.run("UPDATE season SET closed_at = ? WHERE ladder = ? AND season = ?", now, ladder, season)


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


def insert_final_standings(store: Store, ladder: int, season: int, rows: Iterable[FinalRow]) -> None:
    """Insert the standings of a season."""
    columns = dict(zip(FinalRow._fields, zip(*rows, strict=True), strict=False))
    if columns:  # not with COPY: the ladder is locked, and the server would wait for a frozen process forever
        store.insert_columns(schema.final, {"ladder": ladder, "season": season}, columns)


def digest_final_standings(store: Store, ladder: int, season: int) -> str:
    """A digest of all standings of a season, in hexadecimal digits."""
    total, last = hashlib.blake2b(digest_size=16), -1
    sql = f"SELECT {_COLUMNS} FROM final WHERE ladder = ? AND season = ? AND player > ? ORDER BY player LIMIT {_PAGE}"
    while rows := [FinalRow(*row) for row in store.all(sql, ladder, season, last)]:
        for row in rows:
            total.update(json.dumps(row).encode())
        last = rows[-1].player
    return total.hexdigest()


def read_final_standings(
    store: Store, ladder: int, season: int, offset: int, size: int, *, by: FinalOrder = "rank"
) -> list[FinalRow]:
    """Up to `size` standings of a season from `offset`, best first, players without a rank last.

    by  percentile or division: ties are ordered by player id; divisions by their highest percentile
    """
    rows = store.all(
        f"SELECT {_COLUMNS} FROM final LEFT JOIN (SELECT division AS name, max(percentile) AS top FROM final "
        "WHERE ladder = ? AND season = ? GROUP BY division) tops ON tops.name = final.division "
        f"WHERE ladder = ? AND season = ? ORDER BY {_ORDER[by]} LIMIT ? OFFSET ?",
        *(ladder, season, ladder, season, size, offset),
    )
    return [FinalRow(*row) for row in rows]


def read_final_standings_of(store: Store, ladder: int, players: Sequence[int]) -> list[tuple[int, FinalRow]]:
    """The standings of players in all seasons, with the number of the season, in order of season and player id."""
    sql = f"SELECT season, {_COLUMNS} FROM final WHERE ladder = ? AND player IN ({{}}) ORDER BY season, player"
    return [(season, FinalRow(*row)) for season, *row in store.among(sql, (ladder,), players)]
