"""Verify a ladder: check the chain of events, and compare ratings, journal and names with a replay.

Ratings and journal lines are compared bit for bit. Altered, removed, inserted or moved events are damage, which only a
backup repairs. A match's digest covers the reported names, but its players are stored as ids: the names that now lead
to these ids must reproduce the digest. The names of erased players are deleted and cannot be checked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from evenmatch.corrections.ladder_heads import LadderHead, cut_of
from evenmatch.corrections.repair import generation_damage, is_repairable, seasons_difference, settings_difference
from evenmatch.corrections.replay import Progress, ReplayStep, appearance_sums, begin, name_of, replay, same_lines
from evenmatch.errors import DamageError, UnknownNameError
from evenmatch.ladders import seasons
from evenmatch.ledger import event_rows, ladder_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import engine_of
from evenmatch.ledger.codec import ID, Ids, PackedMatches, contents, digest_of, digests, same_bits, without_minus_zero
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import AboutPlayer, Correction, Event, Kind, PlayerErased, PlayerRenamed
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


LARGEST = np.iinfo(np.int64).max
MOST_TRIED, FEWEST_TRIED = 4096, 64  # choices of names tried for a match; each search that is cut off halves the limit


class NameCheck:
    """Collects, event by event, what is wrong with the names of a ladder's players.

    The digest of a match covers the names under which it was reported, which may be former names of its players.

    merged       the current player of each merged one, according to the ladder's corrections; None: unknown
    corrections  all of the ladder's; an event that renames a player does not contain the new name
    """

    def __init__(self, store: Store, merged: Mapping[int, int] | None, corrections: Sequence[Correction]) -> None:
        self._store, self._merged = store, merged
        self._renames = _players_by_position(corrections, PlayerRenamed)
        self._renames_left = Counter(self._renames.values())  # by player
        self._erased = {*_players_by_position(corrections, PlayerErased).values()}
        self._own: dict[int, str] = {}  # the present names
        self._names: dict[int, list[str]] = {}  # by id: all names of the player, the likeliest first
        self._most = MOST_TRIED
        self._unchecked: list[str] = []  # matches, by id and position
        self.damage: list[str] = []

    @property
    def unchecked(self) -> tuple[str, ...]:
        """A sentence about the matches whose players have too many names to try, if there are any."""
        if not self._unchecked:
            return ()
        number = len(self._unchecked)
        return (
            f"the names in {number:,} {'match' if number == 1 else 'matches'} were not checked (the first: "
            f"{self._unchecked[0]}): the players have too many names to try, and the most likely ones do not fit",
        )

    def add_players(self, ids: Ids) -> None:
        """Check the rows of these players, once each."""
        new = [player for player in np.unique(ids).tolist() if player not in self._names]
        known = player_rows.read_identities(self._store, new)
        owners = {player: known[player].merged_into or player for player in known}
        aliases = player_rows.read_aliases(self._store, sorted({*owners.values()}))
        for player in new:
            if player not in known:
                self._names[player] = []
                self.damage.append(f"player #{player} of the ledger is not in the table of players")
                continue
            names = aliases.get(owners[player], [])
            finding = next(self._findings(player, known[player], names), None)
            if finding is not None:
                self.damage.append(finding)
            is_open = finding is None and not self._is_erased(owners[player], known[player])
            self._names[player] = sorted(names) if is_open else []
            if is_open:
                self._own[player] = known[player].name
                self._sort(player)

    def _sort(self, player: int) -> None:
        """Put the present name of a player first, or last while the player is still to be renamed."""
        is_early = self._renames_left[player] > 0
        self._names[player].sort(key=lambda name: (name == self._own[player]) == is_early)

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
        """Whether a player was erased according to the ladder or, if it cannot be read, the player's row.

        The events of a ladder without that correction came later and are checked under the pseudonym.
        """
        return identity.erased_at is not None if self._merged is None else owner in self._erased

    def add_events(self, events: Sequence[Event]) -> None:
        """Check the names of the players in these intact events."""
        matches: list[Event] = []
        named: set[int] = set()  # by corrections
        for event in events:
            if event.kind == Kind.MATCH:
                matches.append(event)
                continue
            named.update(_named(event))
            if event.position in self._renames:
                self._add_matches(matches)
                matches = []
                self._rename(self._renames[event.position])
        self._add_matches(matches)
        self.add_players(np.array([*named], np.int64))

    def _rename(self, player: int) -> None:
        self._renames_left[player] -= 1
        if self._names.get(player):
            self._sort(player)

    def _add_matches(self, matches: Sequence[Event]) -> None:
        if not matches:
            return
        packed = [bytes(event.players or b"") for event in matches]
        ids = np.frombuffer(b"".join(packed), ID).astype(np.int64)
        self.add_players(ids)
        ends = np.cumsum([0, *(len(players) // ID.itemsize for players in packed)])
        listed = ids.tolist()
        likely = [names[0] if (names := self._names[player]) else "" for player in listed]
        given = digests(_packed(matches), likely, ends, [bool(event.rated) for event in matches])
        for index, (event, digest) in enumerate(zip(matches, given, strict=True)):
            players = listed[ends[index] : ends[index + 1]]
            if digest != event.digest and all(self._names[player] for player in players):
                self._try_others(event, players)

    def _try_others(self, event: Event, players: Sequence[int]) -> None:
        """Look for the names under which the players of a match were reported."""
        # A match with two names of one player was reported as rated, and is stored as unrated.
        reported = [True, False] if not event.rated and len(set(players)) < len(players) else [bool(event.rated)]
        tried = contents(_packed([event] * len(reported)), reported)
        known, subject = [self._names[player] for player in players], f"match {event.id!r} at position {event.position}"
        for number, chosen in enumerate(_choices(known)):
            if number == self._most:
                self._unchecked.append(subject.removeprefix("match "))
                self._most = max(self._most // 2, FEWEST_TRIED)
                return
            if any(digest_of(content, chosen) == event.digest for content in tried):
                for player, name in zip(players, chosen, strict=True):  # these names are likely in the next match too
                    self._names[player].sort(key=lambda other: other != name)
                return
        self.damage.append(f"{subject} was reported with different names")


def _players_by_position(corrections: Sequence[Correction], kind: type[AboutPlayer]) -> dict[int, int]:
    """The player that each event of a kind is about, by position."""
    return {event.position: event.change.player for event in corrections if isinstance(event.change, kind)}


def _named(correction: Event) -> list[int]:
    """The ids of the players that a correction names or gives a starting rating."""
    body = json.loads(correction.body or "{}")
    named = [player for player in (body.get("player"), body.get("into")) if isinstance(player, int)]
    started = np.frombuffer(correction.players or b"", ID).tolist()
    return [player for player in (*named, *started) if 0 < player <= LARGEST]


def _choices(known: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield every choice of one of the known names of each slot: those with most of the likeliest names first."""
    several = [slot for slot, names in enumerate(known) if len(names) > 1]
    for size in range(len(several) + 1):
        for slots in combinations(several, size):
            for others in product(*(known[slot][1:] for slot in slots)):
                names = [listed[0] for listed in known]
                for slot, name in zip(slots, others, strict=True):
                    names[slot] = name
                yield names


