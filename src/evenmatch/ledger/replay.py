"""Rate a stretch of a ledger under a plan. Recording a match, importing a season and replaying all are this."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import llvmlite
import numba
import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns, Flags, History, Times
from evenmatch.ledger.codec import Ids, line_type, lines_of
from evenmatch.ledger.plan import Plan, Season, Start
from evenmatch.ledger.roster import Roster
from evenmatch.rating import check_range
from evenmatch.standings.activity import NEVER
from evenmatch.systems import loop
from evenmatch.systems.system import Records, Rules, System


@dataclass(frozen=True, eq=False)
class Block:
    """Matches of a ledger in order of position.

    positions  int64 (M,)     played_at  int64 (M,), as the sender told it
    columns    without players, whose ids are in `ids`, int64 (S,)
    rated      bool (M,)      what the sender wished
    """

    positions: Ids
    played_at: Times
    columns: Columns
    ids: Ids
    rated: Flags

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class Rated:
    """What became of a block.

    counted  bool (M,)  which matches were rated
    refused  bool (M,)  which ones would have been, were there rules that can rate them
    lines    of the counted matches' players, one after another;  ends  int64 (C + 1,): where each match's begin
    """

    counted: Flags
    refused: Flags
    lines: Records
    ends: NDArray[np.int64]

    def told(self) -> list[bytes]:
        """The lines of every match of the block; nothing where it was not rated."""
        width = self.lines.dtype.itemsize
        joined, ends = self.lines.tobytes(), (self.ends * width).tolist()
        pieces = (joined[a:b] for a, b in pairwise(ends))
        return [next(pieces) if yes else b"" for yes in self.counted.tolist()]


@cache
def engine_of(system: System) -> str:
    """What the bits of a rating depend on beside the ledger: the kernels, their compiler and the kind of machine."""
    parts = (loop.fingerprint(system), numba.__version__, llvmlite.__version__, platform.machine())
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def advance(
    roster: Roster,
    plan: Plan,
    block: Block,
    player: Callable[[int], str] = "#{}".format,
    match: Callable[[int], str] = "at position {}".format,
) -> Rated:
    """Rate a block into the roster, with whatever the plan has between its matches.

    The roster holds every player of the block who is known already, and everybody where the plan has a turn in it.
    player, match  names for ids and positions, for RatingRangeError where a rating leaves the range of its system
    """
    wanted = counts(plan, block)
    counted = wanted.copy()
    pieces: list[Records] = []
    sizes: list[NDArray[np.int64]] = []
    at = 0
    for border in [*plan.borders(roster.position + 1, int(block.positions[-1])), int(block.positions[-1])]:
        stop = int(np.searchsorted(block.positions, border, side="right"))
        if stop > at:
            rules = plan.rules_at(int(block.positions[at]))
            lines, size = _rate(roster, plan, rules, block, counted, at, stop, player, match)
            pieces.append(lines)
            sizes.append(size)
            at = stop
        roster.position = border
        pass_turns(roster, plan, border)
    system = plan.last_rules.system
    lines = np.concatenate(pieces) if pieces else np.zeros(0, line_type(system))
    ends = np.concatenate(([0], np.cumsum(np.concatenate(sizes) if sizes else np.zeros(0, np.int64))))
    return Rated(counted, wanted & ~counted, lines, ends.astype(np.int64))


def pass_turns(roster: Roster, plan: Plan, position: int) -> None:
    """What the plan has at this position, done to the roster."""
    rules = plan.rules_at(position + 1)
    for turn in plan.turns:
        if turn.position == position:
            if isinstance(turn, Season):
                if turn.factor != 1:
                    roster.reset(rules, turn.factor)
            else:
                _start(roster, plan, turn, rules)


def finish(roster: Roster, plan: Plan, last: int) -> None:
    """Whatever the plan has after the roster's position up to `last`, where no more matches are."""
    for border in plan.borders(roster.position + 1, last):
        pass_turns(roster, plan, border)
    roster.position = max(roster.position, last)


