"""A ladder as tables (matches, ratings, journal, corrections), as files of any size, and the matches of one player."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenmatch.errors import UsageError
from evenmatch.history import History, Times
from evenmatch.ladders.standings import View, take
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import Block, refunds
from evenmatch.ledger.codec import Ids, line_type, read_lines
from evenmatch.ledger.database import Database
from evenmatch.ledger.event_rows import END_OF_LIST, ListKey, Scope
from evenmatch.ledger.events import body_of
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.match_context import read_context
from evenmatch.systems.system import System
from evenmatch.tables.files import form_of, texts, write_parts
from evenmatch.tables.source import Source
from evenmatch.tables.table import MICROSECONDS, MatchTable
from evenmatch.whole_file import whole_file

TEXT = pa.large_string()
PEOPLE = ("player", "into")  # fields of a correction that contain player ids


def match_tables(
    store: Store,
    head: Head,
    *,
    counted: bool = False,
    after: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Iterator[pa.Table]:
    """Every match recorded after a position in tidy long form (a row per player), in blocks, in the ledger's order.

    counted  only rated matches, at their effective end times, with refunds as `keep`: `rate` computes the ladder's
             ratings from them, unless it had seasons, starting ratings or changes of rules
    progress  called with the position reached after each block
    """
    plan = event_rows.read_plan(store, head, head.planned)
    latest = np.iinfo(np.int64).min  # effective end of the previous match
    for block, rows in event_rows.read_blocks(store, head, after, head.position, Scope(plan.upto)):
        if progress:
            progress(int(block.counts_at[-1]))
        chosen = np.arange(len(block))
        if counted:
            chosen = np.flatnonzero([bool(lines) for lines in _live(store, head, block)])
        if not len(chosen):
            continue
        ended = block.played_at[chosen]
        if counted:  # `rate` needs matches in order of time; a late match counts as ending with the one before it
            ended = np.maximum.accumulate(np.maximum(ended, latest))
            latest = ended[-1]
        yield _matches(store, head, plan, block, rows, chosen, ended, counted)


def _live(store: Store, head: Head, block: Block) -> list[bytes]:
    """The lines of each match in the live generation; empty if it is not rated."""
    positions = block.positions.tolist()
    lines = rating_rows.read_journal_lines(store, head, positions)
    return [lines[position][0] if position in lines else b"" for position in positions]


def _matches(
    store: Store, head: Head, plan: Plan, block: Block, rows: list[Row], chosen: Ids, ended: Times, counted: bool
) -> pa.Table:
    """The chosen matches of a block, with `ended` as `played_at`."""
    ids, number = np.unique(plan.identity(block.ids), return_inverse=True)
    names = player_rows.names_of(store, ids.tolist())
    columns = block.columns._replace(player=number.astype(np.int32))
    if counted:
        columns = columns._replace(keep=columns.keep & ~refunds(plan, block))
    table = MatchTable(
        history=History(columns),
        match_id=pa.array([row[0] for row in rows], TEXT),
        ladder=np.zeros(len(block), np.int32),
        ladders=(head.name,),
        team=pa.array(_labels(block, [row[3] for row in rows]), TEXT).dictionary_encode(),
        player=pa.array([names[player] for player in ids.tolist()], TEXT),
        player_ladder=np.zeros(len(ids), np.int32),
        row=np.arange(len(block)),
        source=Source(f"ladder {head.name!r}"),
    )
    tidy = table.take(chosen).to_arrow()
    match = pa.array(np.repeat(np.arange(len(chosen)), np.diff(table.history.match_slots)[chosen]))
    times = pa.array(ended).cast(MICROSECONDS)
    tidy = tidy.set_column(tidy.column_names.index("played_at"), "played_at", times.take(match))
    contexts = [read_context(block.context[index]) for index in chosen.tolist()]
    for name in dict.fromkeys(name for context in contexts for name in context):
        values = pa.array([context.get(name) for context in contexts], TEXT)
        tidy = tidy.append_column(name, values.take(match))
    return tidy


def _labels(block: Block, stored: list[str | None]) -> list[str]:
    """The label of every team as it was sent."""
    counts = np.diff(block.columns.team_start).tolist()
    return [
        label
        for count, text in zip(counts, stored, strict=True)
        for label in (map(str, range(count)) if text is None else json.loads(text))
    ]


def rating_table(store: Store, view: View) -> pa.Table:
    """One row per player: their standing in the view, then the system's own columns."""
    head = view.head
    rules = event_rows.read_plan(store, head, head.planned).last_rules
    roster = rating_rows.read_roster(store, head, rules)
    standing_of = {standing.player: standing for standing in view.snapshot.among(roster.ids)}
    standings = [standing_of[player] for player in roster.ids.tolist()]
    names = player_rows.names_of(store, roster.ids.tolist())
    last = roster.tally["last_played"]
    columns = {
        "ladder": pa.array([head.name] * len(standings), TEXT),
        "player": pa.array([names[standing.player] for standing in standings], TEXT),
        "rank": pa.array([standing.rank for standing in standings], pa.int64()),
        "rating": pa.array([standing.rating for standing in standings]),
        "matches": pa.array([standing.matches for standing in standings], pa.int64()),
        "completed": pa.array([standing.completed for standing in standings], pa.int64()),
        "last_played": pa.array(last, mask=roster.tally["matches"] == 0).cast(MICROSECONDS),
        "percentile": pa.array([standing.percentile for standing in standings], pa.int64()),
        "placed": pa.array([standing.placed for standing in standings], pa.bool_()),
        "division": pa.array([standing.division for standing in standings], TEXT),
        **{
            name: pa.array(np.ascontiguousarray(column))
            for name, column in rules.system.columns(roster.records, rules.parameters).items()
        },
    }
    order = np.lexsort((roster.ids, -np.array([standing.rating for standing in standings])))
    return pa.table(columns).take(pa.array(order))


