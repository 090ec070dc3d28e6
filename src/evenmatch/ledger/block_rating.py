"""Rate a range of ledger events under a plan, whether to record a match, import a season or replay a ledger."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import llvmlite
import numba
import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns, Flags, History, Times
from evenmatch.ledger.codec import Ids, line_type, lines_of
from evenmatch.ledger.events import RatingsDecayed, RatingsStarted, SeasonOpened
from evenmatch.ledger.idle_decay import lower
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.roster import TALLY, Roster
from evenmatch.rating import check_range
from evenmatch.standings.activity import NEVER
from evenmatch.standings.placement import RatingSample
from evenmatch.systems import loop
from evenmatch.systems.fingerprint import fingerprint
from evenmatch.systems.ladder_records import join_records
from evenmatch.systems.system import Records, Rules, System


@dataclass(frozen=True, eq=False)
class Block:
    """Matches of a ledger in the order in which they count.

    positions  int64 (M,)     played_at  int64 (M,), as reported
    columns    with empty `player`; the players' ids are in `ids`, int64 (S,)
    rated      bool (M,)      True if the report requested a rated match
    counts_at  int64 (M,)     ascending: a match's own position, or for an inserted one the position before which it
               counts
    context    text (M,), see match_context.write_context
    """

    positions: Ids
    played_at: Times
    columns: Columns
    ids: Ids
    rated: Flags
    counts_at: Ids
    context: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class Rated:
    """The result of rating a block.

    counted  bool (M,)  matches that were rated
    refused  bool (M,)  matches to rate that the system in force cannot rate
    lines    journal lines of the players of the counted matches;  ends  int64 (C + 1,): offsets of each match's lines
    """

    counted: Flags
    refused: Flags
    lines: Records
    ends: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of bytes of the journal lines of every match of the block; 0: it was not rated."""
        sizes = np.zeros(len(self.counted), np.int64)
        sizes[self.counted] = np.diff(self.ends) * self.lines.dtype.itemsize
        return sizes

    def lines_of(self, matches: Flags) -> Records:
        """The journal lines of the counted matches among these, joined."""
        if matches[self.counted].all():
            return self.lines
        chosen: Records = self.lines[np.repeat(matches[self.counted], np.diff(self.ends))]
        return chosen

    def journal_lines(self) -> list[bytes]:
        """The journal lines of every match of the block; empty bytes for a match that was not rated."""
        width = self.lines.dtype.itemsize
        joined, ends = self.lines.tobytes(), (self.ends * width).tolist()
        pieces = (joined[a:b] for a, b in pairwise(ends))
        return [next(pieces) if counted else b"" for counted in self.counted.tolist()]


@cache
def engine_of(system: System) -> str:
    """Fingerprint of everything besides the ledger that affects the bits of a state: kernels, compiler, machine."""
    parts = (fingerprint(system), numba.__version__, llvmlite.__version__, platform.machine(), *TALLY.names)  # type: ignore[misc]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def advance(
    roster: Roster,
    plan: Plan,
    block: Block,
    player: Callable[[int], str] = "#{}".format,
    match: Callable[[int], str] = "at position {}".format,
) -> Rated:
    """Rate a block and update the roster, including the turns of the plan between its matches.

    The roster must contain every known player of the block, and all players if the plan has a turn within it.
    player, match  functions that name an id and a position in the message of RatingRangeError
    """
    wanted = counts(plan, block)
    counted = wanted.copy()
    pieces: list[Records] = []
    sizes: list[NDArray[np.int64]] = []
    start = 0
    for border in [*plan.borders(roster.position + 1, int(block.counts_at[-1])), int(block.counts_at[-1])]:
        stop = int(np.searchsorted(block.counts_at, border, side="right"))
        while stop > start:
            first = int(block.counts_at[start])
            if first >= roster.sample.next_at:
                roster.take_sample(first)
            until = min(stop, int(np.searchsorted(block.counts_at, roster.sample.next_at)))
            lines, size = _rate(roster, plan, plan.rules_at(first), block, counted, start, until, player, match)
            pieces.append(lines)
            sizes.append(size)
            start = until
        roster.position = border
        pass_turns(roster, plan, border)
    system = plan.last_rules.system
    lines = np.zeros(0, line_type(system)) if not pieces else pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    ends = np.concatenate(([0], np.cumsum(np.concatenate(sizes) if sizes else np.zeros(0, np.int64))))
    return Rated(counted, wanted & ~counted, lines, ends.astype(np.int64))


def pass_turns(roster: Roster, plan: Plan, position: int) -> None:
    """Apply the turn of the plan at this position to the roster, if there is one."""
    turn = plan.turn_at.get(position)
    if turn is None:
        return
    rules = plan.rules_at(position + 1)
    match turn.change:
        case SeasonOpened(factor=factor) if factor != 1:
            roster.reset(rules, factor)
            roster.sample = RatingSample.none(position)
        case RatingsStarted() as start:
            _start(roster, plan, start, rules)
        case RatingsDecayed() as decay:
            lower(roster.records, roster.tally, decay, rules)


