"""Rebuild a ladder's ratings from its ledger into a new generation, and restore everything else that it derives.

The live generation is served until the new one is complete. Besides ratings, a rebuild restores appearances, settings
and seasons, and checks the rows of generations against the events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np

from evenmatch.corrections.effect import Effect, already_applied, rating_moves
from evenmatch.corrections.replay import (
    Progress,
    ReplayStep,
    ReplayTally,
    appearance_sums,
    begin,
    check_replay_size,
    replay,
    replay_apart,
    unchanged,
)
from evenmatch.errors import DamageError, InputError
from evenmatch.ladders.ladders import CorrectionRequest, PlannedCorrection, correct, is_done
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, ladder_rows, rating_rows
from evenmatch.ledger.block_rating import engine_of
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.database import Database
from evenmatch.ledger.event_rows import Scope
from evenmatch.ledger.events import (
    Correction,
    PlayerErased,
    PlayerRenamed,
    RulesChanged,
    SeasonOpened,
    SettingsChanged,
    write_body,
)
from evenmatch.ledger.ladder_rows import Season
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.rating_rows import StoredGeneration
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.recording.insertion import FIRST_PENDING, PendingMatches, ids_created
from evenmatch.systems.system import Rules

Systems = Mapping[int, str]  # as Plan.systems, but for all corrections


def is_repairable(head: Head, systems: Systems) -> bool:
    """True if column `planned` of the live generation is wrong but the last correction matches its system."""
    return systems.get(head.planned) != head.system == systems[max(systems)]


def generation_damage(store: Store, head: Head, systems: Systems, used: Collection[int]) -> list[str]:
    """Sentences about generations that have been in use and are missing or altered.

    used  the generations whose lines were returned for matches
    A wrong but repairable column `planned` of the live generation is not reported.
    """
    stored = {row.generation: row for row in rating_rows.read_generations(store, head.ladder)}
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
    """Restore settings, seasons, appearances and divisions that disagree with the events.

    An altered division is deleted; the player's percentile alone then decides the next one.
    """
    with database.write(patient=True) as store:
        head = store.lock(ladder)
        repair_settings(store, head)
        _repair_seasons(store, head)
        _repair_appearances(store, head)
        ladder_rows.delete_divisions_of(store, head.ladder, ladder_rows.read_damaged_divisions(store, head.ladder))


def repair_corrected(store: Store, head: Head) -> Head:
    """Correct the position of the last correction in the rows of the ladder and its generation; return the head.

    A position after the last event is left alone, because it shows that events were removed.
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
    """The position and settings of the last event with settings; None: a later version wrote them."""
    for correction in reversed(event_rows.read_corrections(store, head, head.position)):
        if isinstance(correction.change, RulesChanged | SettingsChanged):
            try:
                return correction.position, Settings.read(write_body(correction.change.settings))
            except DamageError:
                return None
    return None


def settings_difference(store: Store, head: Head) -> str | None:
    """How the settings in the ladder's row differ from its last event with settings; None: they are equal."""
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
    """A sentence if the table of seasons differs from the events that opened seasons; None: it does not."""
    same = ladder_rows.read_seasons(store, head.ladder) == _opened_seasons(store, head)
    return None if same else "the seasons are not those of the events that opened them"


def _opened_seasons(store: Store, head: Head) -> list[Season]:
    first, *later = event_rows.read_corrections(store, head, head.position)
    opened = [(ladder_rows.FIRST_TITLE, first)]
    opened += [(event.change.title, event) for event in later if isinstance(event.change, SeasonOpened)]
    closed_at = [*(event.recorded_at for _, event in opened[1:]), None]
    return [
        Season(number, title, event.position, event.recorded_at, closed)
        for number, ((title, event), closed) in enumerate(zip(opened, closed_at, strict=True), 1)
    ]


def _repair_seasons(store: Store, head: Head) -> None:
    if seasons_difference(store, head) is not None:
        ladder_rows.replace_seasons(store, head.ladder, _opened_seasons(store, head))


def _repair_appearances(store: Store, head: Head) -> None:
    sums = np.zeros(3, np.int64)
    everything = Scope(head.position)
    for block, _ in event_rows.read_blocks(store, head, 0, head.position, everything):
        sums += appearance_sums(block)
    if event_rows.sum_appearances(store, head.ladder) == tuple(sums.tolist()):
        return
    event_rows.delete_appearances(store, head.ladder)
    for block, _ in event_rows.read_blocks(store, head, 0, head.position, everything):
        sizes = np.diff(block.columns.slot_start[block.columns.team_start])
        slots = block.ids, np.repeat(block.positions, sizes), np.repeat(block.played_at, sizes)
        event_rows.insert_appearances(store, head.ladder, *slots)


