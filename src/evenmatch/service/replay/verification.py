"""Compare a ladder's ratings and journal, bit for bit, with a replay of its whole ledger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.errors import DamageError, UnknownNameError
from evenmatch.ledger.block_rating import engine_of
from evenmatch.ledger.codec import same_bits, without_minus_zero
from evenmatch.ledger.database import Database
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import (
    appearances,
    checkpoints,
    corrections,
    divisions,
    player_states,
)
from evenmatch.service import seasons
from evenmatch.service.ladder_heads import LadderHead, cut_of
from evenmatch.service.replay.generation_check import generation_damage, is_repairable
from evenmatch.service.replay.ledger_damage import damage_of
from evenmatch.service.replay.ledger_replay import (
    Progress,
    appearance_sums,
    begin,
    name_of,
    replay,
)
from evenmatch.service.replay.line_check import LineCheck
from evenmatch.service.replay.name_check import NameCheck
from evenmatch.service.replay.repair import seasons_difference, settings_difference


@dataclass(frozen=True)
class Verification:
    """The result of comparing a ladder with a replay of its ledger.

    damage       sentences: where events, or names of players, were altered; only a backup repairs that
    differences  sentences: what differs from a replay; empty if nothing does, or if damage prevents a replay. A whole
                 rebuild repairs that, unless there is damage too
    due          a correction awaits a rebuild from this position on; None: none
    same_engine  False: the ratings come from other kernels than this version's; a rebuild updates them
    unchecked    sentences: what could not be checked, and why
    """

    ladder: str
    events: int
    matches: int
    players: int
    differences: tuple[str, ...]
    due: int | None
    same_engine: bool
    damage: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether everything equals a replay of the whole ledger, and no rebuild is due."""
        return not self.damage and not self.differences and self.due is None and self.same_engine


def verify(
    database: Database, ladder: str, progress: Progress | None = None, kept: LadderHead | None = None
) -> Verification:
    """Check the chain of events and the names, replay all events, and compare every line and state bit for bit.

    kept  a head of the ladder that was exported before: the chain must go through it
    """
    try:
        return _verify(database, ladder, progress, kept)
    except DamageError as error:  # the rest of the ladder cannot be read
        return Verification(ladder, 0, 0, 0, (), None, True, (str(error),))


def _verify(database: Database, ladder: str, progress: Progress | None, kept: LadderHead | None) -> Verification:
    with database.read() as store:
        head = store.head(ladder)
        names = _name_check(store, head)
        damage = [*damage_of(store, head, names.add_events)]
        if not damage and kept is not None:
            damage += filter(None, [cut_of(store, head, kept)])
        if damage:
            broken = (*damage, *names.damage)
            return Verification(ladder, head.position, 0, 0, (), head.due, True, broken, names.unchecked)
        listed = corrections.read(store, head, head.position)
        whole = plan_of(listed)
        differences = _compare_corrections(head, whole)
        planned = whole.upto if is_repairable(head, whole.systems) else head.planned
        plan = whole if planned == whole.upto else plan_of(event for event in listed if event.position <= planned)
        roster, lines = Roster.empty(plan.rules_at(1)), LineCheck(store, head, plan)
        matches, slots = 0, np.zeros(3, np.int64)
        for stop in [*checkpoints.read_positions(store, head), head.position]:
            for step in replay(store, head._replace(position=stop), plan, roster, progress):
                lines.add(step)
                matches += len(step.block)
                slots += appearance_sums(step.block)
            if stop < head.position:
                differences += _compare_checkpoint(store, head, plan, roster)
        differences += lines.finish()
        if appearances.checksum(store, head.ladder) != tuple(slots.tolist()):
            differences.append("the table of appearances does not agree with the matches")
        differences += filter(None, [settings_difference(store, head), seasons_difference(store, head)])
        if divisions.read_damaged(store, head.ladder):
            differences.append("the divisions of players are not as they were recorded")
        same_engine = head.engine == engine_of(plan.last_rules.system)
        states, more = _compare_states(store, head, plan, roster)
        more += generation_damage(store, head, whole.systems, lines.used) + seasons.standings_damage(store, head)
        sizes, different = (head.position, matches, len(roster)), (*differences, *states)
        broken = (*more, *names.damage)
        return Verification(ladder, *sizes, different, head.due, same_engine, broken, names.unchecked)