def journal_tables(store: Store, head: Head) -> Iterator[pa.Table]:
    """The rating changes of every rated match (a row per player) in the live generation, in blocks."""
    plan = event_rows.read_plan(store, head, head.planned)
    system = plan.last_rules.system
    for block, rows in event_rows.read_blocks(store, head, 0, head.position, Scope(plan.upto)):
        live = _live(store, head, block)
        which = [index for index, lines in enumerate(live) if lines]
        if which:
            yield _journal(store, head, plan, system, block, rows, live, which)


def _journal(
    store: Store,
    head: Head,
    plan: Plan,
    system: System,
    block: Block,
    rows: list[Row],
    live: list[bytes],
    which: list[int],
) -> pa.Table:
    lines = np.frombuffer(b"".join(live), line_type(system))
    history = History(block.columns._replace(player=np.zeros(len(block.ids), np.int32))).take(np.array(which))
    team = history.slot_team - history.columns.team_start[history.slot_match]
    rated = np.isin(np.repeat(np.arange(len(block)), _slots(block)), which)
    ids = plan.identity(block.ids)[rated]
    names = player_rows.names_of(store, np.unique(ids).tolist())
    match = pa.array(history.slot_match)
    columns = {
        "match_id": pa.array([rows[index][0] for index in which], TEXT).take(match),
        "position": pa.array(block.positions[which]).take(match),
        "ladder": pa.array([head.name] * len(lines), TEXT),
        "player": pa.array([names[player] for player in ids.tolist()], TEXT),
        "team": pa.array(team),
        **{name: pa.array(np.ascontiguousarray(lines[name])) for name in ("before", "after", "expected")},
    }
    for factor in system.factors:
        values = np.ascontiguousarray(lines["factors"][factor.name])
        words = pa.array(factor.labels, TEXT)
        columns[factor.name] = words.take(pa.array(values)) if factor.labels else pa.array(values, from_pandas=True)
    return pa.table(columns)


def _slots(block: Block) -> Ids:
    return np.diff(block.columns.slot_start[block.columns.team_start]).astype(np.int64)


def correction_rows(store: Store, head: Head) -> list[dict[str, object]]:
    """Every correction, oldest first: position, kind, id, recorded_at (microseconds) and the fields of its body."""
    rows = [(event, body_of(event.change)) for event in event_rows.read_corrections(store, head, head.position)]
    ids = {value for _, body in rows for name in PEOPLE if isinstance(value := body.get(name), int)}
    names = player_rows.names_of(store, sorted(ids))
    return [
        {"position": event.position, "kind": event.change.kind, "id": event.id, "recorded_at": event.recorded_at}
        | {
            name: names.get(value, value) if name in PEOPLE and isinstance(value, int) else value
            for name, value in body.items()
        }
        for event, body in rows
    ]


def matches_of_player(store: Store, head: Head, player: int, limit: int | None = None) -> list[dict[str, object]]:
    """The matches of a player, last played first, with the rating changes of the live generation."""
    plan = event_rows.read_plan(store, head, head.planned)
    listed = list_of_player(store, head, plan, player, limit=limit)
    return list(matches_at(store, head, plan, player, listed))


def list_of_player(
    store: Store,
    head: Head,
    plan: Plan,
    player: int,
    *,
    before: ListKey = END_OF_LIST,
    limit: int | None = None,
    since: int | None = None,
    until: int | None = None,
) -> list[ListKey]:
    """The keys of a player's matches, the last played first; see `event_rows.read_match_list_of_player`."""
    ids = [player, *(old for old, new in plan.merged.items() if new == player)]
    most = head.position if limit is None else limit
    read = [event_rows.read_match_list_of_player(store, head.ladder, own, before, most, since, until) for own in ids]
    return sorted(chain.from_iterable(read), reverse=True)[:limit]


