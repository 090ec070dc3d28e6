"""Comparison matchmakers that begin with the longest-waiting ticket, as the matchmaking services of clouds do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.lab.queue.rival_filters import allowed, by_age, conflicts, windows
from evenmatch.lab.queue.rule_checks import widths
from evenmatch.lab.queue.run_matchmakers import find_runs
from evenmatch.lab.queue.team_building import Group, QueueRow, by_region, fill, line_up, proposals, split
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Whole, starts
from evenmatch.policy import Policy

BATCH = 25  # matches whose players are in one batch of `flexmatch`


def pivot(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match the longest-waiting ticket with the nearest ones in its own filter, like FlexMatch and PlayFab.

    Their rule expansions depend on the age of one ticket of the match; the filters of the others are ignored.
    """
    line, groups = line_up(queue), []
    bottoms, tops = windows(line, now, policy)
    free = np.ones(len(line), np.bool_)
    for region, rows in by_region(line, np.arange(len(line))):
        low, high, size, bottom, top = line.low[rows], line.high[rows], line.size[rows], bottoms[rows], tops[rows]
        first, stop = np.searchsorted(low, bottom), np.searchsorted(low, top, side="right")
        cumulative = starts(size)
        hopeful = cumulative[stop] - cumulative[first] >= policy.players
        for row in np.lexsort((line.number[rows], line.queued[rows])).tolist():
            if not hopeful[row] or not free[rows[row]]:
                continue
            nearby = np.arange(first[row], stop[row])
            nearby = nearby[free[rows[nearby]] & (high[nearby] <= top[row]) & (nearby != row)]
            if size[nearby].sum() + size[row] < policy.players:
                continue
            distance = np.abs(low[nearby] + high[nearby] - low[row] - high[row])
            candidates = np.concatenate(([row], nearby[np.argsort(distance, kind="stable")]))
            if groups_found := fill(line, rows[_enough(candidates, size, policy)], policy, region)[:1]:
                groups += groups_found
                free[groups_found[0].rows] = False
    return proposals(line, now, policy, groups)