def _name_check(store: Store, head: Head) -> NameCheck:
    """A check of names by the ladder's corrections, or without them if they cannot be read."""
    try:
        listed = corrections.read(store, head, head.position)
        return NameCheck(store, plan_of(listed).merged, listed)
    except (DamageError, UnknownNameError):  # of a system: an altered name, or one that is not installed
        return NameCheck(store, None, [])


def _compare_corrections(head: Head, plan: Plan) -> list[str]:
    """Differences between the last correction and the one that the ladder's row and its ratings have as the last."""
    last = plan.upto
    differences = []
    if head.corrected != last:
        differences.append(
            f"the ladder's row says that the last correction is at position {head.corrected}; it is at position {last}"
        )
    if head.due is not None and head.due > head.position:
        differences.append(
            f"the ladder's row says that a rebuild is due from position {head.due}, after its last event"
        )
    if head.planned != last if head.due is None else is_repairable(head, plan.systems):
        differences.append(
            f"the ratings include corrections up to position {head.planned}; the last one is at position {last}"
        )
    return differences


def _compare_checkpoint(store: Store, head: Head, plan: Plan, roster: Roster) -> list[str]:
    difference = f"the checkpoint at position {roster.position} is not what a replay gives"
    try:
        stored = begin(store, head, plan, roster.position + 1)
    except DamageError:
        return [difference]
    same = (stored.position, stored.time) == (roster.position, roster.time) and np.array_equal(stored.ids, roster.ids)
    same = same and bool(same_bits(stored.records, roster.records).all())
    same = same and bool(same_bits(stored.tally, roster.tally).all())
    same = same and stored.ladders.tobytes() == roster.ladders.tobytes()
    return [] if same else [difference]


def _compare_states(store: Store, head: Head, plan: Plan, roster: Roster) -> tuple[list[str], list[str]]:
    """Differences of players' states, and damage: signs that the states knew events that the ledger does not have."""
    try:
        live = player_states.read_roster(store, head, plan.last_rules)
    except DamageError as error:
        return [str(error)], []
    damage = _later_states(live, roster)
    if not np.array_equal(live.ids, roster.ids):
        alone = [repr(name_of(store, player)) for player in np.setxor1d(live.ids, roster.ids).tolist()]
        more = f" and {len(alone) - 5:,} more" if len(alone) > 5 else ""
        return [f"only the ladder or only the replay has a state of {', '.join(alone[:5])}{more}"], damage
    same = same_bits(live.records, roster.records) & same_bits(live.tally, roster.tally)
    shown = np.array(player_states.read_ratings(store, head), np.float64)
    same &= same_bits(without_minus_zero(shown), without_minus_zero(roster.records["rating"]))
    differing = roster.ids[~same].tolist()
    differences = [f"player {name_of(store, player)!r} has another state than a replay" for player in differing]
    if live.time != roster.time:
        differences.append(f"the last effective time is {live.time}; a replay gives {roster.time}")
    if live.ladders.tobytes() != roster.ladders.tobytes():
        differences.append("what was learned of the ladder is not what a replay gives")
    if live.sample.pack() != roster.sample.pack():
        differences.append("the sample of ratings is not what a replay gives")
    return differences, damage


def _later_states(live: Roster, roster: Roster) -> list[str]:
    """Signs that the live states include matches that the ledger does not have any more."""
    played, replayed = (int(states.tally["matches"].sum()) for states in (live, roster))
    if played <= replayed:
        return []
    return [
        f"the ratings are of {played:,} appearances in matches and the ledger has {replayed:,}: its last events may "
        "have been removed, which a rebuild would hide; compare it with a backup, or with a head kept elsewhere"
    ]
