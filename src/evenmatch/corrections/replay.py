"""Replay a ladder's events from a checkpoint, and compare the new lines with the recorded ones."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, ConflictError, DamageError, InputError, RowProblem
from evenmatch.history import Flags
from evenmatch.ladders.ladders import PlannedCorrection
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import Block, Rated, advance, finish
from evenmatch.ledger.codec import same_ratings
from evenmatch.ledger.database import Database
from evenmatch.ledger.event_rows import Scope, StoredMatches
from evenmatch.ledger.events import RulesChanged
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.systems.system import Records

Progress = Callable[[int], None]


class ReplayTooLargeError(ConflictError):
    """A replay is larger than its caller allows. Nothing was changed."""


class ReplayStep(NamedTuple):
    """One block of a replay: its matches, their stored lines, and their new ratings."""

    block: Block
    stored: StoredMatches
    rated: Rated


def replay(
    store: Store,
    head: Head,
    plan: Plan,
    roster: Roster,
    progress: Progress | None = None,
    *,
    lines: bool = True,
    pending: Sequence[Row] = (),
) -> Iterator[ReplayStep]:
    """Rate all matches after the roster's position up to the head, updating the roster in place.

    progress  called with the roster's position, first before anything is read
    lines     False: leave out the stored journal lines
    pending   see `event_rows.Scope`
    """
    read = partial(
        event_rows.read_stored_events, store, head, upto=head.position, scope=Scope(plan.upto, pending), lines=lines
    )
    yield from _replay(_blocks(read, roster.position), head, plan, roster, progress, lambda: nullcontext(store))


def replay_apart(
    database: Database,
    head: Head,
    plan: Plan,
    roster: Roster,
    progress: Progress | None = None,
    pending: Sequence[Row] = (),
) -> Iterator[ReplayStep]:
    """Like `replay`, with a transaction per block, so that none stays open while others write.

    Another thread reads ahead. Events are only added, so all blocks belong to one ledger.
    """

    def read(after: int) -> tuple[Block, StoredMatches] | None:
        with database.read() as store:
            return event_rows.read_stored_events(store, head, after, head.position, Scope(plan.upto, pending))

    with ThreadPoolExecutor(1, "evenmatch-replay") as reader:
        yield from _replay(_read_ahead(reader, read, roster.position), head, plan, roster, progress, database.read)


Read = Callable[[int], tuple[Block, StoredMatches] | None]  # the first block after a position


def _blocks(read: Read, after: int) -> Iterator[tuple[Block, StoredMatches]]:
    while (block := read(after)) is not None:
        after = int(block[0].counts_at[-1])
        yield block


def _read_ahead(reader: ThreadPoolExecutor, read: Read, after: int) -> Iterator[tuple[Block, StoredMatches]]:
    waiting = reader.submit(read, after)
    while (block := waiting.result()) is not None:
        waiting = reader.submit(read, int(block[0].counts_at[-1]))
        yield block


def _replay(
    blocks: Iterator[tuple[Block, StoredMatches]],
    head: Head,
    plan: Plan,
    roster: Roster,
    progress: Progress | None,
    reading: Callable[[], AbstractContextManager[Store]],
) -> Iterator[ReplayStep]:
    """Rate blocks. reading: opens a transaction in which to read a name for an error."""

    def name(player: int) -> str:
        with reading() as store:
            return name_of(store, player)

    if progress:
        progress(roster.position)
    for block, stored in blocks:

        def match(position: int, block: Block = block, stored: StoredMatches = stored) -> str:
            return stored.ids[int(np.flatnonzero(block.positions == position)[0])]

        rated = advance(roster, plan, block, name, match)
        yield ReplayStep(block, stored, rated)
        if progress:
            progress(roster.position)
    finish(roster, plan, head.position)


@dataclass
class ReplayTally:
    """Counts of a replay for a correction: matches that were rated, and matches that the rules could not rate.

    since  count only matches that count at this position or later
    """

    ladder: str
    plan: Plan
    planned: PlannedCorrection | None
    since: int = 1
    rated: int = 0
    left_out: int = 0
    problems: list[RowProblem] = field(default_factory=list)

    def add(self, step: ReplayStep) -> None:
        """Count the matches of a step."""
        late = step.block.counts_at >= self.since
        self.rated += int((step.rated.counted & late).sum())
        self.left_out += int((step.rated.refused & late).sum())
        if self.planned is not None and self.planned.strict and step.rated.refused.any():
            rules = self.plan.last_rules
            columns = step.block.columns._replace(player=np.zeros(len(step.block.ids), np.int32))
            reasons = dict(rules.system.refusals(columns, rules.parameters))
            refused = np.flatnonzero(step.rated.refused).tolist()
            self.problems += [RowProblem(None, step.stored.ids[index], reasons[index]) for index in refused]

    def check(self) -> None:
        """Raise BadRowsError if a strict correction leaves matches unrated, InputError if new rules can rate none."""
        by = f"ladder {self.ladder!r} by {self.plan.last_rules.system.name}"
        if self.problems:
            error = BadRowsError(by, self.problems)
            error.outcome = "nothing was changed"
            raise error
        if (
            self.planned is not None
            and isinstance(self.planned.change, RulesChanged)
            and self.left_out
            and not self.rated
        ):
            raise InputError(f"{by}: none of its {self.left_out:,} matches can be rated; choose other rules")


def name_of(store: Store, player: int) -> str:
    """A player's name, or "#" and their id if they have none."""
    return player_rows.names_of(store, [player])[player]


