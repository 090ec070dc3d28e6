"""Rows of table `told`: how far the deliveries to each webhook have got, by ladder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store

_COLUMNS = ("ladder", "webhook", "position", "change")


class Cursor(NamedTuple):
    """The last ledger event (position) and the last queue change for which a webhook has deliveries."""

    position: int
    change: int


def read_all(store: Store) -> dict[tuple[int, int], Cursor]:
    """All cursors by (ladder, webhook)."""
    rows = store.all("SELECT ladder, webhook, position, change FROM told")
    return {row[:2]: Cursor(*row[2:]) for row in rows}


def insert(store: Store, webhook: int, cursors: Mapping[int, Cursor]) -> None:
    """Insert the cursors of a new webhook, by ladder."""
    rows = [(ladder, webhook, *cursor) for ladder, cursor in cursors.items()]
    store.insert(live_schema.told, _COLUMNS, rows)


def move(store: Store, ladder: int, webhook: int, before: Cursor, after: Cursor) -> bool:
    """Move a webhook's cursor if it stands at `before`; without a row, it stands at 0, 0. Return whether it did."""
    store.upsert(live_schema.told, _COLUMNS, [(ladder, webhook, 0, 0)], same=True)
    moved = store.all(
        "UPDATE told SET position = ?, change = ? WHERE ladder = ? AND webhook = ? AND position = ? "
        "AND change = ? RETURNING webhook",
        *(*after, ladder, webhook, *before),
    )
    return bool(moved)


def delete(store: Store, webhook: int) -> None:
    """Delete all cursors of a webhook."""
    store.run("DELETE FROM told WHERE webhook = ?", webhook)
