"""A ladder as tables: its matches, ratings, journal and corrections; and all that is known of one player."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from evenmatch.history import History, Times
from evenmatch.ledger import people
from evenmatch.ledger.codec import Ids, line_type, read_lines
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.replay import Block, refunds
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.service.boards import View
from evenmatch.systems.system import System
from evenmatch.tables.source import Source
from evenmatch.tables.table import MICROSECONDS, MatchTable

TEXT = pa.large_string()
PEOPLE = ("player", "into")  # where a correction holds the id of a player


def match_tables(store: Store, head: Head, *, counted: bool = False) -> Iterator[pa.Table]:
    """Every recorded match in the tidy long form, some thousands at a time, in the order of the ledger.

    counted  only those that are rated, at the time they count as ended, with refunds as `keep`: `rate` makes the
             ladder's ratings of them, unless it had seasons, starting ratings or rules that changed on the way
    """
    plan = store.plan(head, head.planned)
    latest = np.iinfo(np.int64).min  # when the last one counts as ended
    for block, rows in store.blocks(head, 0, head.position):
        chosen = np.arange(len(block))
        if counted:
            chosen = np.flatnonzero([bool(lines) for lines in _live(store, head, block)])
        if not len(chosen):
            continue
        ended = block.played_at[chosen]
        if counted:  # `rate` takes matches in order of time, and late ones count as ended with those before them
            ended = np.maximum.accumulate(np.maximum(ended, latest))
            latest = ended[-1]
        yield _matches(store, head, plan, block, rows, chosen, ended, counted)


def _live(store: Store, head: Head, block: Block) -> list[bytes]:
    """The lines of each match as it is rated now; nothing where it is not."""
    positions = block.positions.tolist()
    found = store.lines(head, positions)
    return [found[at][0] if at in found else b"" for at in positions]


def _matches(
    store: Store, head: Head, plan: Plan, block: Block, rows: list[Row], chosen: Ids, ended: Times, counted: bool
) -> pa.Table:
    """The chosen matches of a block. ended: of each of them what to tell as `played_at`."""
    ids, number = np.unique(plan.identity(block.ids), return_inverse=True)
    names = people.names_of(store, ids.tolist())
    columns = block.columns._replace(player=number.astype(np.int32))
    if counted:
        columns = columns._replace(keep=columns.keep & ~refunds(plan, block))
    table = MatchTable(
        history=History(columns),
        match_id=pa.array([row[0] for row in rows], TEXT),
        ladder=np.zeros(len(block), np.int32),
        ladders=(head.name,),
        team=pa.array(_labels(block, [row[3] for row in rows]), TEXT).dictionary_encode(),
        player=pa.array([names[one] for one in ids.tolist()], TEXT),
        player_ladder=np.zeros(len(ids), np.int32),
        row=np.arange(len(block)),
        source=Source(f"ladder {head.name!r}"),
    )
    tidy = table.take(chosen).to_arrow()
    told = pa.array(ended).cast(MICROSECONDS)
    sizes = np.diff(table.history.match_slots)[chosen]
    at = tidy.column_names.index("played_at")
    return tidy.set_column(at, "played_at", told.take(pa.array(np.repeat(np.arange(len(chosen)), sizes))))


def _labels(block: Block, kept: list[str | None]) -> list[str]:
    """The label of every team as it was sent."""
    counts = np.diff(block.columns.team_start).tolist()
    return [
        label
        for count, text in zip(counts, kept, strict=True)
        for label in (map(str, range(count)) if text is None else json.loads(text))
    ]


def rating_table(store: Store, view: View) -> pa.Table:
    """One row per player: where they stand now, then the system's own columns."""
    head = view.head
    rules = store.plan(head, head.planned).last_rules
    roster = store.roster(head, rules)
    shown = {one.player: one for one in view.snapshot.among(roster.ids)}
    standings = [shown[player] for player in roster.ids.tolist()]
    names = people.names_of(store, roster.ids.tolist())
    last = roster.tally["last_played"]
    columns = {
        "ladder": pa.array([head.name] * len(standings), TEXT),
        "player": pa.array([names[one.player] for one in standings], TEXT),
        "rank": pa.array([one.rank for one in standings], pa.int64()),
        "rating": pa.array([one.rating for one in standings]),
        "matches": pa.array([one.matches for one in standings], pa.int64()),
        "completed": pa.array([one.completed for one in standings], pa.int64()),
        "last_played": pa.array(last, mask=roster.tally["matches"] == 0).cast(MICROSECONDS),
        "percentile": pa.array([one.percentile for one in standings], pa.int64()),
        "placed": pa.array([one.placed for one in standings], pa.bool_()),
        "division": pa.array([one.division for one in standings], TEXT),
        **{
            name: pa.array(np.ascontiguousarray(column))
            for name, column in rules.system.columns(roster.records).items()
        },
    }
    order = np.lexsort((roster.ids, -np.array([one.rating for one in standings])))
    return pa.table(columns).take(pa.array(order))


