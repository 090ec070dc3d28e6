"""Comparison matchmakers built on runs: neighbours in percentile that fill a match and satisfy all filters."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.queue.rival_filters import allowed, windows
from evenmatch.lab.queue.team_building import Group, QueueRow, by_region, line_up, proposals, split
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.schedule import pick
from evenmatch.matchmaking.tickets import Whole, starts
from evenmatch.policy import Policy

WIDEST = 100.0  # percentiles: largest possible spread of a match


def greedy(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match runs of percentile neighbours that satisfy all filters, the smallest spread first, in one pass."""
    line, groups = line_up(queue), []
    bottom, top = windows(line, now, policy)
    for region, rows in by_region(line, np.arange(len(line))):
        first, stop, spread = find_runs(line, rows, bottom[rows], top[rows], policy)
        taken = np.zeros(len(rows), np.bool_)
        for index in np.argsort(spread, kind="stable").tolist():
            run = slice(int(first[index]), int(stop[index]))
            if taken[run].any():
                continue
            group = split(line, rows[run], policy, region)
            if group is not None and allowed(line, group, policy):
                groups.append(group)
                taken[run] = True
    return proposals(line, now, policy, groups)


def exact_dp(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match the disjoint runs of percentile neighbours with the most matches, and among those the least total spread.

    An exact optimum over the runs that `greedy` considers, by weighted interval scheduling. It looks at one tick alone:
    who waits longest does not count, and a match is made as soon as it is possible.
    """
    line, groups = line_up(queue), list[Group]()
    bottom, top = windows(line, now, policy)
    for region, rows in by_region(line, np.arange(len(line))):
        first, stop, spread = find_runs(line, rows, bottom[rows], top[rows], policy)
        last, value = np.full(len(rows), -1), np.zeros(len(rows))
        last[first] = stop - 1
        value[first] = WIDEST * (len(rows) + 1) - spread  # one match more is worth more than all spreads together
        groups += _schedule(line, rows, last, value, policy, region)
    return proposals(line, now, policy, groups)


def _schedule(line: QueueRow, rows: Whole, last: Whole, value: Floats, policy: Policy, region: int) -> list[Group]:
    """The best disjoint runs whose parties fit and whose odds and players are allowed; changes `last`.

    Only chosen runs are checked, and the choice is repeated without those refused, which gives the same optimum as
    checking all runs beforehand.
    """
    accepted: dict[int, Group] = {}
    while True:
        chosen = pick(last, value).tolist()
        for start in chosen:
            if start not in accepted:
                group = split(line, rows[start : last[start] + 1], policy, region)
                if group is not None and allowed(line, group, policy):
                    accepted[start] = group
                else:
                    last[start] = -1
        if all(start in accepted for start in chosen):
            return [accepted[start] for start in chosen]


def find_runs(line: QueueRow, rows: Whole, bottom: Floats, top: Floats, policy: Policy) -> tuple[Whole, Whole, Floats]:
    """Start, end and spread of the runs of neighbours that fill a match and satisfy all filters."""
    cumulative = starts(line.size[rows])
    first = np.arange(len(rows))
    stop = np.searchsorted(cumulative, cumulative[:-1] + policy.players)
    full = cumulative[np.minimum(stop, len(rows))] == cumulative[:-1] + policy.players
    first, stop = first[full], stop[full]
    if not len(first):
        return first, stop, np.empty(0)
    pairs = np.column_stack((first, stop)).ravel()

    def highest(values: Floats) -> Floats:
        maxima: Floats = np.maximum.reduceat(np.append(values, 0.0), pairs)[::2]  # a run may end after the last row
        return maxima

    low, high = -highest(-line.low[rows]), highest(line.high[rows])
    allowed = (highest(bottom) <= low) & (-highest(-top) >= high)
    if policy.max_rating_spread is not None:
        allowed &= highest(line.rating_high[rows]) + highest(-line.rating_low[rows]) <= policy.max_rating_spread
    return first[allowed], stop[allowed], (high - low)[allowed]
