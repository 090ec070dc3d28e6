"""Check the rows of a ladder's generations against its events: the lines returned for matches are read by them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import numpy as np

from evenmatch.corrections.replay import appearance_sums
from evenmatch.errors import DamageError
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, ladder_rows, rating_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.event_rows import Scope
from evenmatch.ledger.events import Kind, write_body
from evenmatch.ledger.ladder_rows import Season
from evenmatch.ledger.plan import plan_of
from evenmatch.ledger.rating_rows import StoredGeneration
from evenmatch.ledger.store import Head, Store

Systems = Mapping[int, str]  # see Plan.systems, of all corrections


def is_repairable(head: Head, systems: Systems) -> bool:
    """Whether column `planned` of the live generation is wrong, and the last correction fits to its system."""
    return systems.get(head.planned) != head.system == systems[max(systems)]


def generation_damage(store: Store, head: Head, systems: Systems, used: Collection[int]) -> list[str]:
    """Sentences about generations that were in use and are lost or altered.

    used  the generations whose lines were returned for matches
    The column `planned` of the live generation is left out if it is repairable.
    """
    stored = {row.generation: row for row in rating_rows.read_all(store, head.ladder)}
    damage = []
    for generation in sorted({*used, *stored}):
        row, is_live = stored.get(generation), generation == head.generation
        if row is None:
            damage.append(f"generation {generation}, which rated matches, is missing in table generation")
        elif row.ready != 1 and (is_live or generation in used):
            damage.append(f"generation {generation} is in use, but its column ready is {row.ready}; expected 1")
        elif row.ready and not (is_live and is_repairable(head, systems)):
            damage += _misfit(row, systems)
    return damage


def _misfit(row: StoredGeneration, systems: Systems) -> list[str]:
    subject = f"generation {row.generation} has {row.planned} in column planned and {row.system!r} in column system"
    if row.planned not in systems:
        return [f"{subject}, but no correction is at position {row.planned}"]
    system = systems[row.planned]
    return [] if system == row.system else [f"{subject}, but the system after position {row.planned} is {system!r}"]


def repair(database: Database, ladder: str) -> None:
    """Restore settings, seasons, the table of appearances and divisions where they do not agree with the events.

    A division that was altered is deleted: the player's percentile alone decides on the next one.
    """
    with database.write(patient=True) as store:
        head = store.lock(ladder)
        repair_settings(store, head)
        _repair_seasons(store, head)
        _repair_appearances(store, head)
        ladder_rows.delete_some(store, head.ladder, ladder_rows.read_damaged(store, head.ladder))


def repair_corrected(store: Store, head: Head) -> Head:
    """Write the position of the last correction where the ladder's row or its generation's is wrong; return the head.

    A position after the last event stays: it tells that events were removed.
    """
    plan = plan_of(event_rows.read_corrections(store, head, head.position))
    last = plan.upto
    if head.corrected != last and head.corrected <= head.position:
        ladder_rows.set_corrected(store, head.ladder, last)
        head = head._replace(corrected=last)
    if head.planned <= head.position and is_repairable(head, plan.systems):
        rating_rows.set_planned(store, head.ladder, head.generation, last)
        head = head._replace(planned=last)
    return head


def last_settings(store: Store, head: Head) -> tuple[int, Settings] | None:
    """The position and the settings of the last event that has settings; None: they are of a later version."""
    for correction in reversed(event_rows.read_corrections(store, head, head.position)):
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
        ladder_rows.set_settings(store, head.ladder, recorded[1].write())


def seasons_difference(store: Store, head: Head) -> str | None:
    """A sentence if the table of seasons differs from the events that opened them; None: it does not."""
    same = ladder_rows.read_seasons(store, head.ladder) == _opened_seasons(store, head)
    return None if same else "the seasons are not those of the events that opened them"


def _opened_seasons(store: Store, head: Head) -> list[Season]:
    first, *later = reversed(event_rows.read_stored_corrections(store, head.ladder, head.position + 1))
    openings = [event for event in later if event.kind == Kind.SEASON]
    titles = [ladder_rows.FIRST_TITLE, *(str(json.loads(event.body).get("title")) for event in openings)]
    times = [event.recorded_at for event in (first, *openings)]
    columns = zip(titles, (first, *openings), times, [*times[1:], None], strict=True)
    return [
        Season(number, title, event.position, opened_at, closed_at)
        for number, (title, event, opened_at, closed_at) in enumerate(columns, 1)
    ]


def _repair_seasons(store: Store, head: Head) -> None:
    if seasons_difference(store, head) is not None:
        ladder_rows.replace(store, head.ladder, _opened_seasons(store, head))


def _repair_appearances(store: Store, head: Head) -> None:
    sums = np.zeros(3, np.int64)
    everything = Scope(head.position)
    for block, _ in event_rows.read_blocks(store, head, 0, head.position, everything):
        sums += appearance_sums(block)
    if event_rows.checksum(store, head.ladder) == tuple(sums.tolist()):
        return
    event_rows.delete(store, head.ladder)
    for block, _ in event_rows.read_blocks(store, head, 0, head.position, everything):
        sizes = np.diff(block.columns.slot_start[block.columns.team_start])
        slots = block.ids, np.repeat(block.positions, sizes), np.repeat(block.played_at, sizes)
        event_rows.insert(store, head.ladder, *slots)