def journal_tables(store: Store, head: Head) -> Iterator[pa.Table]:
    """What every rated match did to everybody as it is rated now, some thousands of matches at a time."""
    plan = store.plan(head, head.planned)
    system = plan.last_rules.system
    for block, rows in store.blocks(head, 0, head.position):
        live = _live(store, head, block)
        which = [at for at, lines in enumerate(live) if lines]
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
    names = people.names_of(store, np.unique(ids).tolist())
    match = pa.array(history.slot_match)
    columns = {
        "match_id": pa.array([rows[at][0] for at in which], TEXT).take(match),
        "position": pa.array(block.positions[which]).take(match),
        "ladder": pa.array([head.name] * len(lines), TEXT),
        "player": pa.array([names[one] for one in ids.tolist()], TEXT),
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
    """Every event that is no match, in order: position, kind, id, when, and what it says."""
    sql = (
        "SELECT e.position, e.kind, e.id, e.recorded_at, e.body FROM correction c "
        "JOIN event e ON e.ladder = c.ladder AND e.position = c.position WHERE c.ladder = ? ORDER BY c.position"
    )
    found = [(*row, json.loads(body)) for *row, body in store.all(sql, head.ladder)]
    ids = {value for *_, body in found for name in PEOPLE if isinstance(value := body.get(name), int)}
    names = people.names_of(store, sorted(ids))
    return [
        {"position": position, "kind": kind, "id": event_id, "recorded_at": at}
        | {name: names.get(value, value) if name in PEOPLE else value for name, value in body.items()}
        for position, kind, event_id, at, body in found
    ]


def matches_of_player(store: Store, head: Head, player: int, limit: int | None = None) -> list[dict[str, object]]:
    """The matches of a player, the latest first: what each did to them, as it is rated now."""
    plan = store.plan(head, head.planned)
    positions = positions_of_player(store, head, plan, player, limit=limit)
    return list(matches_at(store, head, plan, player, positions))


def positions_of_player(
    store: Store, head: Head, plan: Plan, player: int, *, before: int | None = None, limit: int | None = None
) -> list[int]:
    """The positions of a player's matches, the latest first; before: only those that stand before this one."""
    ids = [player, *(old for old, new in plan.merged.items() if new == player)]
    sql = "SELECT position FROM appearance WHERE ladder = ? AND player = ? AND position < ?"
    bounds = (head.position + 1 if before is None else before, head.position if limit is None else limit)
    sql += " ORDER BY position DESC LIMIT ?"
    found = [row[0] for one in ids for row in store.all(sql, head.ladder, one, *bounds)]
    return sorted(found, reverse=True)[:limit]


def matches_at(store: Store, head: Head, plan: Plan, player: int, positions: list[int]) -> Iterator[dict[str, object]]:
    """The matches of a player at these positions, which descend."""
    system = plan.last_rules.system
    lines = store.lines(head, positions)
    for block, rows in store.blocks_at(head, positions):
        ids = plan.identity(block.ids).tolist()
        starts = block.columns.slot_start[block.columns.team_start].tolist()
        teams = np.repeat(np.arange(len(block.columns.place)), np.diff(block.columns.slot_start))
        for at, position in reversed(list(enumerate(block.positions.tolist()))):
            slot = ids.index(player, starts[at], starts[at + 1])
            row: dict[str, object] = {
                "match_id": rows[at][0],
                "position": position,
                "played_at": int(block.played_at[at]),
                "team": int(teams[slot] - block.columns.team_start[at]),
                "place": int(block.columns.place[teams[slot]]),
                "quit": bool(block.columns.quit[slot]),
                "rated": bool(lines.get(position, (b"", 0))[0]),
            }
            if row["rated"]:
                line = read_lines(system, lines[position][0])[slot - starts[at]]
                (factors,) = system.name_factors([line["factors"].tolist()])
                row |= {name: float(line[name]) for name in ("before", "after", "expected")} | {"factors": factors}
            yield row
