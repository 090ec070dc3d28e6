"""Replay a ladder's events from a checkpoint on, and tell which lines are not those that were told."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, InputError, Problem, StoreError
from evenmatch.history import Flags
from evenmatch.ledger import people
from evenmatch.ledger.codec import line_type, same_ratings
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.replay import Block, Rated, advance, finish
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.service.ladders import Wish

Progress = Callable[[int], None]


class Step(NamedTuple):
    """A stretch of a replay: its matches, (id, generation, told) of each, and how they are rated now."""

    block: Block
    rows: list[Row]
    rated: Rated


def replay(store: Store, head: Head, plan: Plan, roster: Roster, progress: Progress | None = None) -> Iterator[Step]:
    """Rate everything after the roster's position, up to the head, into the roster."""
    for block, rows in store.blocks(head, roster.position, head.position):
        ids = dict(zip(block.positions.tolist(), [row[0] for row in rows], strict=True))
        rated = advance(roster, plan, block, lambda one: name_of(store, one), ids.__getitem__)
        yield Step(block, rows, rated)
        if progress:
            progress(roster.position)
    finish(roster, plan, head.position)


@dataclass
class Tally:
    """What a replay for a wish came to: how many matches it rated, and how many the rules could not rate.

    since  counted are matches from this position on
    """

    ladder: str
    plan: Plan
    wish: Wish | None
    since: int = 1
    rated: int = 0
    left_out: int = 0
    problems: list[Problem] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Count a stretch."""
        late = step.block.positions >= self.since
        self.rated += int((step.rated.counted & late).sum())
        self.left_out += int((step.rated.refused & late).sum())
        if self.wish is not None and self.wish.strict and step.rated.refused.any():
            rules = self.plan.last_rules
            columns = step.block.columns._replace(player=np.zeros(len(step.block.ids), np.int32))
            why = dict(rules.system.refusals(columns, rules.parameters))
            refused = np.flatnonzero(step.rated.refused).tolist()
            self.problems += [Problem(None, str(step.rows[at][0]), why[at]) for at in refused]

    def check(self) -> None:
        """Raise BadRowsError with what a strict wish leaves unrated, InputError where rules can rate nothing."""
        by = f"ladder {self.ladder!r} by {self.plan.last_rules.system.name}"
        if self.problems:
            error = BadRowsError(by, self.problems)
            error.outcome = "nothing was changed"
            raise error
        if self.wish is not None and self.wish.kind == Kind.CHANGED and self.left_out and not self.rated:
            raise InputError(f"{by}: none of its {self.left_out:,} matches can be rated; accepted are rules for some")


def name_of(store: Store, player: int) -> str:
    """A player's name, or their id where they have none."""
    return people.names_of(store, [player]).get(player, f"#{player}")


def begin(store: Store, head: Head, plan: Plan, since: int) -> Roster:
    """The roster that a replay of the events from `since` on starts from: the latest checkpoint before, or nobody."""
    kept = store.last_checkpoint(head, since)
    if kept is None:
        return Roster.empty(plan.rules_at(1))
    position, time, states = kept
    try:
        return Roster.unpack(states, plan.rules_at(since), position, time)
    except (zlib.error, ValueError) as error:
        told = f"the checkpoint of ladder {head.name!r} at position {position} is damaged ({error})"
        raise StoreError(f"{told}; `evenmatch rebuild --whole` makes all ratings anew without it") from error


def appearance_sums(block: Block) -> NDArray[np.int64]:
    """How many slots, and the sums of their players and positions: what the list of appearances must come to."""
    sizes = np.diff(block.columns.slot_start[block.columns.team_start])
    return np.array([len(block.ids), block.ids.sum(), (block.positions * sizes).sum()], np.int64)


def systems_of(store: Store, head: Head) -> dict[int, str]:
    """The system of each generation that a ladder ever had."""
    return dict(store.all("SELECT generation, system FROM generation WHERE ladder = ?", head.ladder))


def unchanged(step: Step, now: list[bytes], systems: Mapping[int, str], plan: Plan) -> Flags:
    """Which matches of a step have the lines that were first told, what was shown beside them left out."""
    system = plan.last_rules.system
    told = [bytes(row[2]) for row in step.rows]
    ours = [systems[row[1]] == system.name for row in step.rows]
    return same_lines(line_type(system), told, now, ours)


def same_lines(kind: np.dtype[np.void], told: list[bytes], now: list[bytes], ours: list[bool]) -> Flags:
    """Which matches have the same lines twice; those whose lines are of another system (not `ours`) have not."""
    same = np.array([len(a) == len(b) and mine for a, b, mine in zip(told, now, ours, strict=True)], np.bool_)
    both = np.flatnonzero(same & np.array([len(one) > 0 for one in now], np.bool_))
    if len(both):
        chosen = both.tolist()
        a, b = (np.frombuffer(b"".join([lines[at] for at in chosen]), kind) for lines in (told, now))
        sizes = np.array([len(now[at]) // kind.itemsize for at in chosen])
        starts = np.cumsum(sizes) - sizes
        same[both] = np.logical_and.reduceat(same_ratings(a, b), starts)
    return same
