"""Rows of table `season`: the seasons of each ladder; the last one is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.ledger import schema
from evenmatch.ledger.store import Store

FIRST_TITLE = "Season 1"


class Season(NamedTuple):
    """A season of a ladder.

    number  from 1;  position  of the event that opened it;  opened_at, closed_at  microseconds; None: not closed yet
    """

    number: int
    title: str
    position: int
    opened_at: int
    closed_at: int | None


def read(store: Store, ladder: int) -> list[Season]:
    """All seasons of a ladder, oldest first."""
    sql = "SELECT season, title, position, opened_at, closed_at FROM season WHERE ladder = ? ORDER BY season"
    return [Season(*row) for row in store.all(sql, ladder)]


def last_number(store: Store, ladder: int) -> int:
    """The number of a ladder's open season."""
    number: int = store.all("SELECT MAX(season) FROM season WHERE ladder = ?", ladder)[0][0]
    return number


def insert(store: Store, ladder: int, season: int, title: str, *, position: int, now: int) -> None:
    """Insert a season that begins after the event at a position."""
    columns = ("ladder", "season", "title", "position", "opened_at")
    store.insert(schema.season, columns, [(ladder, season, title, position, now)])


def replace(store: Store, ladder: int, seasons: Sequence[Season]) -> None:
    """Replace all seasons of a ladder."""
    store.run("DELETE FROM season WHERE ladder = ?", ladder)
    columns = ("ladder", "season", "title", "position", "opened_at", "closed_at")
    store.insert(schema.season, columns, [(ladder, *season) for season in seasons])


def set_closed_at(store: Store, ladder: int, season: int, now: int) -> None:
    """Close a season."""
    store.run("UPDATE season SET closed_at = ? WHERE ladder = ? AND season = ?", now, ladder, season)
