"""Replay a ladder's events from a checkpoint on, and compare the new lines with the recorded ones."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, InputError, RowProblem, StoreError
from evenmatch.history import Flags
from evenmatch.ledger.block_rating import Block, Rated, advance, finish
from evenmatch.ledger.codec import line_type, same_ratings
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import checkpoints, events, player_identities
from evenmatch.service.ladders import PlannedCorrection

Progress = Callable[[int], None]


class ReplayStep(NamedTuple):
    """One block of a replay: its matches, a row (id, generation, told, …) of each, and their new ratings."""

    block: Block
    rows: list[Row]
    rated: Rated


def replay(
    store: Store, head: Head, plan: Plan, roster: Roster, progress: Progress | None = None
) -> Iterator[ReplayStep]:
    """Rate all matches after the roster's position up to the head, updating the roster in place."""
    for block, rows in events.read_blocks(store, head, roster.position, head.position):
        ids = dict(zip(block.positions.tolist(), [row[0] for row in rows], strict=True))
        rated = advance(roster, plan, block, lambda player: name_of(store, player), ids.__getitem__)
        yield ReplayStep(block, rows, rated)
        if progress:
            progress(roster.position)
    finish(roster, plan, head.position)


@dataclass
class ReplayTally:
    """Counts of a replay for a correction: matches that it rated, and matches that the rules could not rate.

    since  only matches from this position on are counted
    """

    ladder: str
    plan: Plan
    wish: PlannedCorrection | None
    since: int = 1
    rated: int = 0
    left_out: int = 0
    problems: list[RowProblem] = field(default_factory=list)

    def add(self, step: ReplayStep) -> None:
        """Count the matches of a step."""
        late = step.block.positions >= self.since
        self.rated += int((step.rated.counted & late).sum())
        self.left_out += int((step.rated.refused & late).sum())
        if self.wish is not None and self.wish.strict and step.rated.refused.any():
            rules = self.plan.last_rules
            columns = step.block.columns._replace(player=np.zeros(len(step.block.ids), np.int32))
            reasons = dict(rules.system.refusals(columns, rules.parameters))
            refused = np.flatnonzero(step.rated.refused).tolist()
            self.problems += [RowProblem(None, str(step.rows[index][0]), reasons[index]) for index in refused]

    def check(self) -> None:
        """Raise BadRowsError if a strict correction leaves matches unrated, InputError if new rules can rate none."""
        by = f"ladder {self.ladder!r} by {self.plan.last_rules.system.name}"
        if self.problems:
            error = BadRowsError(by, self.problems)
            error.outcome = "nothing was changed"
            raise error
        if self.wish is not None and self.wish.kind == Kind.CHANGED and self.left_out and not self.rated:
            raise InputError(f"{by}: none of its {self.left_out:,} matches can be rated; choose other rules")


def name_of(store: Store, player: int) -> str:
    """A player's name, or "#" and their id if they have none."""
    return player_identities.names_of(store, [player]).get(player, f"#{player}")


def begin(store: Store, head: Head, plan: Plan, since: int) -> Roster:
    """The roster from which to replay the events from `since` on: the latest checkpoint before, or an empty one.

    Raises StoreError if the checkpoint is damaged.
    """
    checkpoint = checkpoints.read_last(store, head, since)
    if checkpoint is None:
        return Roster.empty(plan.rules_at(1))
    position, time, states = checkpoint
    try:
        return Roster.unpack(states, plan.rules_at(since), position, time)
    except (zlib.error, ValueError) as error:
        damage = f"the checkpoint of ladder {head.name!r} at position {position} is damaged ({error})"
        raise StoreError(f"{damage}; `evenmatch rebuild --whole` rebuilds all ratings without it") from error


def appearance_sums(block: Block) -> NDArray[np.int64]:
    """The number of appearances and the sums of their players and positions, as a checksum for their table."""
    sizes = np.diff(block.columns.slot_start[block.columns.team_start])
    sums = np.array([len(block.ids), block.ids.sum(), (block.positions * sizes).sum()], np.int64)
    if not block.rated.all():  # only in these can a player be named twice, who appeared once
        unrated = np.repeat(~block.rated, sizes)
        pairs = np.stack((block.ids[unrated], np.repeat(block.positions, sizes)[unrated]), axis=1)
        once = np.unique(pairs, axis=0)
        sums -= np.array([len(pairs) - len(once), *(pairs.sum(axis=0) - once.sum(axis=0))], np.int64)
    return sums


def unchanged(step: ReplayStep, now: list[bytes], systems: Mapping[int, str], plan: Plan) -> Flags:
    """A mask of the matches of a step whose ratings equal those first recorded (shown standings are not compared)."""
    system = plan.last_rules.system
    recorded = [bytes(row[2]) for row in step.rows]
    ours = [systems[row[1]] == system.name for row in step.rows]
    return same_lines(line_type(system), recorded, now, ours)


def same_lines(kind: np.dtype[np.void], told: list[bytes], now: list[bytes], ours: list[bool]) -> Flags:
    """A mask of the matches whose lines are equal in `told` and `now`; False if told by another system (not `ours`)."""
    same = np.array([len(a) == len(b) and own for a, b, own in zip(told, now, ours, strict=True)], np.bool_)
    both = np.flatnonzero(same & np.array([len(lines) > 0 for lines in now], np.bool_))
    if len(both):
        chosen = both.tolist()
        a, b = (np.frombuffer(b"".join([lines[match] for match in chosen]), kind) for lines in (told, now))
        sizes = np.array([len(now[match]) // kind.itemsize for match in chosen])
        starts = np.cumsum(sizes) - sizes
        same[both] = np.logical_and.reduceat(same_ratings(a, b), starts)
    return same
