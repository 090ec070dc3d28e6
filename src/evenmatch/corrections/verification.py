"""Verify a ladder: check the chain of events, and compare ratings, journal and names with a replay.

Ratings and journal lines are compared bit for bit. Altered, removed, inserted or moved events are damage, which only a
backup repairs. Events contain the ids of players; the names of these players are compared with their checksums.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.corrections.ladder_heads import LadderHead, cut_of
from evenmatch.corrections.repair import generation_damage, is_repairable, seasons_difference, settings_difference
from evenmatch.corrections.replay import Progress, ReplayStep, appearance_sums, begin, name_of, replay, same_lines
from evenmatch.errors import DamageError, UnknownNameError
from evenmatch.ladders import seasons
from evenmatch.ledger import event_rows, ladder_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import engine_of
from evenmatch.ledger.codec import ID, same_bits, without_minus_zero
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Correction, Event, Kind, PlayerErased
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.player_rows import PSEUDONYM, Identity
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.seals import FIRST
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tail import read_traces
from evenmatch.ledger.text import fold


def damage_of(store: Store, head: Head, visit: Callable[[list[Event]], None]) -> Iterator[str]:
    """Yield a sentence for each place where a ladder's chain of events is broken.

    visit  called with each batch of intact events
    """
    last, seal = 0, FIRST
    correction_positions = []
    for batch in event_rows.read_events(store, head):
        whole = []
        for event in batch:
            if event.position != last + 1:
                yield f"positions {last + 1} to {event.position - 1} have no event"
            elif event.is_whole(seal):
                whole.append(event)
            else:
                yield _altered(event)
            last, seal = event.position, event.seal or FIRST
            if event.kind != Kind.MATCH:
                correction_positions.append(event.position)
        visit(whole)
    if last < head.position:
        yield f"positions {last + 1} to {head.position} have no event"
    elif last > head.position:
        yield f"the ladder's row says that position {head.position} is the last, but there are events up to {last}"
    elif seal != (head.seal or FIRST):
        yield f"the event at position {last} is not the one that the ladder's row names as its last"
    if event_rows.read_correction_positions(store, head.ladder) != correction_positions:
        yield "the table of corrections does not agree with the events"
    known = {trace: position for trace, position in read_traces(store, head).items() if position > head.position}
    if known and last <= head.position:
        yield _cut(head.position, known)


def _altered(event: Event) -> str:
    subject = f"match {event.id!r}" if event.kind == Kind.MATCH else f"{event.kind} {event.id!r}"
    if event.position == 1:
        return f"{subject} at position 1 was altered"
    return f"{subject} at position {event.position} was altered, or the event before it was replaced"


def _cut(last: int, known: dict[str, int]) -> str:
    highest = max(known.values())
    traces = ", ".join(trace for trace, position in known.items() if position == highest)
    return f"events after position {last} were removed: {traces} referred to an event at position {highest}"


class LineCheck:
    """Collects, step by step, where the lines of the live generation differ from a replay.

    used  numbers of the generations whose lines were returned for matches
    """

    def __init__(self, store: Store, head: Head, plan: Plan) -> None:
        self._store, self._head = store, head
        system = plan.last_rules.system.name
        systems = rating_rows.read_generation_systems(store, head.ladder)
        self._own = [generation for generation, name in systems.items() if name == system]
        self._changed = 0
        self.used: set[int] = set()
        self.differences: list[str] = []

    def add(self, step: ReplayStep) -> None:
        """Compare the lines of a step: those in the journal, else those first returned."""
        positions, stored = step.block.positions, step.stored
        generation = np.array(stored.generations)
        self.used.update(np.unique(generation).tolist())
        changed = rating_rows.read_changed_lines(self._store, self._head, step.block)
        in_journal = np.isin(positions, list(changed))
        same = same_lines(stored.told, step.rated, np.isin(generation, self._own) & ~in_journal)
        if changed:
            self._changed += int(in_journal.sum())
            lines = [changed.get(position, b"") for position in positions.tolist()]
            same |= same_lines(lines, step.rated, in_journal, same_bits)
        self.differences += [
            f"match {stored.ids[match]!r} at position {positions[match]} has a different line in a replay"
            for match in np.flatnonzero(~same).tolist()
        ]

    def finish(self) -> list[str]:
        """The differences, including lines in the journal that belong to no match."""
        lost = rating_rows.count_journal_lines(self._store, self._head) - self._changed
        return [*self.differences, *([f"{lost:,} lines in the journal belong to no match"] if lost else [])]


class NameCheck:
    """Collects damage to the names of the players in a ladder's events.

    corrections  all of the ladder's; None: they cannot be read
    """

    def __init__(self, store: Store, corrections: Sequence[Correction] | None) -> None:
        self._store = store
        self._merged = None if corrections is None else plan_of(corrections).merged  # the current player by merged one
        erasures = [event.change for event in corrections or () if isinstance(event.change, PlayerErased)]
        self._erased = {erasure.player for erasure in erasures}
        self._checked: set[int] = set()
        self.damage: list[str] = []

    def add_events(self, events: Sequence[Event]) -> None:
        """Check the players in these intact events, once each."""
        packed = [bytes(event.players) for event in events if event.players is not None]
        players = {*np.frombuffer(b"".join(packed), ID).tolist()}
        players.update(player for event in events if event.kind != Kind.MATCH for player in _named(event))
        new = sorted(players - self._checked)
        self._checked.update(new)
        known = player_rows.read_identities(self._store, new)
        owners = sorted({known[player].merged_into or player for player in known})
        aliases = player_rows.read_aliases(self._store, owners)
        altered: set[tuple[str, int]] = set()
        for player in new:
            if player not in known:
                self.damage.append(f"player #{player} is in the ledger but not in the table of players")
                continue
            names = aliases.get(known[player].merged_into or player, {})
            finding = next(self._findings(player, known[player], sorted(names)), None)
            if finding is not None:
                self.damage.append(finding)
            altered.update((name, owner) for name, (owner, is_intact) in names.items() if not is_intact)
        self.damage += [f"name {name!r} of player #{owner} was altered" for name, owner in sorted(altered)]

    def _findings(self, player: int, identity: Identity, names: Sequence[str]) -> Iterator[str]:
        name, folded, merged_into, erased_at = identity
        target = merged_into if self._merged is None else self._merged.get(player)
        if merged_into != target:
            by_table, by_ledger = (
                f"player #{into}" if into is not None else "no player" for into in (merged_into, target)
            )
            yield f"player {name!r} is merged into {by_table}; the ledger says {by_ledger}"
        is_erased = self._is_erased(player if target is None else target, identity)
        if is_erased and erased_at is None:
            yield f"player {name!r} is not marked as erased; the ledger says that they were erased"
        if erased_at is not None and not is_erased and (names != [name] or not PSEUDONYM.fullmatch(name)):
            yield f"player {name!r} is marked as erased; no event of the ladder says so"
        if not names:
            yield f"no name leads to player {name!r}"
        if is_erased and (names != [name] or not PSEUDONYM.fullmatch(name)):
            listed = ", ".join(sorted({name, *names}))
            yield f"player #{player} was erased; expected a pseudonym as the only name, got {listed}"
        if name not in names:
            yield f"player #{player} is shown as {name!r}, which is none of their names: {', '.join(sorted(names))}"
        if folded != fold(name):
            yield f"player {name!r} is searched as {folded!r}"

    def _is_erased(self, owner: int, identity: Identity) -> bool:
        """True if a player was erased according to the ladder or, if it cannot be read, according to the player's row.

        The events of a ladder without that correction came later and are checked under the pseudonym.
        """
        return identity.erased_at is not None if self._merged is None else owner in self._erased


def _named(correction: Event) -> list[int]:
    """The ids of the players that a correction names."""
    body = json.loads(correction.body or "{}")
    return [player for player in (body.get("player"), body.get("into")) if isinstance(player, int)]


@dataclass(frozen=True)
class Verification:
    """The result of comparing a ladder with a replay of its ledger.

    damage       sentences about altered events or names, which only a backup repairs
    differences  sentences about differences from a replay; empty if there are none, or if damage prevents a replay. A
                 whole rebuild repairs them, unless there is damage too
    due          a correction awaits a rebuild from this position; None: none
    same_engine  False: other kernels than this version's computed the ratings; a rebuild updates them
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
        """True if everything equals a replay of the whole ledger and no rebuild is due."""
        return not self.damage and not self.differences and self.due is None and self.same_engine


