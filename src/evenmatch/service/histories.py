"""A ladder's counted matches as columns in memory, for whatever replays them under other rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.history import Columns, Flags, History
from evenmatch.ledger import people
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import Plan, Season, Start
from evenmatch.ledger.replay import Block, refunds
from evenmatch.ledger.store import Head, Store
from evenmatch.service.settings import Settings
from evenmatch.systems.system import Rules
from evenmatch.tables.source import Source
from evenmatch.tables.table import MatchTable

LATEST = 200_000  # matches that are read unless more are asked for
TEXT = pa.large_string()

Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class LadderHistory:
    """The matches of a ladder that are rated, each at the time it counts as ended, with refunds as `keep`.

    rules     what the ladder is rated by now;  settings  its placement, active window and divisions
    position  of the last event that was read
    earlier   matches of the ledger before those that were read
    notes     sentences: why a replay of these matches gives other ratings than the ladder shows; empty: it does not
    """

    matches: MatchTable
    rules: Rules
    settings: Settings
    position: int
    earlier: int
    notes: tuple[str, ...]


def read_history(
    database: Database, ladder: str, *, latest: int = LATEST, progress: Progress | None = None
) -> LadderHistory:
    """A ladder's counted matches, of the last so many of its ledger.

    Teams are labelled by their number. progress: called now and then with the position that was read up to
    Raises UnknownNameError where there is no such ladder, InputError where none of its matches counts.
    """
    with database.read() as connection:
        store = Store(connection, database.rows)
        head = store.head(ladder)
        plan = store.plan(head, head.planned)
        after, earlier = _begin(store, head, latest)
        pieces = list(_pieces(store, head, plan, after, progress))
        if not pieces:
            raise InputError(f"ladder {ladder!r} has no match that is rated; accepted is a ladder with one or more")
        table = _table(store, head, pieces)
    settings = Settings.read(head.settings)
    return LadderHistory(table, plan.last_rules, settings, head.position, earlier, _notes(plan, earlier))


@dataclass(frozen=True, eq=False)
class _Piece:
    """The counted matches of a block; the players of `columns` are places in `ids`."""

    columns: Columns
    ids: Ids
    match_ids: list[str]


def _begin(store: Store, head: Head, latest: int) -> tuple[int, int]:
    """The position after which the last so many matches stand, and how many stand before it."""
    corrections = np.array(store.correction_positions(head), np.int64)
    skipped = max(head.position - len(corrections) - latest, 0)
    after = skipped
    while (found := skipped + int(corrections.searchsorted(after, side="right"))) != after:
        after = found
    return after, skipped


def _pieces(store: Store, head: Head, plan: Plan, after: int, progress: Progress | None) -> Iterator[_Piece]:
    for block, rows in store.blocks(head, after, head.position):
        chosen = _counted(store, head, block)
        if chosen.any():
            ids = plan.identity(block.ids)
            columns = block.columns._replace(
                time=np.maximum.accumulate(block.played_at),
                player=np.arange(len(ids), dtype=np.int32),
                keep=block.columns.keep & ~refunds(plan, block),
            )
            # Times are those of counted matches alone: one that does not count moves nobody's clock.
            taken = History(columns).take(chosen).columns
            times = np.maximum.accumulate(block.played_at[chosen])
            match_ids = [rows[at][0] for at in np.flatnonzero(chosen).tolist()]
            yield _Piece(taken._replace(time=times), ids[taken.player], match_ids)
        if progress:
            progress(int(block.positions[-1]))


def _counted(store: Store, head: Head, block: Block) -> Flags:
    """Which matches of a block are rated as the ladder stands."""
    sql = (
        "SELECT e.position FROM event e "
        "LEFT JOIN journal j ON j.ladder = e.ladder AND j.generation = ? AND j.position = e.position "
        "WHERE e.ladder = ? AND e.kind = ? AND e.position >= ? AND e.position <= ? "
        "AND LENGTH(COALESCE(j.lines, e.told)) > 0"
    )
    bounds = (int(block.positions[0]), int(block.positions[-1]))
    found = store.all(sql, head.generation, head.ladder, Kind.MATCH.value, *bounds)
    return np.isin(block.positions, np.array([row[0] for row in found], np.int64))


def _table(store: Store, head: Head, pieces: list[_Piece]) -> MatchTable:
    ids, player = np.unique(np.concatenate([piece.ids for piece in pieces]), return_inverse=True)
    columns = _joined([piece.columns for piece in pieces], player.astype(np.int32))
    names = people.names_of(store, ids.tolist())
    number = np.arange(len(columns.place)) - np.repeat(columns.team_start[:-1], np.diff(columns.team_start))
    labels = pa.array([str(at) for at in range(int(number.max()) + 1)], TEXT)
    count = len(columns.time)
    return MatchTable(
        history=History(columns),
        match_id=pa.array([match_id for piece in pieces for match_id in piece.match_ids], TEXT),
        ladder=np.zeros(count, np.int32),
        ladders=(head.name,),
        team=pa.DictionaryArray.from_arrays(pa.array(number.astype(np.int32)), labels),
        player=pa.array([names.get(one, f"#{one}") for one in ids.tolist()], TEXT),
        player_ladder=np.zeros(len(ids), np.int32),
        row=np.arange(count),
        source=Source(f"ladder {head.name!r}"),
    )


def _joined(parts: list[Columns], player: NDArray[np.int32]) -> Columns:
    """All parts as one; `player` is of all their slots."""
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Columns._fields}
    for name in ("team_start", "slot_start"):
        sizes = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        joined[name] = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    joined["time"] = np.maximum.accumulate(joined["time"])  # late ones count as ended with those before them
    joined["player"] = player
    return Columns(**joined)


def _notes(plan: Plan, earlier: int) -> tuple[str, ...]:
    told = []
    if earlier:
        left = "1 earlier one was" if earlier == 1 else f"{earlier:,} earlier ones were"
        since = "it" if earlier == 1 else "them"
        told.append(
            f"Only the latest matches were read: {left} left out, and all players begin as newcomers after {since}."
        )
    if any(isinstance(turn, Season) and turn.factor != 1 for turn in plan.turns):
        told.append("The seasons of this ladder drew its ratings together; here they run on through all seasons.")
    if any(isinstance(turn, Start) for turn in plan.turns):
        told.append("Some players of this ladder began with ratings from elsewhere; here all begin as newcomers.")
    if len(plan.rules) > 1:
        told.append("The rules of this ladder changed on the way; here its present rules count from the first match.")
    return tuple(told)