def _start(roster: Roster, plan: Plan, start: Start, rules: Rules) -> None:
    ids, first = np.unique(plan.identity(start.ids), return_index=True)
    rows = roster.admit(ids, rules)
    new = roster.tally["last_played"][rows] == NEVER
    roster.records[rows[new]] = rules.starting(start.ratings[first[new]])


def counts(plan: Plan, block: Block) -> Flags:
    """Which matches are rated: the sender wished it, nobody voided them, no player's ban voids them."""
    counted = block.rated & ~plan.voided(block.positions)
    outright = [player for player, ban in plan.bans.items() if not ban.refund]
    if outright:
        ids = plan.identity(block.ids)
        starts = block.columns.slot_start[block.columns.team_start]
        for player in outright:
            since = plan.bans[player].since
            there = np.add.reduceat(ids == player, starts[:-1], dtype=np.int64) > 0
            counted &= ~(there & (since is None or block.played_at >= since))
    return counted


def refunds(plan: Plan, block: Block) -> Flags:
    """Which slots keep their rating for having finished behind a player whose ban says so, and are not banned so."""
    guilty = np.zeros(len(block.ids), np.bool_)
    banned = [player for player, ban in plan.bans.items() if ban.refund]
    if not banned or not len(block):
        return guilty
    c, ids = block.columns, plan.identity(block.ids)
    slot_team = np.repeat(np.arange(len(c.place)), np.diff(c.slot_start))
    team_match = np.repeat(np.arange(len(block)), np.diff(c.team_start))
    ended = block.played_at[team_match[slot_team]]
    best = np.full(len(block), np.iinfo(np.int32).max)  # the best place of a banned player's team
    for player in banned:
        since = plan.bans[player].since
        theirs = (ids == player) & (since is None or ended >= since)
        guilty |= theirs
        teams = slot_team[theirs]
        np.minimum.at(best, team_match[teams], c.place[teams])
    return (c.place > best[team_match])[slot_team] & ~guilty


def _rate(
    roster: Roster,
    plan: Plan,
    rules: Rules,
    block: Block,
    counted: Flags,
    at: int,
    stop: int,
    player: Callable[[int], str],
    match: Callable[[int], str],
) -> tuple[Records, NDArray[np.int64]]:
    """Rate the counted matches from `at` up to `stop`: their lines, and how many slots each has."""
    chosen = at + np.flatnonzero(counted[at:stop])
    whole = History(block.columns._replace(player=np.zeros(len(block.ids), np.int32)))
    part = whole if len(chosen) == len(block) else whole.take(chosen)
    refused = np.array([number for number, _ in rules.system.refusals(part.columns, rules.parameters)], np.int64)
    if len(refused):  # a system that was chosen later cannot rate these: see ladders.change
        counted[chosen[refused]] = False
        chosen = np.delete(chosen, np.unique(refused))
        part = whole.take(chosen)
    if not len(chosen):
        return np.zeros(0, line_type(rules.system)), np.zeros(0, np.int64)
    slots = np.isin(np.repeat(np.arange(len(block)), np.diff(whole.match_slots)), chosen)
    ids = plan.identity(block.ids[slots])
    rows = roster.admit(ids, rules)
    time = np.maximum.accumulate(block.played_at[chosen])
    if roster.time is not None:
        time = np.maximum(time, roster.time)
    sent = part.columns.keep
    keep = sent & ~refunds(plan, block)[slots]
    history = History(part.columns._replace(time=time, player=rows.astype(np.int32), keep=keep))
    result = loop.replay(rules, history, roster.records, journal=True)
    check_range(
        rules,
        history,
        roster.records,
        result,
        lambda row: player(int(roster.ids[row])),
        lambda number: match(int(block.positions[chosen[number]])),
    )
    roster.records = result.state
    roster.count(history.columns, rows, sent)
    roster.time = int(time[-1])
    return lines_of(rules.system, history, result), np.diff(history.match_slots).astype(np.int64)
