"""Simple versions of eight known matchmakers for comparison, all with the signature of `propose`.

All keep parties together, fill teams, choose the region of each ticket's best ping, and split a match into teams by
`team_building`. Each docstring says how it uses rank filters. Those in KEEPING satisfy the filters of all players,
avoid lists and the caps on odds and ratings; the others do not. None respects roles or the uncertainty of a rating.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.lab.queue.rule_checks import widths
from evenmatch.lab.queue.team_building import (
    Group,
    QueueRow,
    by_region,
    fill,
    line_up,
    predicted_odds_of,
    proposals,
    split,
)
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.schedule import pick
from evenmatch.matchmaking.tickets import FOREVER, Whole, rows_of, starts
from evenmatch.policy import Policy

KEEPING = ("greedy", "exact-dp", "nearest", "batches")
BINS = 10
MORE = 1000.0  # value of one more match in percentiles of spread: beyond any sum that matters
WAVE = 15 * SECOND


class RivalMatchmaker(NamedTuple):
    """A comparison matchmaker and its one-line description."""

    propose: Callable[[Queue, int, Policy], Proposals]
    what: str


def others() -> dict[str, RivalMatchmaker]:
    """Create the comparison matchmakers by name; a new set for each run, since `waves` has state."""
    return {
        "fifo": RivalMatchmaker(fifo, "First in, first out; ranks are ignored."),
        "bins": RivalMatchmaker(bins, f"{BINS} fixed bins of percentiles; first in, first out in each."),
        "greedy": RivalMatchmaker(
            greedy, "Neighbours in percentile that satisfy all filters; the match with the smallest spread first."
        ),
        "exact-dp": RivalMatchmaker(
            exact_dp, "The same candidates as greedy; as many matches as possible, of those the closest, exactly."
        ),
        "nearest": RivalMatchmaker(
            nearest, "From the longest-waiting ticket, the nearest players whose filters all agree; like PlayFab."
        ),
        "batches": RivalMatchmaker(
            batches, "The closest run of sorted players with the longest-waiting ticket in it; like FlexMatch."
        ),
        "pivot": RivalMatchmaker(
            pivot, "The longest-waiting ticket is matched with the nearest players within its own widened filter."
        ),
        "waves": RivalMatchmaker(
            PercentileWaves(),
            f"Every {WAVE // SECOND} seconds the whole queue, sorted by percentile, is cut into matches.",
        ),
    }


def fifo(queue: Queue, now: int, policy: Policy) -> Proposals:
    """First in, first out, as Nakama without query properties or Open Match's first example."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, _by_age(line)):
        groups += fill(line, rows, policy, region)
    return proposals(line, now, policy, groups)


def bins(queue: Queue, now: int, policy: Policy) -> Proposals:
    """First in, first out within ten fixed percentile bands, like queues by league or bracket in many games."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, _by_age(line)):
        middle = (line.low[rows] + line.high[rows]) / 2.0
        band = np.minimum(middle * BINS // 100, BINS - 1)
        for number in np.unique(band):
            groups += fill(line, rows[band == number], policy, region)
    return proposals(line, now, policy, groups)


class PercentileWaves:
    """Every 15 seconds, cut the queue in percentile order into matches from the bottom up, like lichess.

    Filters are ignored; players left over at the top wait for the next wave.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def __call__(self, queue: Queue, now: int, policy: Policy) -> Proposals:
        """Return the matches of the wave that is due, if any; a time before the last call restarts the waves."""
        last, self._last = self._last, now
        line, groups = line_up(queue), list[Group]()
        if last is not None and now // WAVE > last // WAVE:
            for region, rows in by_region(line, np.arange(len(line))):
                groups += fill(line, rows, policy, region)
        return proposals(line, now, policy, groups)


