"""Compare a ladder's ratings and journal with a replay of its ledger from nothing, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from evenmatch.errors import StoreError
from evenmatch.ledger.codec import line_type, same_bits
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.replay import engine_of
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.service.replaying import (
    Progress,
    Step,
    appearance_sums,
    begin,
    name_of,
    replay,
    same_lines,
    systems_of,
)
from evenmatch.service.settings import Settings


@dataclass(frozen=True)
class Verified:
    """What a comparison of a ladder with a replay of its ledger found.

    damage       where the ledger itself is not as it was written, in words: no rebuild mends that, a backup does
    differences  what is not equal to a replay, in words; empty where all is well, and where damage forbids a replay
    due          a correction waits for a rebuild from this position on; None: none
    same_engine  False: the kernels are not those the ratings were made with; a rebuild brings them up to date
    """

    ladder: str
    events: int
    matches: int
    players: int
    differences: tuple[str, ...]
    due: int | None
    same_engine: bool
    damage: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether everything is as a replay from nothing makes it, with no rebuild due."""
        return not self.damage and not self.differences and self.due is None and self.same_engine


def verify(database: Database, ladder: str, progress: Progress | None = None) -> Verified:
    """Check that every event is as it was written, replay all of them and compare every line and state bit for bit."""
    with database.read() as connection:
        store = Store(connection, database.rows)
        head = store.head(ladder)
        damage = tuple(damage_of(store, head))
        if damage:
            return Verified(ladder, head.position, 0, 0, (), head.due, True, damage)
        plan = store.plan(head, head.planned)
        roster = Roster.empty(plan.rules_at(1))
        found: list[str] = []
        systems, matches, slots = systems_of(store, head), 0, np.zeros(3, np.int64)
        for stop in [*store.checkpoints(head), head.position]:
            for step in replay(store, head._replace(position=stop), plan, roster, progress):
                found += _compare_lines(store, head, plan, step, systems)
                matches += len(step.block)
                slots += appearance_sums(step.block)
            if stop < head.position:
                found += _compare_checkpoint(store, head, plan, roster)
        if store.appearances(head) != tuple(slots.tolist()):
            found.append("the list of who appeared where is not that of the matches")
        found += _compare_states(store, head, plan, roster)
        same_engine = head.engine == engine_of(plan.last_rules.system)
        return Verified(ladder, head.position, matches, len(roster), tuple(found), head.due, same_engine)


def damage_of(store: Store, head: Head) -> Iterator[str]:
    """Where a ladder's events are not as they were written, in words."""
    expected = 1
    corrections = []
    for event in store.events(head):
        if event.position != expected:
            yield f"positions {expected} to {event.position - 1} have no event"
        expected = event.position + 1
        if event.kind != Kind.MATCH:
            corrections.append(event.position)
        if not event.is_whole():
            what = f"match {event.id!r}" if event.kind == Kind.MATCH else f"{event.kind} {event.id!r}"
            yield f"{what} at position {event.position} is not as it was recorded"
    if expected <= head.position:
        yield f"positions {expected} to {head.position} have no event"
    if store.correction_positions(head) != corrections:
        yield "the list of corrections is not that of the events"
    try:
        Settings.read(head.settings)
    except StoreError as error:
        yield str(error)


def _compare_lines(store: Store, head: Head, plan: Plan, step: Step, systems: Mapping[int, str]) -> list[str]:
    positions = step.block.positions.tolist()
    kept: dict[int, bytes] = dict(
        store.all(
            "SELECT position, lines FROM journal WHERE ladder = ? AND generation = ? AND position BETWEEN ? AND ?",
            *(head.ladder, head.generation, positions[0], positions[-1]),
        )
    )
    system = plan.last_rules.system
    live = [bytes(kept[at] if at in kept else row[2]) for at, row in zip(positions, step.rows, strict=True)]
    ours = [at in kept or systems[row[1]] == system.name for at, row in zip(positions, step.rows, strict=True)]
    same = same_lines(line_type(system), live, step.rated.told(), ours)
    wrong = np.flatnonzero(~same).tolist()
    return [f"match {step.rows[at][0]!r} at position {positions[at]} has another line than a replay" for at in wrong]


def _compare_checkpoint(store: Store, head: Head, plan: Plan, roster: Roster) -> list[str]:
    told = f"the checkpoint at position {roster.position} is not what a replay gives"
    try:
        kept = begin(store, head, plan, roster.position + 1)
    except StoreError:
        return [told]
    same = (kept.position, kept.time) == (roster.position, roster.time) and np.array_equal(kept.ids, roster.ids)
    same = same and bool(same_bits(kept.records, roster.records).all() and same_bits(kept.tally, roster.tally).all())
    return [] if same else [told]


def _compare_states(store: Store, head: Head, plan: Plan, roster: Roster) -> list[str]:
    try:
        live = store.roster(head, plan.last_rules)
    except StoreError as error:
        return [str(error)]
    if not np.array_equal(live.ids, roster.ids):
        alone = [repr(name_of(store, one)) for one in np.setxor1d(live.ids, roster.ids).tolist()]
        more = f" and {len(alone) - 5:,} more" if len(alone) > 5 else ""
        return [f"in the ladder or in the replay alone there is a state of {', '.join(alone[:5])}{more}"]
    same = same_bits(live.records, roster.records) & same_bits(live.tally, roster.tally)
    shown = np.array(store.ratings(head), np.float64)
    same &= same_bits(shown, np.ascontiguousarray(roster.records["rating"]))
    found = [f"player {name_of(store, int(one))!r} has another state than a replay" for one in roster.ids[~same]]
    if live.time != roster.time:
        found.append(f"the last effective time is {live.time}; a replay gives {roster.time}")
    return found