def finish(roster: Roster, plan: Plan, last: int) -> None:
    """Apply the turns of the plan after the roster's position up to `last`, where there are no more matches."""
    for border in plan.borders(roster.position + 1, last):
        pass_turns(roster, plan, border)
    roster.position = max(roster.position, last)


def _start(roster: Roster, plan: Plan, start: RatingsStarted, rules: Rules) -> None:
    ids, first = np.unique(plan.identity(start.ids), return_index=True)
    rows = roster.admit(ids, rules)
    new = roster.tally["last_played"][rows] == NEVER
    roster.records[rows[new]] = rules.starting(start.ratings[first[new]])


def counts(plan: Plan, block: Block) -> Flags:
    """Mask of matches to rate: reported as rated, and not voided by a correction or by a player's ban."""
    counted = block.rated & ~plan.voided(block.positions)
    voiding = [player for player, ban in plan.bans.items() if ban.rule == "void"]
    if voiding:
        ids = plan.identity(block.ids)
        starts = block.columns.slot_start[block.columns.team_start]
        for player in voiding:
            since = plan.bans[player].since
            appears = np.add.reduceat(ids == player, starts[:-1], dtype=np.int64) > 0
            counted &= ~(appears & (since is None or block.played_at >= since))
    return counted


def refunds(plan: Plan, block: Block) -> Flags:
    """Mask of slots that keep their rating: finished behind a player banned with refund, and not such a player."""
    offending = np.zeros(len(block.ids), np.bool_)
    banned = [player for player, ban in plan.bans.items() if ban.rule == "refund"]
    if not banned or not len(block):
        return offending
    c, ids = block.columns, plan.identity(block.ids)
    slot_team = np.repeat(np.arange(len(c.place)), np.diff(c.slot_start))
    team_match = np.repeat(np.arange(len(block)), np.diff(c.team_start))
    ended = block.played_at[team_match[slot_team]]
    best = np.full(len(block), np.iinfo(np.int32).max)  # the best place of a banned player's team
    for player in banned:
        since = plan.bans[player].since
        appearances = (ids == player) & (since is None or ended >= since)
        offending |= appearances
        teams = slot_team[appearances]
        np.minimum.at(best, team_match[teams], c.place[teams])
    return (c.place > best[team_match])[slot_team] & ~offending


def _rate(
    roster: Roster,
    plan: Plan,
    rules: Rules,
    block: Block,
    counted: Flags,
    start: int,
    stop: int,
    player: Callable[[int], str],
    match: Callable[[int], str],
) -> tuple[Records, NDArray[np.int64]]:
    """Rate the counted matches with index `start` up to `stop`: their lines, and the number of slots of each."""
    chosen = start + np.flatnonzero(counted[start:stop])
    whole = History(block.columns._replace(player=np.zeros(len(block.ids), np.int32)))
    part = whole if len(chosen) == len(block) else whole.take(chosen)
    refused = np.array([index for index, _ in rules.system.refusals(part.columns, rules.parameters)], np.int64)
    if len(refused):  # a system chosen later cannot rate these: see ladders.ChangeRules
        counted[chosen[refused]] = False
        chosen = np.delete(chosen, np.unique(refused))
        part = whole.take(chosen)
    if not len(chosen):
        return np.zeros(0, line_type(rules.system)), np.zeros(0, np.int64)
    if len(chosen) == len(block):
        slots = np.ones(len(block.ids), np.bool_)
    else:
        among = np.zeros(len(block), np.bool_)
        among[chosen] = True
        slots = np.repeat(among, np.diff(whole.match_slots))
    ids = plan.identity(block.ids[slots])
    rows = roster.admit(ids, rules)
    time = np.maximum.accumulate(block.played_at[chosen])
    if roster.time is not None:
        time = np.maximum(time, roster.time)
    sent = part.columns.keep
    keep = sent & ~refunds(plan, block)[slots]
    history = History(part.columns._replace(time=time, player=rows.astype(np.int32), keep=keep))
    contexts = roster.contexts
    ladders, offsets = roster.ladders, None
    if contexts is not None:
        texts = [block.context[index] for index in chosen.tolist()]
        history = contexts.placed(history, plan.context_columns, texts, ids, rules)
        ladders, offsets = join_records(ladders, contexts.values), contexts.offsets
    result = loop.replay(rules, history, roster.records, ladders, offsets, journal=True)
    check_range(
        rules,
        history,
        roster.records,
        result,
        lambda row: player(int(roster.ids[row])),
        lambda index: match(int(block.positions[chosen[index]])),
    )
    roster.records, roster.ladders = result.state, result.ladders[:2]
    if contexts is not None:
        contexts.values, contexts.offsets = result.ladders[2:], result.offsets
    assert result.journal is not None
    roster.count(history.columns, rows, sent, result.journal)
    roster.time = int(time[-1])
    return lines_of(rules.system, history, result), np.diff(history.match_slots).astype(np.int64)