def verify(
    database: Database, ladder: str, progress: Progress | None = None, kept: LadderHead | None = None
) -> Verification:
    """Check the chain of events and the names, replay all events, and compare every line and state bit for bit.

    kept  a head of the ladder that was exported earlier and must be in the chain
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
            return Verification(ladder, head.position, 0, 0, (), head.due, True, (*damage, *names.damage))
        listed = event_rows.read_corrections(store, head, head.position)
        whole = plan_of(listed)
        differences = _compare_corrections(head, whole)
        planned = whole.upto if is_repairable(head, whole.systems) else head.planned
        plan = whole if planned == whole.upto else plan_of(event for event in listed if event.position <= planned)
        lines = LineCheck(store, head, plan)
        roster = Roster.empty(plan.rules_at(1), in_context=bool(plan.context_columns))
        matches, slots = 0, np.zeros(3, np.int64)
        for stop in [*rating_rows.read_checkpoint_positions(store, head), head.position]:
            for step in replay(store, head._replace(position=stop), plan, roster, progress):
                lines.add(step)
                matches += len(step.block)
                slots += appearance_sums(step.block)
            if stop < head.position:
                differences += _compare_checkpoint(store, head, plan, roster)
        differences += lines.finish()
        if event_rows.sum_appearances(store, head.ladder) != tuple(slots.tolist()):
            differences.append("the table of appearances does not agree with the matches")
        differences += filter(None, [settings_difference(store, head), seasons_difference(store, head)])
        if ladder_rows.read_damaged_divisions(store, head.ladder):
            differences.append("the divisions of players were altered")
        same_engine = head.engine == engine_of(plan.last_rules.system)
        states, more = _compare_states(store, head, plan, roster)
        more += generation_damage(store, head, whole.systems, lines.used) + seasons.standings_damage(store, head)
        sizes, different = (head.position, matches, len(roster)), (*differences, *states)
        return Verification(ladder, *sizes, different, head.due, same_engine, (*more, *names.damage))


def _name_check(store: Store, head: Head) -> NameCheck:
    """A check of names by the ladder's corrections, or without them if they cannot be read."""
    try:
        return NameCheck(store, event_rows.read_corrections(store, head, head.position))
    except (DamageError, UnknownNameError):  # of a system: an altered name, or one that is not installed
        return NameCheck(store, None)