AT_ONCE = 4000  # rows per transaction, so that others can write in between
COPIED = 10_000  # positions per transaction when the database copies lines
LEFT_FOR_SWAP = 2000  # new events left for the swap at most, unless they arrive faster than they are rated
ROUNDS = 10  # attempts to catch up before the swap
APART = 200_000  # the fewest events between two checkpoints of a replay


class RebuildResult(NamedTuple):
    """The result of a rebuild.

    generation  the new generation;  since  position from which it was rated again
    matches     number rated again;  changed  how many of them have new lines
    """

    generation: int
    since: int
    matches: int
    changed: int


def is_due(head: Head, plan: Plan) -> bool:
    """True if a correction awaits a rebuild, or if kernels of another version computed the ratings."""
    return head.due is not None or head.engine != engine_of(plan.last_rules.system)


def rebuild(
    database: Database,
    ladder: str,
    clock: Callable[[], int],
    *,
    whole: bool = False,
    progress: Progress | None = None,
    limit: int | None = None,
) -> RebuildResult | None:
    """Write a new generation of a ladder's ratings and swap it in; return None if no rebuild is due.

    whole  rebuild from the first event, due or not
    limit  the largest replay allowed, see replay_size; None: any
    Reads and writes continue meanwhile. Matches that arrive are rated before the swap. Raises ReplayTooLargeError.
    """
    while True:
        with database.write() as store:
            head = store.lock(ladder)
            if whole:
                head = repair_corrected(store, head)
                plan = plan_of(event_rows.read_corrections(store, head, head.corrected))
            else:
                plan = event_rows.read_plan(store, head, head.corrected)
            if not whole and not is_due(head, plan):
                return None
            since = _first_change(head, plan, 1 if whole else None)
            check_replay_size(store, head, since, limit)
            build = _open(database, store, head, plan, since, clock())
        if build.finish(progress, clock):
            if whole:
                repair(database, ladder)
            return build.result()


def correct_and_rebuild(
    database: Database,
    ladder: str,
    clock: Callable[[], int],
    request: CorrectionRequest,
    event_id: str,
    progress: Progress | None = None,
    note: Callable[[Store], None] = lambda _: None,
    *,
    limit: int | None = None,
) -> Effect:
    """Add a correction and the resulting ratings to the ledger atomically; return what changed.

    note   called in the transaction that adds it
    limit  the largest replay allowed, see replay_size; None: any
    Raises what `request` raises, ReplayTooLargeError, BadRowsError if a strict correction leaves matches unrated, and
    InputError if a rating would leave the range of the system.
    """
    while True:
        with database.write() as store:
            head = store.lock(ladder)
            if is_done(store, head, request, event_id):
                return already_applied(event_id, head.position)
            planned = request(store, head)
            if planned.since is None:
                players = rating_rows.count_states(store, head)
                correct(store, head, planned.change, event_id, clock())
                note(store)
                return Effect(planned.told, [], players, 0, 0, head.position)
            wanted = Correction(head.position + 1, planned.change)
            plan = plan_of([wanted], event_rows.read_plan(store, head, head.corrected))
            since = _first_change(head, plan, planned.since)
            check_replay_size(store, head, since, limit)
            matches = None
            if planned.insertion is not None:
                matches = PendingMatches.of(planned.insertion, ids_created(store, planned.insertion.batch))
            pending = PendingCorrection(request, planned, event_id, note, matches)
            build = _open(database, store, head, plan, since, clock(), pending)
        if build.finish(progress, clock):
            assert build.effect is not None
            return build.effect


class PendingCorrection(NamedTuple):
    """A correction that the swap adds to the ledger.

    request, wanted  the request, and the correction planned for it
    note     called in the transaction of the swap
    matches  recorded with it
    """

    request: CorrectionRequest
    wanted: PlannedCorrection
    event_id: str
    note: Callable[[Store], None]
    matches: PendingMatches | None = None


def _open(
    database: Database,
    store: Store,
    head: Head,
    plan: Plan,
    since: int,
    now: int,
    pending: PendingCorrection | None = None,
) -> RebuildRun:
    """Create the row of a new generation, with the next number, and return its builder."""
    system = plan.last_rules.system
    last = rating_rows.last_generation(store, head.ladder)
    rating_rows.insert_generation(
        store, head.ladder, last + 1, system.name, engine_of(system), planned=head.corrected, ready=False, now=now
    )
    return RebuildRun(database, head, plan, since, last + 1, pending)


def _first_change(head: Head, plan: Plan, since: int | None) -> int:
    """The first position whose ratings change: by a correction from `since` (None: by none), or by a due rebuild."""
    starts = [position for position in (since, head.due) if position is not None]
    if head.engine != engine_of(plan.last_rules.system) or not starts:
        return 1
    return min(*starts, head.position + 1)  # in an altered row `due` may be after the last event