def _packed(matches: Sequence[Event]) -> PackedMatches:
    return PackedMatches(
        [event.played_at or 0 for event in matches],
        [event.duration for event in matches],
        [bytes(event.teams or b"") for event in matches],
        [bytes(event.slots or b"") for event in matches],
    )


@dataclass(frozen=True)
class Verification:
    """The result of comparing a ladder with a replay of its ledger.

    damage       sentences about altered events or names, which only a backup repairs
    differences  sentences about differences from a replay; empty if there are none, or if damage prevents a replay. A
                 whole rebuild repairs them, unless there is damage too
    due          a correction awaits a rebuild from this position; None: none
    same_engine  False: other kernels than this version's computed the ratings; a rebuild updates them
    unchecked    sentences about what could not be checked, and why
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
            broken = (*damage, *names.damage)
            return Verification(ladder, head.position, 0, 0, (), head.due, True, broken, names.unchecked)
        listed = event_rows.read_corrections(store, head, head.position)
        whole = plan_of(listed)
        differences = _compare_corrections(head, whole)
        planned = whole.upto if is_repairable(head, whole.systems) else head.planned
        plan = whole if planned == whole.upto else plan_of(event for event in listed if event.position <= planned)
        roster, lines = Roster.empty(plan.rules_at(1)), LineCheck(store, head, plan)
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
        broken = (*more, *names.damage)
        return Verification(ladder, *sizes, different, head.due, same_engine, broken, names.unchecked)


def _name_check(store: Store, head: Head) -> NameCheck:
    """A check of names by the ladder's corrections, or without them if they cannot be read."""
    try:
        listed = event_rows.read_corrections(store, head, head.position)
        return NameCheck(store, plan_of(listed).merged, listed)
    except (DamageError, UnknownNameError):  # of a system: an altered name, or one that is not installed
        return NameCheck(store, None, [])


def _compare_corrections(head: Head, plan: Plan) -> list[str]:
    """Differences between the last correction and those that the ladder's row and its ratings name as the last."""
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
    """Differences of players' states, and damage: signs that the states include events missing from the ledger."""
    try:
        live = rating_rows.read_roster(store, head, plan.last_rules)
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
