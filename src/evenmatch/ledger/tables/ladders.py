"""Rows of table `ladder`; `Store.head` and `Store.lock` read them together with the current generation."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.ledger import schema
from evenmatch.ledger.store import Store

MADE = "ladder:"  # begins the id of a ladder's first event, before its name


def exists(store: Store, name: str) -> bool:
    """Whether there is a ladder with this name."""
    return bool(store.all("SELECT 1 FROM ladder WHERE name = ?", name))


def names(store: Store, ladders: Sequence[int]) -> dict[int, str]:
    """The names of these ladders, by id."""
    return {row[0]: row[1] for row in store.among("SELECT ladder, name FROM ladder WHERE ladder IN ({})", (), ladders)}


def insert(store: Store, name: str, settings: str, now: int) -> int:
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
    """Make a generation the current one; no rebuild is due any more."""
    store.run("UPDATE ladder SET generation = ?, due = NULL WHERE ladder = ?", generation, ladder)


def set_settings(store: Store, ladder: int, settings: str) -> None:
    """Replace the settings, a JSON text."""
    store.run("UPDATE ladder SET settings = ? WHERE ladder = ?", settings, ladder)


def set_divided_at(store: Store, ladder: int, now: int) -> None:
    """Set the time at which the players' divisions were last recorded."""
    store.run("UPDATE ladder SET divided_at = ? WHERE ladder = ?", now, ladder)