@dataclass
class RebuildRun:
    """A generation being written: of `head`, by `plan`, different from the live one from `since`.

    effect  of the pending correction, once it is applied
    """

    database: Database
    head: Head
    plan: Plan
    since: int
    generation: int
    pending: PendingCorrection | None = None
    changed: int = 0
    effect: Effect | None = None

    def __post_init__(self) -> None:
        wanted = None if self.pending is None else self.pending.wanted
        self.tally = ReplayTally(self.head.name, self.plan, wanted, self.since)
        matches = None if self.pending is None else self.pending.matches
        self._inserted = [] if matches is None else matches.rows()
        self._inserted_lines = [b""] * len(self._inserted)

    def finish(self, progress: Progress | None, clock: Callable[[], int]) -> bool:
        """Write the generation and swap it in with its correction. Return False if another change made it obsolete."""
        try:
            self.write(progress)
            if self.swap(clock):
                self.tidy()
                return True
        except InputError:  # a rating out of the system's range, or a match that it cannot rate
            self.discard()
            raise
        self.discard()
        return False

    def result(self) -> RebuildResult:
        """The result of the rebuild."""
        return RebuildResult(self.generation, self.since, self.tally.rated, self.changed)

    def write(self, progress: Progress | None) -> None:
        """Write lines, checkpoints and states in small transactions, until only a few new events are left.

        These transactions are not durable at once; the swap is, and it makes all earlier ones durable.
        """
        with self.database.read() as store:
            self._systems = rating_rows.read_generation_systems(store, self.head.ladder)
            self.roster = begin(store, self.head, self.plan, self.since)
            self._kept = self.roster.position
        self._write_to(self.head, progress)
        self.tally.check()
        for _ in range(ROUNDS):  # the swap blocks other writers, so little must be left for it
            with self.database.read() as store:
                now = store.head(self.head.name)
            if now.position - self.roster.position < LEFT_FOR_SWAP:
                break
            self._write_to(now, progress)
        if self.pending is not None:
            with self.database.read() as store:
                self._before = _live_states(store, store.head(self.head.name))
        self._copy_before(progress)
        for part in _parts(self.roster):
            with self.database.write(durable=False) as store:
                rating_rows.put_states(store, self.head.ladder, self.generation, part, new=True)
                self._put_contexts(store, part.ids)

    def _write_to(self, head: Head, progress: Progress | None) -> None:
        """Write lines and checkpoints, from the roster's position up to a head."""
        for step in replay_apart(self.database, head, self.plan, self.roster, progress, self._inserted):
            self.tally.add(step)
            self._put_lines(step)
            if self.roster.position - self._kept >= max(APART, 4 * len(self.roster)):
                self._kept = self.roster.position
                with self.database.write(durable=False) as writing:
                    rating_rows.put_checkpoint(writing, self.head.ladder, self.generation, self.roster)

    def _put_lines(self, step: ReplayStep) -> None:
        """Write the lines of a step that differ from those first recorded."""
        rows = self._changed_lines(step)
        self.changed += len(rows)
        for first in range(0, len(rows), AT_ONCE):
            with self.database.write(durable=False) as store:
                rating_rows.insert_journal_lines(store, rows[first : first + AT_ONCE])

    def _changed_lines(self, step: ReplayStep) -> list[Row]:
        """The rows of a step's lines, from the first change, that differ from those first recorded."""
        positions, journal = step.block.positions, step.rated.journal_lines()
        is_pending = positions >= FIRST_PENDING
        for index in np.flatnonzero(is_pending).tolist():
            self._inserted_lines[int(positions[index]) - FIRST_PENDING] = journal[index]
        changed = ~unchanged(step, self._systems, self.plan) & (step.block.counts_at >= self.since) & ~is_pending
        lines = compress(journal, changed.tolist())
        positions = positions[changed].tolist()
        return [
            (self.head.ladder, self.generation, position, line) for position, line in zip(positions, lines, strict=True)
        ]

    def _copy_before(self, progress: Progress | None) -> None:
        """Copy the lines and checkpoints of the live generation before the first change."""
        for first in range(1, self.since, COPIED):
            if progress:
                progress(self.roster.position)  # may raise to cancel the rebuild
            last = min(first + COPIED, self.since) - 1
            with self.database.write(durable=False) as store:
                rating_rows.copy_lines_and_checkpoints(store, self.head, self.generation, first, last)
        with self.database.write(durable=False) as store:
            rating_rows.copy_inserted_lines(store, self.head, self.generation, self.since)

    def swap(self, clock: Callable[[], int]) -> bool:
        """Rate the latest matches and make the new generation the live one. Return False if it is obsolete."""
        with self.database.write() as store:
            now = store.lock(self.head.name)
            if not self._is_current(store, now):
                return False
            touched = self.catch_up(store, now)
            if self.pending is not None:
                self.effect = self._compare(store, now, self.pending.wanted.told, touched)
            roster, learned = self.roster, self.roster.ladders.tobytes()
            rating_rows.set_rated(store, now.ladder, self.generation, time=roster.time, learned=learned)
            packed = roster.sample.pack()
            rating_rows.set_ready(store, now.ladder, self.generation, planned=now.corrected, sample=packed)
            ladder_rows.set_generation(store, now.ladder, self.generation)
            if self.pending is not None:
                wanted = self.pending.wanted
                if self.pending.matches is not None:
                    head = store.head(self.head.name)
                    self.pending.matches.record(store, head, self._inserted_lines, clock(), self.generation)
                head = store.head(self.head.name)
                correct(store, head, wanted.change, self.pending.event_id, clock())
                self.pending.note(store)
        return True

    def _is_current(self, store: Store, now: Head) -> bool:
        """True if no other generation went live, this one still exists, and no later event invalidates it."""
        exists = rating_rows.generation_exists(store, self.head.ladder, self.generation)
        if now.generation != self.head.generation or not exists:
            return False
        later = event_rows.read_corrections(store, now, now.corrected, after=self.head.corrected)
        if not all(_keeps_ratings(event) for event in later):
            return False
        return self.pending is None or self.pending.request(store, now) == self.pending.wanted

    def catch_up(self, store: Store, now: Head) -> Ids:
        """Rate matches recorded since, inside the transaction of the swap; return their players."""
        touched = [np.empty(0, np.int64)]
        for step in replay(store, now, self.plan, self.roster):
            self.tally.add(step)
            rating_rows.insert_journal_lines(store, self._changed_lines(step))
            touched.append(step.block.ids)
        self.tally.check()
        ids = np.unique(self.plan.identity(np.concatenate(touched)))
        rating_rows.put_states(store, now.ladder, self.generation, self.roster.part(ids))
        self._put_contexts(store, ids)
        return ids

    def _put_contexts(self, store: Store, players: Ids) -> None:
        """Write what context columns have taught about their values and about these players."""
        if self.roster.contexts is not None:
            rating_rows.put_contexts(store, self.head.ladder, self.generation, self.roster.contexts.among(players))

    def _compare(self, store: Store, now: Head, told: str, touched: Ids) -> Effect:
        """The effect on the ratings that are live until this transaction commits.

        touched  players of matches recorded since the live states were read, whose states are read again
        """
        before = self._before
        latest = _live_states(store, now, touched)
        rows = before.admit(latest.ids, _live_rules(store, now))
        before.records[rows], before.tally[rows] = latest.records, latest.tally
        players = len(np.union1d(before.ids, self.roster.ids))
        moves = rating_moves(store, before, self.roster)
        return Effect(told, moves, players, self.tally.rated, self.tally.left_out, now.position)

    def discard(self) -> None:
        """Delete this generation, which never became the live one."""
        _delete(self.database, self.head.ladder, self.generation, earlier=False)

    def tidy(self) -> None:
        """Delete the lines, states and checkpoints of earlier generations, and the rows of unfinished ones."""
        _delete(self.database, self.head.ladder, self.generation, earlier=True)


def _delete(database: Database, ladder: int, generation: int, *, earlier: bool) -> None:
    """Delete lines, states and checkpoints of a generation (earlier: of all before it), in small transactions.

    The row of the generation itself is deleted if it has never been in use.
    """
    left = True
    while left:
        with database.write(durable=False) as store:
            left = rating_rows.delete_some_rows(store, ladder, generation, AT_ONCE, earlier=earlier)
    with database.write(durable=False) as store:
        rating_rows.delete_unready(store, ladder, generation, earlier=earlier)


def _live_rules(store: Store, head: Head) -> Rules:
    return event_rows.read_plan(store, head, head.planned).last_rules


def _live_states(store: Store, head: Head, ids: Ids | None = None) -> Roster:
    """The live states of all players, or of these."""
    return rating_rows.read_roster(store, head, _live_rules(store, head), ids)


def _keeps_ratings(correction: Correction) -> bool:
    change = correction.change
    if isinstance(change, SettingsChanged):
        return "context" not in change.changes
    return isinstance(change, PlayerRenamed | PlayerErased)


def _parts(roster: Roster) -> Iterator[Roster]:
    for first in range(0, len(roster), AT_ONCE):
        yield roster.part(roster.ids[first : first + AT_ONCE])
