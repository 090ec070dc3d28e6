"""Write a ladder's matches, ratings, journal, corrections and learned numbers to files, in one consistent snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, player_states
from evenmatch.service.export.table_writer import TemporaryFiles, write_parts
from evenmatch.service.export.tables import correction_rows, journal_tables, match_tables, rating_table
from evenmatch.service.queries.standings import take
from evenmatch.tables.files import texts
from evenmatch.tables.table import MICROSECONDS

WORDS = ("name", "meaning", "unit")  # of a number that was learned


class Files(NamedTuple):
    """The path of each table to export; None: not exported. counted: only rated matches, with refunds as `keep`."""

    matches: Path | None = None
    ratings: Path | None = None
    journal: Path | None = None
    corrections: Path | None = None
    learned: Path | None = None
    counted: bool = False


def export(database: Database, ladder: str, files: Files, now: int) -> dict[Path, int]:
    """Write a ladder's tables, all or none of them. Return the row count of each file.

    now  the time of the standings, in microseconds
    """
    with TemporaryFiles() as drafts, database.read() as store:
        head = store.head(ladder)
        parts: dict[Path | None, Iterable[pa.Table]] = {
            files.matches: match_tables(store, head, counted=files.counted),
            files.journal: journal_tables(store, head),
            files.ratings: (rating_table(store, take(store, ladder, now)) for _ in range(1)),
            files.corrections: (correction_table(store, head) for _ in range(1)),
            files.learned: (learned_table(store, head) for _ in range(1)),
        }
        return {path: write_parts(tables, path, drafts.add(path)) for path, tables in parts.items() if path is not None}


def learned_table(store: Store, head: Head) -> pa.Table:
    """One row per number that the system has learned of the ladder; low, high: null where there is no interval."""
    rules = corrections.read_plan(store, head, head.planned).last_rules
    learned = rules.system.learned(player_states.read_ladders(head, rules), rules.parameters)
    texts = {name: pa.array([getattr(number, name) for number in learned], pa.large_string()) for name in WORDS}
    values = {
        name: pa.array([getattr(number, name) for number in learned], pa.float64(), from_pandas=True)
        for name in ("value", "low", "high")
    }
    return pa.table(texts | values)


def correction_table(store: Store, head: Head) -> pa.Table:
    """One row per correction: time, kind, the players and the match that it concerns, and the event as JSON."""
    rows = correction_rows(store, head)
    columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("position", "recorded_at")}
    columns["recorded_at"] = columns["recorded_at"].cast(MICROSECONDS)
    for name in ("kind", "player", "into", "reason"):
        columns[name] = pa.array([row.get(name) for row in rows], pa.large_string())
    columns["match_id"] = pa.array([row["id"] if "match" in row else None for row in rows], pa.large_string())
    events = [{name: value for name, value in row.items() if name not in ("position", "recorded_at")} for row in rows]
    columns["event"] = pa.array([json.dumps(event, ensure_ascii=False) for event in events], pa.large_string())
    order = ("position", "recorded_at", "kind", "player", "into", "match_id", "reason", "event")
    return pa.table({name: columns[name] for name in order})


def corrections_of(database: Database, ladder: str) -> list[dict[str, object]]:
    """The corrections of a ladder as JSON values, oldest first."""
    with database.read() as store:
        return plain_corrections(store, store.head(ladder))


def plain_corrections(store: Store, head: Head) -> list[dict[str, object]]:
    """The corrections of a ladder as JSON values, oldest first, in the caller's transaction."""
    return [row | {"event": json.loads(row["event"])} for row in texts(correction_table(store, head)).to_pylist()]