def pivot(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match the longest-waiting ticket with the nearest ones in its own filter, like FlexMatch and PlayFab.

    Their rule expansions depend on the age of one ticket of the match; the filters of the others are ignored.
    """
    line, groups = line_up(queue), []
    bottoms, tops = _windows(line, now, policy)
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


def greedy(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match runs of percentile neighbours that satisfy all filters, the smallest spread first, in one pass."""
    line, groups = line_up(queue), []
    bottom, top = _windows(line, now, policy)
    for region, rows in by_region(line, np.arange(len(line))):
        first, stop, spread = _runs(line, rows, bottom[rows], top[rows], policy)
        taken = np.zeros(len(rows), np.bool_)
        for index in np.argsort(spread, kind="stable").tolist():
            run = slice(int(first[index]), int(stop[index]))
            if taken[run].any():
                continue
            group = _match_of(line, rows[run], policy, region)
            if group is not None:
                groups.append(group)
                taken[run] = True
    return proposals(line, now, policy, groups)


def exact_dp(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match the largest set of disjoint runs of neighbours that satisfy all filters; of these sets the closest.

    By dynamic programming. Runs that the cap on odds or an avoid list refuses are left out, and the rest chosen again.
    """
    line, groups = line_up(queue), []
    bottom, top = _windows(line, now, policy)
    for region, rows in by_region(line, np.arange(len(line))):
        first, stop, spread = _runs(line, rows, bottom[rows], top[rows], policy)
        last, value = np.full(len(rows), -1, np.int64), np.zeros(len(rows))
        last[first], value[first] = stop - 1, MORE - spread
        known: dict[int, Group | None] = {}
        while True:
            chosen = pick(last, value).tolist()
            for run in chosen:
                if run not in known:
                    known[run] = _match_of(line, rows[run : last[run] + 1], policy, region)
            refused = [run for run in chosen if known[run] is None]
            if not refused:
                break
            last[refused] = -1
        groups += [group for run in chosen if (group := known[run]) is not None]
    return proposals(line, now, policy, groups)


def nearest(queue: Queue, now: int, policy: Policy) -> Proposals:
    """From each ticket, the longest-waiting first, collect the nearest ones whose filters and its own all agree.

    As PlayFab with a difference rule that expands with waiting, but by the filters of all players of the match.
    """
    line, groups = line_up(queue), []
    bottom, top = _windows(line, now, policy)
    free = np.ones(len(line), np.bool_)
    for region, rows in by_region(line, np.arange(len(line))):
        for row in rows[np.lexsort((line.number[rows], line.queued[rows]))].tolist():
            near = _agreeing(line, rows[free[rows]], row, bottom, top) if free[row] else rows[:0]
            if line.size[near].sum() < policy.players:
                continue
            distance = np.abs(line.low[near] + line.high[near] - line.low[row] - line.high[row])
            match, seats = [row], int(line.size[row])
            for other in near[np.argsort(distance, kind="stable")].tolist():
                if other == row or seats + line.size[other] > policy.players:
                    continue
                if _keeps_filters(line, np.array([*match, other]), bottom, top):
                    match, seats = [*match, other], seats + int(line.size[other])
                if seats == policy.players:
                    break
            group = _match_of(line, np.sort(np.array(match)), policy, region) if seats == policy.players else None
            if group is not None:
                groups.append(group)
                free[group.rows] = False
    return proposals(line, now, policy, groups)


def batches(queue: Queue, now: int, policy: Policy) -> Proposals:
    """The closest run of players sorted by percentile around each ticket, the longest-waiting first; as FlexMatch.

    Runs consist of tickets whose filters and that of the first agree, and satisfy the filters of all.
    """
    line, groups = line_up(queue), []
    bottom, top = _windows(line, now, policy)
    free = np.ones(len(line), np.bool_)
    for region, rows in by_region(line, np.arange(len(line))):
        for row in rows[np.lexsort((line.number[rows], line.queued[rows]))].tolist():
            near = _agreeing(line, rows[free[rows]], row, bottom, top) if free[row] else rows[:0]
            if line.size[near].sum() < policy.players:
                continue
            first, stop, spread = _runs(line, near, bottom[near], top[near], policy)
            place = int(np.flatnonzero(near == row)[0])
            around = np.flatnonzero((first <= place) & (stop > place))
            for run in around[np.argsort(spread[around], kind="stable")].tolist():
                group = _match_of(line, near[first[run] : stop[run]], policy, region)
                if group is not None:
                    groups.append(group)
                    free[group.rows] = False
                    break
    return proposals(line, now, policy, groups)


def _agreeing(line: QueueRow, rows: Whole, row: int, bottom: Floats, top: Floats) -> Whole:
    """The rows whose filter and that of one row accept each other."""
    inside = (line.low[rows] >= bottom[row]) & (line.high[rows] <= top[row])
    agreeing: Whole = rows[(inside & (bottom[rows] <= line.low[row]) & (top[rows] >= line.high[row])) | (rows == row)]
    return agreeing


def _keeps_filters(line: QueueRow, match: Whole, bottom: Floats, top: Floats) -> bool:
    return bool(bottom[match].max() <= line.low[match].min() and top[match].min() >= line.high[match].max())


def _match_of(line: QueueRow, rows: Whole, policy: Policy, region: int) -> Group | None:
    """The match of these tickets; None if they cannot be split into teams, or a cap or an avoid list forbids it."""
    group = split(line, rows, policy, region)
    return group if group is not None and _allowed(line, group, policy) else None


def _by_age(line: QueueRow) -> Whole:
    return np.lexsort((line.number, line.queued))


def _windows(line: QueueRow, now: int, policy: Policy) -> tuple[Floats, Floats]:
    """Lowest and highest percentile that each ticket's filter accepts now."""
    wide = np.where(line.loose, widths(policy, (now - line.queued) / SECOND), -np.inf)
    return np.minimum(line.chosen_low, line.low - wide), np.maximum(line.chosen_high, line.high + wide)


def _enough(candidates: Whole, size: Whole, policy: Policy) -> Whole:
    """The first candidates: just enough if all are solo players, else twice as many."""
    wanted = policy.players if (size[candidates] == 1).all() else 2 * policy.players
    return candidates[: int(np.searchsorted(np.cumsum(size[candidates]), wanted)) + 1]


def _runs(line: QueueRow, rows: Whole, bottom: Floats, top: Floats, policy: Policy) -> tuple[Whole, Whole, Floats]:
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
    return first[allowed], stop[allowed], (high - low)[allowed]


def _allowed(line: QueueRow, group: Group, policy: Policy) -> bool:
    """Whether odds and ratings are within the policy's caps and no player meets one they avoid."""
    if policy.max_rating_spread is not None:
        rows = group.rows
        if line.rating_high[rows].max() - line.rating_low[rows].min() > policy.max_rating_spread:
            return False
    odds = predicted_odds_of(line, group, policy)
    if policy.max_odds is not None and max(odds, 1.0 - odds) > policy.max_odds:
        return False
    name = rows_of(line.named_first[group.rows], line.named_count[group.rows])
    if not len(name):
        return True
    avoided = line.named[name][line.met[name] == FOREVER]
    return not np.isin(avoided, line.players[rows_of(line.first[group.rows], line.size[group.rows])]).any()