def matches_at(
    store: Store, head: Head, plan: Plan, player: int, listed: Sequence[ListKey]
) -> Iterator[dict[str, object]]:
    """The matches of a player with these keys, the last played first."""
    positions = [key.position for key in listed]
    rows = {int(str(row["position"])): row for row in _rows_at(store, head, plan, player, positions)}
    return (rows[position] for position in positions)


def _rows_at(
    store: Store, head: Head, plan: Plan, player: int, positions: Sequence[int]
) -> Iterator[dict[str, object]]:
    system = plan.last_rules.system
    lines = rating_rows.read_journal_lines(store, head, positions)
    for block, rows in event_rows.read_blocks_at(store, head, positions):
        ids = plan.identity(block.ids).tolist()
        starts = block.columns.slot_start[block.columns.team_start].tolist()
        teams = np.repeat(np.arange(len(block.columns.place)), np.diff(block.columns.slot_start))
        for match, position in enumerate(block.positions.tolist()):
            slot = ids.index(player, starts[match], starts[match + 1])
            row: dict[str, object] = {
                "match_id": rows[match][0],
                "position": position,
                "played_at": int(block.played_at[match]),
                "team": int(teams[slot] - block.columns.team_start[match]),
                "place": int(block.columns.place[teams[slot]]),
                "quit": bool(block.columns.quit[slot]),
                "rated": bool(lines.get(position, (b"", 0))[0]),
            }
            if block.context[match] is not None:
                row["context"] = read_context(block.context[match])
            if row["rated"]:
                line = read_lines(system, lines[position][0])[slot - starts[match]]
                (factors,) = system.name_factors(line["factors"].reshape(1))
                row |= {name: float(line[name]) for name in ("before", "after", "expected")} | {"factors": factors}
            yield row


def _write(parts: Iterable[pa.Table], path: Path, draft: Path) -> int:
    """Write the parts to the draft of `path`. Return the number of rows.

    Parts may have different columns. The header needs the union of all of them, so the parts are first collected in a
    temporary file.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent) as collected:
            schemas, rows = _collect(parts, collected)
            whole = pa.unify_schemas(schemas) if schemas else pa.schema([])
            with draft.open("wb") as file:
                complete = (_complete(part, whole) for part in _collected(collected, schemas))
                write_parts(complete, whole, form_of(path), file)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    return rows


def _collect(parts: Iterable[pa.Table], file: io.BufferedIOBase) -> tuple[list[pa.Schema], int]:
    """Write every part to the file as its own Arrow stream. Return their schemas in order, and the number of rows."""
    schemas, rows = [], 0
    for part in parts:
        with pa.ipc.new_stream(file, part.schema) as stream:
            stream.write_table(part)
        schemas.append(part.schema)
        rows += part.num_rows
    file.seek(0)
    return schemas, rows


def _collected(file: io.BufferedIOBase, schemas: list[pa.Schema]) -> Iterator[pa.Table]:
    for _ in schemas:
        with pa.ipc.open_stream(file) as stream:
            yield stream.read_all()


def _complete(part: pa.Table, whole: pa.Schema) -> pa.Table:
    """The part with all columns of the schema `whole`, in its order; missing ones are null."""
    columns = [
        part[field.name].cast(field.type) if field.name in part.column_names else pa.nulls(part.num_rows, field.type)
        for field in whole
    ]
    return pa.table(columns, schema=whole)


WORDS = ("name", "meaning", "unit")  # text columns of the table of learned numbers


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
    with ExitStack() as drafts, database.read() as store:
        head = store.head(ladder)
        parts: dict[Path | None, Iterable[pa.Table]] = {
            files.matches: match_tables(store, head, counted=files.counted),
            files.journal: journal_tables(store, head),
            files.ratings: (rating_table(store, take(store, ladder, now)) for _ in range(1)),
            files.corrections: (correction_table(store, head) for _ in range(1)),
            files.learned: (learned_table(store, head) for _ in range(1)),
        }
        return {
            path: _write(tables, path, drafts.enter_context(whole_file(path)))
            for path, tables in parts.items()
            if path is not None
        }


def learned_table(store: Store, head: Head) -> pa.Table:
    """One row per number that the system has learned about the ladder; low, high: null if there is no interval."""
    rules = event_rows.read_plan(store, head, head.planned).last_rules
    learned = rules.system.learned(rating_rows.read_ladder_records(head, rules), rules.parameters)
    texts = {name: pa.array([getattr(number, name) for number in learned], pa.large_string()) for name in WORDS}
    values = {
        name: pa.array([getattr(number, name) for number in learned], pa.float64(), from_pandas=True)
        for name in ("value", "low", "high")
    }
    return pa.table(texts | values)


def correction_table(store: Store, head: Head) -> pa.Table:
    """One row per correction: time, kind, the players and match concerned, and the event as JSON."""
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
