"""A ladder's counted matches as columns in memory, to be replayed under other rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenmatch.corrections.replay import Progress
from evenmatch.errors import InputError
from evenmatch.ladders.export import match_tables
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import RatingsDecayed, RatingsStarted
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.systems.system import Rules
from evenmatch.tables.build import assemble
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS, MatchTable

LATEST = 200_000  # latest matches that are read by default


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

    progress  called from time to time with the position reached
    Raises UnknownNameError for an unknown ladder, InputError if none of these matches is rated.
    """
    with database.read() as store:
        head = store.head(ladder)
        plan = event_rows.read_plan(store, head, head.planned)
        after, earlier = _begin(store, head, latest)
        parts = list(match_tables(store, head, counted=True, after=after, progress=progress))
    if not parts:
        raise InputError(f"ladder {ladder!r} has no rated match; at least one is needed")
    rows = pa.concat_tables(parts, promote_options="default")
    for name in plan.context:
        if name not in rows.column_names:  # no match has a value
            rows = rows.append_column(name, pa.array([""] * len(rows)))
    rows = rows.select([name for name in rows.column_names if name in COLUMNS or name in plan.context])
    table = assemble(rows, Source(f"ladder {ladder!r}"), plan.context)
    settings = Settings.read(head.settings)
    return LadderHistory(table, plan.last_rules, settings, head.position, earlier, _notes(plan, earlier))


def _begin(store: Store, head: Head, latest: int) -> tuple[int, int]:
    """The position after which to read the last `latest` matches, and the number of matches before them."""
    correction_positions = np.array(event_rows.read_correction_positions(store, head.ladder), np.int64)
    skipped = max(head.position - len(correction_positions) - latest, 0)
    after = skipped
    while (position := skipped + int(correction_positions.searchsorted(after, side="right"))) != after:
        after = position
    return after, skipped


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