def begin(store: Store, head: Head, plan: Plan, since: int) -> Roster:
    """The roster to start a replay from `since`: the latest checkpoint before, or an empty roster.

    Raises DamageError if the checkpoint is damaged.
    """
    checkpoint, in_context = rating_rows.read_last_checkpoint(store, head, since), bool(plan.context_columns)
    if checkpoint is None:
        return Roster.empty(plan.rules_at(1), in_context=in_context)
    position, time, states = checkpoint
    try:
        return Roster.unpack(states, plan.rules_at(since), position, time, in_context=in_context)
    except (zlib.error, ValueError) as error:
        damage = f"the checkpoint of ladder {head.name!r} at position {position} is damaged ({error})"
        raise DamageError(f"{damage}; `evenmatch rebuild --whole` rebuilds all ratings without it") from error


def replay_size(store: Store, head: Head, since: int) -> int:
    """The number of events that a replay from `since` reads, plus the number of states that it writes."""
    replayed = head.position - rating_rows.last_checkpoint_position(store, head, before=since)
    return replayed + rating_rows.count_states(store, head)


def check_replay_size(store: Store, head: Head, since: int, limit: int | None) -> None:
    """Raise ReplayTooLargeError if a replay from `since` exceeds a limit (None: there is none)."""
    if limit is not None and (size := replay_size(store, head, since)) > limit:
        raise ReplayTooLargeError(f"ladder {head.name!r}: the replay has {size:,} steps; expected at most {limit:,}")


def appearance_sums(block: Block) -> NDArray[np.int64]:
    """The checksum of the appearances in a block, see `event_rows.appearance_sums`."""
    sizes = np.diff(block.columns.slot_start[block.columns.team_start])
    positions, played_at = np.repeat(block.positions, sizes), np.repeat(block.played_at, sizes)
    rated = np.repeat(block.rated, sizes)
    sums = event_rows.appearance_sums(block.ids[rated], positions[rated], played_at[rated])
    if not rated.all():  # only unrated matches can name a player twice
        once = np.unique(np.stack((block.ids[~rated], positions[~rated], played_at[~rated]), axis=1), axis=0)
        sums += event_rows.appearance_sums(once[:, 0], once[:, 1], once[:, 2])
    return sums


def unchanged(step: ReplayStep, systems: Mapping[int, str], plan: Plan) -> Flags:
    """Mask of the matches of a step whose ratings equal those first recorded. Shown standings are not compared."""
    system = plan.last_rules.system
    own = [generation for generation, name in systems.items() if name == system.name]
    return same_lines(step.stored.told, step.rated, np.isin(np.array(step.stored.generations), own))


def same_lines(
    recorded: Sequence[bytes],
    rated: Rated,
    ours: Flags,
    same_records: Callable[[Records, Records], Flags] = same_ratings,
) -> Flags:
    """A mask of the matches whose lines are equal in `recorded` and `rated`.

    ours  False for lines from another system, which are never equal
    same_records  compares single lines
    """
    sizes, kind = rated.sizes, rated.lines.dtype
    same: Flags = ours & (np.fromiter(map(len, recorded), np.int64, len(recorded)) == sizes)
    both = same & (sizes > 0)
    if both.any():
        before = np.frombuffer(b"".join(compress(recorded, both.tolist())), kind)
        starts = np.concatenate(([0], np.cumsum(sizes[both] // kind.itemsize)[:-1]))
        same[both] = np.logical_and.reduceat(same_records(before, rated.lines_of(both)), starts)
    return same
