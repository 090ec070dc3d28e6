"""Rows of table `correction`: the positions of the events that are corrections, read together with these events."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.history import Floats
from evenmatch.ledger import schema
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Correction, Kind, correction_of
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.seals import FIRST, correction_seal
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import events, generations, ladders
from evenmatch.systems.system import Rules


class StoredCorrection(NamedTuple):
    """A correction as stored. recorded_at: microseconds;  body: JSON."""

    position: int
    id: str
    kind: str
    recorded_at: int
    body: str


def read(store: Store, head: Head, upto: int, *, after: int = 0) -> list[Correction]:
    """The corrections after a position and up to one, in order. Raises DamageError if one is damaged."""
    rows = store.all(
        "SELECT e.position, e.kind, e.body, e.players, e.slots FROM correction c "
        "JOIN event e ON e.ladder = c.ladder AND e.position = c.position "
        "WHERE c.ladder = ? AND c.position > ? AND c.position <= ? ORDER BY c.position",
        *(head.ladder, after, upto),
    )
    return [correction_of(head.name, *row) for row in rows]


def read_plan(store: Store, head: Head, upto: int) -> Plan:
    """The plan from the corrections up to a position. Only those are read that are not in a cached plan."""
    known = store.plans.find(head.ladder, upto)
    if known is not None and known.upto == upto:
        return known
    plan = plan_of(read(store, head, upto, after=0 if known is None else known.upto), known)
    if plan.upto == upto and head.ladder not in store.uncommitted:
        store.plans.add(head.ladder, plan)
    return plan


def read_rules(store: Store, head: Head, generation: int) -> Rules:
    """The last rules of a generation; it has a single system, but parameters may have changed within it."""
    return read_plan(store, head, generations.read_planned(store, head, generation)).last_rules


def read_stored(store: Store, ladder: int, before: int, limit: int | None = None) -> list[StoredCorrection]:
    """Up to `limit` corrections (None: all) before a position, latest first."""
    sql = (
        "SELECT e.position, e.id, e.kind, e.recorded_at, e.body FROM correction c "
        "JOIN event e ON e.ladder = c.ladder AND e.position = c.position "
        "WHERE c.ladder = ? AND c.position < ? ORDER BY c.position DESC"
    )
    clause, values = ("", ()) if limit is None else (" LIMIT ?", (limit,))
    return [StoredCorrection(*row) for row in store.all(sql + clause, ladder, before, *values)]


def read_positions(store: Store, ladder: int) -> list[int]:
    """The positions of all corrections, ascending."""
    return [row[0] for row in store.all("SELECT position FROM correction WHERE ladder = ? ORDER BY position", ladder)]


def read_last_position(store: Store, ladder: int) -> int:
    """The position of the last correction; 0: there is none."""
    position: int = store.all("SELECT COALESCE(MAX(position), 0) FROM correction WHERE ladder = ?", ladder)[0][0]
    return position


def append(
    store: Store, head: Head, kind: Kind, event_id: str, digest: bytes, body: str, now: int, ids: Ids, ratings: Floats
) -> int:
    """Append a correction to a ladder's events and return its position."""
    position = head.position + 1
    seal = correction_seal(head.seal or FIRST, position, event_id, now, kind.value, body, ids, ratings)
    events.insert_correction(store, head.ladder, position, kind, event_id, digest, body, now, ids, ratings, seal)
    store.insert(schema.correction, ("ladder", "position"), [(head.ladder, position)])
    ladders.set_position(store, head.ladder, position, seal)
    ladders.set_corrected(store, head.ladder, position)
    store.uncommitted.add(head.ladder)
    return position