def _compare_corrections(head: Head, plan: Plan) -> list[str]:
    """Disagreements about the last correction between the events, the ladder's row and its ratings."""
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
    same = same and stored.knows_the_same(roster)
    return [] if same else [difference]


def _compare_states(store: Store, head: Head, plan: Plan, roster: Roster) -> tuple[list[str], list[str]]:
    """Differences of players' states, and damage: signs that the states include events missing from the ledger."""
    try:
        live = rating_rows.read_whole_roster(store, head, plan)
    except DamageError as error:
        return [str(error)], []
    damage = _later_states(live, roster)
    if not np.array_equal(live.ids, roster.ids):
        alone = [repr(name_of(store, player)) for player in np.setxor1d(live.ids, roster.ids).tolist()]
        more = f" and {len(alone) - 5:,} more" if len(alone) > 5 else ""
        return [f"only the ladder or only the replay has a state of {', '.join(alone[:5])}{more}"], damage
    same = same_bits(live.records, roster.records) & same_bits(live.tally, roster.tally)
    shown = np.array(rating_rows.read_ratings(store, head), np.float64)
    same &= same_bits(without_minus_zero(shown), without_minus_zero(roster.records["rating"]))
    differing = roster.ids[~same].tolist()
    differences = [f"player {name_of(store, player)!r} has a different state in a replay" for player in differing]
    if live.time != roster.time:
        differences.append(f"the last effective time is {live.time}; a replay gives {roster.time}")
    if live.ladders.tobytes() != roster.ladders.tobytes():
        differences.append("what was learned about the ladder is not what a replay gives")
    if not live.knows_the_same(roster):
        differences.append("what was learned by context columns is not what a replay gives")
    if live.sample.pack() != roster.sample.pack():
        differences.append("the sample of ratings is not what a replay gives")
    return differences, damage


def _later_states(live: Roster, roster: Roster) -> list[str]:
    """Signs that the live states include matches that are no longer in the ledger."""
    played, replayed = (int(states.tally["matches"].sum()) for states in (live, roster))
    if played <= replayed:
        return []
    return [
        f"the ratings include {played:,} appearances in matches but the ledger has {replayed:,}: its last events may "
        "have been removed, which a rebuild would hide; compare it with a backup, or with a head kept elsewhere"
    ]
