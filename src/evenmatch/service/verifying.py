"""Compare a ladder's ratings and journal with a replay of its ledger from nothing, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import StoreError
from evenmatch.ledger.codec import line_type, same_bits
from evenmatch.ledger.database import Database
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.replay import Block, engine_of
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.service.replaying import Progress, Step, begin, name_of, replay, same_lines, systems_of


@dataclass(frozen=True)
class Verified:
    """What a comparison of a ladder with a replay of its ledger found.

    differences  what is not equal, in words; nothing where all is well
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

    @property
    def is_equal(self) -> bool:
        """Whether everything is as a replay from nothing makes it, with no rebuild due."""
        return not self.differences and self.due is None and self.same_engine


def verify(database: Database, ladder: str, progress: Progress | None = None) -> Verified:
    """Replay a ladder from nothing and compare every line and state bit for bit."""
    with database.read() as connection:
        store = Store(connection, database.rows)
        head = store.head(ladder)
        plan = store.plan(head, head.planned)
        roster = Roster.empty(plan.rules_at(1))
        found: list[str] = _gaps(store, head)
        systems, matches, slots = systems_of(store, head), 0, np.zeros(3, np.int64)
        for stop in [*store.checkpoints(head), head.position]:
            for step in replay(store, head._replace(position=stop), plan, roster, progress):
                found += _compare_lines(store, head, plan, step, systems)
                matches += len(step.block)
                slots += _appearances(step.block)
            if stop < head.position:
                found += _compare_checkpoint(store, head, plan, roster)
        if store.appearances(head) != tuple(slots.tolist()):
            found.append("the list of who appeared where is not that of the matches")
        found += _compare_states(store, head, plan, roster)
        same_engine = head.engine == engine_of(plan.last_rules.system)
        return Verified(ladder, head.position, matches, len(roster), tuple(found), head.due, same_engine)


def _gaps(store: Store, head: Head) -> list[str]:
    count, first, last = store.all(
        "SELECT COUNT(*), COALESCE(MIN(position), 1), COALESCE(MAX(position), 0) FROM event WHERE ladder = ?",
        head.ladder,
    )[0]
    if (count, first, last) == (head.position, 1, head.position):
        return []
    return [f"{count} events stand at positions {first} to {last}; 1 to {head.position} without a gap were expected"]


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


def _appearances(block: Block) -> NDArray[np.int64]:
    """How many slots, and the sums of their players and positions: what the list of appearances must come to."""
    sizes = np.diff(block.columns.slot_start[block.columns.team_start])
    return np.array([len(block.ids), block.ids.sum(), (block.positions * sizes).sum()], np.int64)


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
    live = store.roster(head, plan.last_rules)
    if not np.array_equal(live.ids, roster.ids):
        missing = np.setxor1d(live.ids, roster.ids)[:5].tolist()
        return [f"players {missing} have a state in the ladder or in the replay alone"]
    same = same_bits(live.records, roster.records) & same_bits(live.tally, roster.tally)
    shown = np.array(store.ratings(head), np.float64)
    same &= same_bits(shown, np.ascontiguousarray(roster.records["rating"]))
    found = [f"player {name_of(store, int(one))!r} has another state than a replay" for one in roster.ids[~same]]
    if live.time != roster.time:
        found.append(f"the last effective time is {live.time}; a replay gives {roster.time}")
    return found
