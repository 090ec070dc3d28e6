"""Restore what follows from a ladder's events beside its ratings: appearances, settings, seasons, divisions."""

from __future__ import annotations

import json

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Kind, write_body
from evenmatch.ledger.plan import plan_of
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import appearances, corrections, divisions, events, generations, ladders, seasons
from evenmatch.ledger.tables.events import Scope
from evenmatch.ledger.tables.seasons import Season
from evenmatch.service.replay.generation_check import is_repairable
from evenmatch.service.replay.ledger_replay import appearance_sums
from evenmatch.service.settings import Settings


def repair(database: Database, ladder: str) -> None:
    """Restore settings, seasons, the table of appearances and divisions where they do not agree with the events.

    A division that was altered is deleted: the player's percentile alone decides on the next one.
    """
    with database.write(patient=True) as store:
        head = store.lock(ladder)
        repair_settings(store, head)
        _repair_seasons(store, head)
        _repair_appearances(store, head)
        divisions.delete_some(store, head.ladder, divisions.read_damaged(store, head.ladder))


def repair_corrected(store: Store, head: Head) -> Head:
    """Write the position of the last correction where the ladder's row or its generation's is wrong; return the head.

    A position after the last event stays: it tells that events were removed.
    """
    plan = plan_of(corrections.read(store, head, head.position))
    last = plan.upto
    if head.corrected != last and head.corrected <= head.position:
        ladders.set_corrected(store, head.ladder, last)
        head = head._replace(corrected=last)
    if head.planned <= head.position and is_repairable(head, plan.systems):
        generations.set_planned(store, head.ladder, head.generation, last)
        head = head._replace(planned=last)
    return head


def last_settings(store: Store, head: Head) -> tuple[int, Settings] | None:
    """The position and the settings of the last event that has settings; None: they are of a later version."""
    for correction in reversed(corrections.read(store, head, head.position)):
        settings = correction.body.get("settings")
        if isinstance(settings, dict):
            try:
                return correction.position, Settings.read(write_body(settings))
            except DamageError:
                return None
    return None


def settings_difference(store: Store, head: Head) -> str | None:
    """Why the settings in the ladder's row are not those of its last event with settings; None: they are."""
    recorded = last_settings(store, head)
    if recorded is None:
        return None
    position, settings = recorded
    try:
        if Settings.read(head.settings) == settings:
            return None
    except DamageError:
        pass
    return f"the settings in the ladder's row are not those of the event at position {position}"


def repair_settings(store: Store, head: Head) -> None:
    """Write the settings of the last event that has settings into the ladder's row, if they differ."""
    recorded = last_settings(store, head)
    if recorded is not None and settings_difference(store, head) is not None:
        ladders.set_settings(store, head.ladder, recorded[1].write())


def seasons_difference(store: Store, head: Head) -> str | None:
    """A sentence if the table of seasons differs from the events that opened them; None: it does not."""
    same = seasons.read(store, head.ladder) == _opened_seasons(store, head)
    return None if same else "the seasons are not those of the events that opened them"


def _opened_seasons(store: Store, head: Head) -> list[Season]:
    first, *later = reversed(corrections.read_stored(store, head.ladder, head.position + 1))
    openings = [event for event in later if event.kind == Kind.SEASON]
    titles = [seasons.FIRST_TITLE, *(str(json.loads(event.body).get("title")) for event in openings)]
    times = [event.recorded_at for event in (first, *openings)]
    columns = zip(titles, (first, *openings), times, [*times[1:], None], strict=True)
    return [
        Season(number, title, event.position, opened_at, closed_at)
        for number, (title, event, opened_at, closed_at) in enumerate(columns, 1)
    ]


def _repair_seasons(store: Store, head: Head) -> None:
    if seasons_difference(store, head) is not None:
        seasons.replace(store, head.ladder, _opened_seasons(store, head))


def _repair_appearances(store: Store, head: Head) -> None:
    sums = np.zeros(3, np.int64)
    everything = Scope(head.position)
    for block, _ in events.read_blocks(store, head, 0, head.position, everything):
        sums += appearance_sums(block)
    if appearances.checksum(store, head.ladder) == tuple(sums.tolist()):
        return
    appearances.delete(store, head.ladder)
    for block, _ in events.read_blocks(store, head, 0, head.position, everything):
        sizes = np.diff(block.columns.slot_start[block.columns.team_start])
        slots = block.ids, np.repeat(block.positions, sizes), np.repeat(block.played_at, sizes)
        appearances.insert(store, head.ladder, *slots)
