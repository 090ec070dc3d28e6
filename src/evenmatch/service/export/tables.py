"""A ladder as tables: matches, ratings, journal, corrections; and the matches of one player."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from evenmatch.history import History, Times
from evenmatch.ledger.block_rating import Block, refunds
from evenmatch.ledger.codec import Ids, line_type, read_lines
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import appearances, corrections, events, journal_lines, player_identities, player_states
from evenmatch.ledger.tables.events import END_OF_LIST, ListKey, Scope
from evenmatch.service.queries.standings import View
from evenmatch.systems.system import System
from evenmatch.tables.source import Source
from evenmatch.tables.table import MICROSECONDS, MatchTable

TEXT = pa.large_string()
PEOPLE = ("player", "into")  # fields of a correction that contain player ids


def match_tables(store: Store, head: Head, *, counted: bool = False) -> Iterator[pa.Table]:
    """Every recorded match in tidy long form (a row per player), in blocks, in the order of the ledger.

    counted  only rated matches, at their effective end times, with refunds as `keep`: `rate` computes the ladder's
             ratings from them, unless it had seasons, starting ratings or changes of rules
    """
    plan = corrections.read_plan(store, head, head.planned)
    latest = np.iinfo(np.int64).min  # effective end of the previous match
    for block, rows in events.read_blocks(store, head, 0, head.position, Scope(plan.upto)):
        chosen = np.arange(len(block))
        if counted:
            chosen = np.flatnonzero([bool(lines) for lines in _live(store, head, block)])
        if not len(chosen):
            continue
        ended = block.played_at[chosen]
        if counted:  # `rate` needs matches in order of time; late matches count as ended with the one before them
            ended = np.maximum.accumulate(np.maximum(ended, latest))
            latest = ended[-1]
        yield _matches(store, head, plan, block, rows, chosen, ended, counted)


def _live(store: Store, head: Head, block: Block) -> list[bytes]:
    """The lines of each match in the live generation; empty if it is not rated."""
    positions = block.positions.tolist()
    lines = journal_lines.read(store, head, positions)
    return [lines[position][0] if position in lines else b"" for position in positions]


def _matches(
    store: Store, head: Head, plan: Plan, block: Block, rows: list[Row], chosen: Ids, ended: Times, counted: bool
) -> pa.Table:
    """The chosen matches of a block, with `ended` as their `played_at`."""
    ids, number = np.unique(plan.identity(block.ids), return_inverse=True)
    names = player_identities.names_of(store, ids.tolist())
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
    times = pa.array(ended).cast(MICROSECONDS)
    sizes = np.diff(table.history.match_slots)[chosen]
    index = tidy.column_names.index("played_at")
    return tidy.set_column(index, "played_at", times.take(pa.array(np.repeat(np.arange(len(chosen)), sizes))))


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
    rules = corrections.read_plan(store, head, head.planned).last_rules
    roster = player_states.read_roster(store, head, rules)
    standing_of = {standing.player: standing for standing in view.snapshot.among(roster.ids)}
    standings = [standing_of[player] for player in roster.ids.tolist()]
    names = player_identities.names_of(store, roster.ids.tolist())
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
    plan = corrections.read_plan(store, head, head.planned)
    system = plan.last_rules.system
    for block, rows in events.read_blocks(store, head, 0, head.position, Scope(plan.upto)):
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
    names = player_identities.names_of(store, np.unique(ids).tolist())
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
    stored = reversed(corrections.read_stored(store, head.ladder, head.position + 1))
    rows = [(*row[:4], json.loads(row.body)) for row in stored]
    ids = {value for *_, body in rows for name in PEOPLE if isinstance(value := body.get(name), int)}
    names = player_identities.names_of(store, sorted(ids))
    return [
        {"position": position, "kind": kind, "id": event_id, "recorded_at": recorded_at}
        | {name: names.get(value, value) if name in PEOPLE else value for name, value in body.items()}
        for position, event_id, kind, recorded_at, body in rows
    ]


def matches_of_player(store: Store, head: Head, player: int, limit: int | None = None) -> list[dict[str, object]]:
    """The matches of a player, the last played first, with their rating change in the live generation."""
    plan = corrections.read_plan(store, head, head.planned)
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
    """The keys of a player's matches, the last played first; see `events.read_list`."""
    ids = [player, *(old for old, new in plan.merged.items() if new == player)]
    most = head.position if limit is None else limit
    read = [appearances.read_list(store, head.ladder, own, before, most, since, until) for own in ids]
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
    lines = journal_lines.read(store, head, positions)
    for block, rows in events.read_blocks_at(store, head, positions):
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
            if row["rated"]:
                line = read_lines(system, lines[position][0])[slot - starts[match]]
                (factors,) = system.name_factors(line["factors"].reshape(1))
                row |= {name: float(line[name]) for name in ("before", "after", "expected")} | {"factors": factors}
            yield row
