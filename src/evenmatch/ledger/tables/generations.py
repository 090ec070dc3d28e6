"""Rows of table `generation`: one per generation of a ladder's ratings."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.errors import DamageError
from evenmatch.ledger import schema
from evenmatch.ledger.generation_rows import selected
from evenmatch.ledger.store import Head, Store


class StoredGeneration(NamedTuple):
    """A generation as stored.

    planned  position of the last correction included;  ready  1: it has been in use
    """

    generation: int
    system: str
    planned: int
    ready: int


def insert(
    store: Store, ladder: int, generation: int, system: str, engine: str, *, planned: int, ready: bool, now: int
) -> None:
    """Insert a generation, without ratings yet."""
    columns = ("ladder", "generation", "system", "engine", "planned", "ready", "made_at")
    store.insert(schema.generation, columns, [(ladder, generation, system, engine, planned, int(ready), now)])


def exists(store: Store, ladder: int, generation: int) -> bool:
    """Whether there is a generation with this number."""
    return bool(store.all("SELECT 1 FROM generation WHERE ladder = ? AND generation = ?", ladder, generation))


def last_number(store: Store, ladder: int) -> int:
    """The highest number of a ladder's generations."""
    number: int = store.all("SELECT MAX(generation) FROM generation WHERE ladder = ?", ladder)[0][0]
    return number


def read_systems(store: Store, ladder: int) -> dict[int, str]:
    """The name of the system of each generation of a ladder, past ones included."""
    return dict(store.all("SELECT generation, system FROM generation WHERE ladder = ?", ladder))


def read_all(store: Store, ladder: int) -> list[StoredGeneration]:
    """The generations of a ladder, past ones included, in order."""
    sql = "SELECT generation, system, planned, ready FROM generation WHERE ladder = ? ORDER BY generation"
    return [StoredGeneration(*row) for row in store.all(sql, ladder)]


def read_planned(store: Store, head: Head, generation: int) -> int:
    """The position of the last correction that is included in a generation. Raises DamageError if it is missing."""
    sql = "SELECT planned FROM generation WHERE ladder = ? AND generation = ?"
    rows = store.all(sql, head.ladder, generation)
    if not rows:
        raise DamageError(
            f"generation {generation} of ladder {head.name!r}, which rated some of its matches, is missing; "
            "`evenmatch verify` shows what is damaged, restore a backup"
        )
    position: int = rows[0][0]
    return position


def set_planned(store: Store, ladder: int, generation: int, position: int) -> None:
    """Set the position of the last correction that is included."""
    store.run("UPDATE generation SET planned = ? WHERE ladder = ? AND generation = ?", position, ladder, generation)


def set_rated(store: Store, ladder: int, generation: int, *, time: int | None, learned: bytes) -> None:
    """Set the effective time of the last rated match, and what was learned of the ladder by then."""
    sql = "UPDATE generation SET time = ?, learned = ? WHERE ladder = ? AND generation = ?"
    store.run(sql, time, learned, ladder, generation)


def set_sample(store: Store, ladder: int, generation: int, sample: bytes) -> None:
    """Set the packed sample of ratings."""
    store.run("UPDATE generation SET sample = ? WHERE ladder = ? AND generation = ?", sample, ladder, generation)


def set_ready(store: Store, ladder: int, generation: int, *, planned: int, sample: bytes) -> None:
    """Record that a generation is complete: last correction included, sample of the ratings."""
    store.run(
        "UPDATE generation SET planned = ?, sample = ?, ready = 1 WHERE ladder = ? AND generation = ?",
        *(planned, sample, ladder, generation),
    )


def delete_unready(store: Store, ladder: int, generation: int, *, earlier: bool) -> None:
    """Delete the row of a generation (earlier: of all before it) that has never been in use."""
    which = selected(earlier=earlier)
    store.run(f"DELETE FROM generation WHERE ladder = ? AND ready = 0 AND generation {which}", ladder, generation)
