"""A ladder's counted matches as columns in memory, to be replayed under other rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.history import Columns, Flags, History
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import Block, refunds
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.database import Database
from evenmatch.ledger.event_rows import Scope
from evenmatch.ledger.events import RatingsDecayed, RatingsStarted
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.systems.system import Rules
from evenmatch.tables.source import Source
from evenmatch.tables.table import MatchTable

LATEST = 200_000  # how many of the latest matches are read by default
TEXT = pa.large_string()

Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class LadderHistory:
    """The rated matches of a ladder, each at its effective end time, with refunds as `keep`.

    rules     the ladder's current rules;  settings  its current settings
    position  of the last event that was read
    earlier   number of earlier matches, which were not read
    notes     sentences that say why a replay of these matches gives different ratings from those shown
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
    """Read a ladder's rated matches among the last `latest` matches of its ledger.

    Teams are labelled by their number. progress: called from time to time with the position reached.
    Raises UnknownNameError for an unknown ladder, InputError if none of these matches is rated.
    """
    with database.read() as store:
        head = store.head(ladder)
        plan = event_rows.read_plan(store, head, head.planned)
        after, earlier = _begin(store, head, latest)
        pieces = list(_pieces(store, head, plan, after, progress))
        if not pieces:
            raise InputError(f"ladder {ladder!r} has no rated match; at least one is needed")
        table = _table(store, head, pieces)
    settings = Settings.read(head.settings)
    return LadderHistory(table, plan.last_rules, settings, head.position, earlier, _notes(plan, earlier))


@dataclass(frozen=True, eq=False)
class _Piece:
    """The rated matches of a block; `ids` has the player id of every slot, in order."""

    columns: Columns
    ids: Ids
    match_ids: list[str]


def _begin(store: Store, head: Head, latest: int) -> tuple[int, int]:
    """The position after which the last `latest` matches stand, and the number of matches before them."""
    correction_positions = np.array(event_rows.read_correction_positions(store, head.ladder), np.int64)
    skipped = max(head.position - len(correction_positions) - latest, 0)
    after = skipped
    while (position := skipped + int(correction_positions.searchsorted(after, side="right"))) != after:
        after = position
    return after, skipped


def _pieces(store: Store, head: Head, plan: Plan, after: int, progress: Progress | None) -> Iterator[_Piece]:
    for block, rows in event_rows.read_blocks(store, head, after, head.position, Scope(plan.upto)):
        chosen = _counted(store, head, block)
        if chosen.any():
            ids = plan.identity(block.ids)
            columns = block.columns._replace(
                time=np.maximum.accumulate(block.played_at),
                player=np.arange(len(ids), dtype=np.int32),
                keep=block.columns.keep & ~refunds(plan, block),
            )
            # Only rated matches set effective times, so that a late unrated match does not delay the others.
            taken = History(columns).take(chosen).columns
            times = np.maximum.accumulate(block.played_at[chosen])
            match_ids = [rows[index][0] for index in np.flatnonzero(chosen).tolist()]
            yield _Piece(taken._replace(time=times), ids[taken.player], match_ids)
        if progress:
            progress(int(block.counts_at[-1]))


def _counted(store: Store, head: Head, block: Block) -> Flags:
    """A mask of the matches of a block that are rated in the live generation."""
    rated = rating_rows.rated_among(store, head, block.positions)
    return np.isin(block.positions, np.array(rated, np.int64))


def _table(store: Store, head: Head, pieces: list[_Piece]) -> MatchTable:
    ids, player = np.unique(np.concatenate([piece.ids for piece in pieces]), return_inverse=True)
    columns = _joined([piece.columns for piece in pieces], player.astype(np.int32))
    names = player_rows.names_of(store, ids.tolist())
    number = np.arange(len(columns.place)) - np.repeat(columns.team_start[:-1], np.diff(columns.team_start))
    labels = pa.array([str(team) for team in range(int(number.max()) + 1)], TEXT)
    count = len(columns.time)
    return MatchTable(
        history=History(columns),
        match_id=pa.array([match_id for piece in pieces for match_id in piece.match_ids], TEXT),
        ladder=np.zeros(count, np.int32),
        ladders=(head.name,),
        team=pa.DictionaryArray.from_arrays(pa.array(number.astype(np.int32)), labels),
        player=pa.array([names[player_id] for player_id in ids.tolist()], TEXT),
        player_ladder=np.zeros(len(ids), np.int32),
        row=np.arange(count),
        source=Source(f"ladder {head.name!r}"),
    )


def _joined(parts: list[Columns], player: NDArray[np.int32]) -> Columns:
    """Concatenate the parts; `player` is the new player column of all their slots."""
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Columns._fields}
    for name in ("team_start", "slot_start"):
        sizes = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        joined[name] = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    joined["time"] = np.maximum.accumulate(joined["time"])  # a late match counts as ending with the one before it
    joined["player"] = player
    return Columns(**joined)


def _notes(plan: Plan, earlier: int) -> tuple[str, ...]:
    notes = []
    if earlier:
        left = "1 earlier one was" if earlier == 1 else f"{earlier:,} earlier ones were"
        since = "it" if earlier == 1 else "them"
        notes.append(
            f"Only the latest matches were read: {left} left out, and all players start as newcomers after {since}."
        )
    if any(opening.factor != 1 for _, opening in plan.openings):
        notes.append("New seasons reset the ratings of this ladder; here the ratings continue through all seasons.")
    if any(isinstance(turn.change, RatingsStarted) for turn in plan.turns):
        notes.append("Some players of this ladder began with imported ratings; here all players start as newcomers.")
    if any(isinstance(turn.change, RatingsDecayed) for turn in plan.turns):
        notes.append("Inactivity lowered ratings on this ladder; here it lowers none.")
    if len(plan.rules) > 1:
        notes.append("The rules of this ladder were changed; here its current rules apply from the first match.")
    return tuple(notes)