def playfab(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Around the oldest ticket, add the nearest compatible ones within a spread that grows with its age, like PlayFab.

    The steps of PlayFab's documentation: the longest-waiting ticket is the seed, candidates are ranked by distance and
    added one by one, and a candidate that breaks a rule is skipped. The rule is a difference rule on percentiles: the
    spread of the group is at most the policy's step for the seed's age. Unlike PlayFab, all players' own filters,
    avoid lists and the cap on odds are respected, too. A group that is not full is dropped and its seed waits.
    """
    line, groups = line_up(queue), list[Group]()
    pool = _Pool(line, *windows(line, now, policy), _reach(line, now, policy), conflicts(line), policy)
    free = np.ones(len(line), np.bool_)
    for region, rows in by_region(line, np.arange(len(line))):
        lowest = np.maximum(pool.bottom, line.high - pool.reach)[rows]
        highest = np.minimum(pool.top, line.low + pool.reach)[rows]
        first = np.searchsorted(line.low[rows], lowest)
        stop = np.searchsorted(line.low[rows], highest, side="right")
        cumulative = starts(line.size[rows])
        hopeful = cumulative[np.maximum(first, stop)] - cumulative[first] >= policy.players
        for place in np.lexsort((line.number[rows], line.queued[rows])).tolist():
            if not hopeful[place] or not free[rows[place]]:
                continue
            candidates = rows[first[place] : stop[place]]
            chosen = pool.grow(int(rows[place]), candidates[free[candidates]])
            if chosen is None:
                continue
            for group in fill(line, chosen, policy, region):
                if allowed(line, group, policy):
                    groups.append(group)
                    free[chosen] = False
    return proposals(line, now, policy, groups)


@dataclass(frozen=True, eq=False)
class _Pool:
    """The waiting tickets, with what each of them accepts now.

    bottom, top  float64 (N,)  lowest and highest percentile that a ticket accepts
    reach        float64 (N,)  allowed spread of a match whose oldest ticket this is
    apart        rows that must not meet, by row
    """

    line: QueueRow
    bottom: Floats
    top: Floats
    reach: Floats
    apart: Mapping[int, set[int]]
    policy: Policy

    def grow(self, anchor: int, candidates: Whole) -> Whole | None:
        """Rows of a full match around the anchor, the nearest first; None if the candidates do not fill it."""
        line, policy = self.line, self.policy
        if line.high[anchor] - line.low[anchor] > self.reach[anchor]:  # a party that is itself too wide yet
            return None
        near = candidates[
            (self.bottom[candidates] <= line.low[anchor])
            & (self.top[candidates] >= line.high[anchor])
            & (line.high[candidates] <= self.top[anchor])
            & (candidates != anchor)
        ]
        if line.size[near].sum() + line.size[anchor] < policy.players:
            return None
        distance = np.abs(line.low[near] + line.high[near] - line.low[anchor] - line.high[anchor])
        growing = _GrowingMatch(self, anchor)
        for row in near[np.argsort(distance, kind="stable")].tolist():
            growing.add(row)
            if not growing.missing:
                return np.array(growing.rows, np.int64)
        return None


class _GrowingMatch:
    """A match that takes tickets one by one, as long as every rule holds for the whole of it."""

    def __init__(self, pool: _Pool, anchor: int) -> None:
        self.rows: list[int] = []
        self.missing = pool.policy.players
        self._pool = pool
        self._reach = float(pool.reach[anchor])
        self._room = [pool.policy.team_size] * pool.policy.teams
        self._low, self._high = np.inf, -np.inf
        self._bottom, self._top = -np.inf, np.inf
        self._rating_low, self._rating_high = np.inf, -np.inf
        self.add(anchor)

    def add(self, row: int) -> None:
        """Add a ticket unless a rule forbids it or no team has room for it."""
        pool, line = self._pool, self._pool.line
        size, most = int(line.size[row]), pool.policy.max_rating_spread
        low, high = min(self._low, line.low[row]), max(self._high, line.high[row])
        bottom, top = max(self._bottom, pool.bottom[row]), min(self._top, pool.top[row])
        rating_low = min(self._rating_low, line.rating_low[row])
        rating_high = max(self._rating_high, line.rating_high[row])
        team = next((index for index, room in enumerate(self._room) if room >= size), None)
        if (
            team is None
            or high - low > self._reach
            or low < bottom
            or high > top
            or (most is not None and rating_high - rating_low > most)
            or not pool.apart.get(row, set()).isdisjoint(self.rows)
        ):
            return
        self._low, self._high, self._bottom, self._top = low, high, bottom, top
        self._rating_low, self._rating_high = rating_low, rating_high
        self._room[team] -= size
        self.missing -= size
        self.rows.append(row)


def flexmatch(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Cut the queue, the oldest first, into batches, and match each batch in percentile order, like FlexMatch.

    FlexMatch with `batchingPreference: sorted` and `expansionAgeSelection: oldest`. In a batch the oldest ticket is the
    anchor. It gets the run of consecutive sorted tickets with the smallest spread that contains it and lies within the
    policy's step to both sides of it; the step is that of the oldest ticket of the run. Unlike FlexMatch, all players'
    own filters, avoid lists and the cap on odds are respected, too. How large FlexMatch's batches are is not published.
    """
    line, groups = line_up(queue), list[Group]()
    bottom, top = windows(line, now, policy)
    reach = _reach(line, now, policy)
    for region, rows in by_region(line, by_age(line)):
        for begin in range(0, len(rows), BATCH * policy.players):
            batch = rows[begin : begin + BATCH * policy.players]
            groups += _match_batch(line, batch, (bottom, top, reach), policy, region)
    return proposals(line, now, policy, groups)


def _match_batch(
    line: QueueRow, batch: Whole, limits: tuple[Floats, Floats, Floats], policy: Policy, region: int
) -> list[Group]:
    """Matches of one batch; its rows are in order of age."""
    (bottom, top, reach), groups = limits, list[Group]()
    remaining = np.sort(batch)
    first, stop, spread = find_runs(line, remaining, bottom[remaining], top[remaining], policy)
    for anchor in batch.tolist():
        place = int(np.searchsorted(remaining, anchor))
        if place == len(remaining) or remaining[place] != anchor or not (first <= place).any():
            continue
        around = np.flatnonzero((first <= place) & (place < stop))
        for index in around[np.argsort(spread[around], kind="stable")].tolist():
            run = remaining[first[index] : stop[index]]
            step = reach[run].max()
            if line.low[anchor] - line.low[run].min() > step or line.high[run].max() - line.high[anchor] > step:
                continue
            group = split(line, run, policy, region)
            if group is not None and allowed(line, group, policy):
                groups.append(group)
                remaining = np.setdiff1d(remaining, run)
                first, stop, spread = find_runs(line, remaining, bottom[remaining], top[remaining], policy)
                break
    return groups


def _reach(line: QueueRow, now: int, policy: Policy) -> Floats:
    """Width of the policy's step for each ticket's age, whether its own filter widens or not."""
    return widths(policy, (now - line.queued) / SECOND)


def _enough(candidates: Whole, size: Whole, policy: Policy) -> Whole:
    """The first candidates: just enough if all are solo players, else twice as many."""
    wanted = policy.players if (size[candidates] == 1).all() else 2 * policy.players
    return candidates[: int(np.searchsorted(np.cumsum(size[candidates]), wanted)) + 1]
