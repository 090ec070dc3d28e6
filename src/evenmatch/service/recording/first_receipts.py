"""The receipts of matches that were recorded before, as they were first returned."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.ledger.codec import line_type
from evenmatch.ledger.events import write_body
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, events, player_identities
from evenmatch.service.recording.receipts import MatchReceipt, RatedBlock, receipts
from evenmatch.service.settings import Settings


def first_receipts(store: Store, head: Head, ids: Sequence[str]) -> dict[str, MatchReceipt]:
    """The receipts of these recorded matches, by id, as they were first returned. Raises DamageError."""
    matches = events.read_matches(store, head.ladder, ids)
    names = player_identities.names_of(store, np.unique(np.concatenate([block.ids for block, _ in matches])).tolist())
    rules_of = {
        generation: corrections.read_rules(store, head, generation) for generation in {row[1] for _, row in matches}
    }
    changed, settings = _settings(store, head)
    positions = [int(block.positions[0]) for block, _ in matches]
    late = events.read_counted_at(store, head.ladder, positions)
    receipt_of: dict[str, MatchReceipt] = {}
    for block, (match_id, generation, lines, _) in matches:
        present = settings[bisect_left(changed, int(block.positions[0])) - 1]
        divisions = [division.name for division in present.standings.divisions]
        system = rules_of[generation].system
        if lines is None or len(lines) not in (0, len(block.ids) * line_type(system).itemsize):
            raise DamageError(
                f"what was returned for match {match_id!r} of ladder {head.name!r} is damaged; "
                "`evenmatch verify` shows what is, restore a backup"
            )
        rated = RatedBlock(system, block, [bytes(lines)], names, divisions)
        counted_at, _ = late.get(int(block.positions[0]), (None, None))
        receipt_of[match_id] = receipts(head.name, [match_id], rated, present, [counted_at])[0]
    return receipt_of


def _settings(store: Store, head: Head) -> tuple[list[int], list[Settings]]:
    """The positions of changes of settings, ascending, and the settings since each."""
    changes = [event for event in corrections.read(store, head, head.corrected) if "settings" in event.body]
    settings = [Settings.read(write_body(event.body["settings"])) for event in changes]  # type: ignore[arg-type]
    return [event.position for event in changes], settings
