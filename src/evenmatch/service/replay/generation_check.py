"""Check the rows of a ladder's generations against its events: the lines returned for matches are read by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import generations
from evenmatch.ledger.tables.generations import StoredGeneration

Systems = Mapping[int, str]  # see Plan.systems, of all corrections


def is_repairable(head: Head, systems: Systems) -> bool:
    """Whether column `planned` of the live generation is wrong, and the last correction fits to its system."""
    return systems.get(head.planned) != head.system == systems[max(systems)]


def generation_damage(store: Store, head: Head, systems: Systems, used: Collection[int]) -> list[str]:
    """Sentences about generations that were in use and are lost or altered.

    used  the generations whose lines were returned for matches
    The column `planned` of the live generation is left out if it is repairable.
    """
    stored = {row.generation: row for row in generations.read_all(store, head.ladder)}
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
