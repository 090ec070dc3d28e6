"""What others do, in simple versions of our own: five matchmakers to compare with, all with the signature of `propose`.

They keep parties together, fill teams, play in the region where each ticket's ping is best, and split a match into
teams in the same way (queue_teams). They look at rank filters as far as said; avoid lists, roles and caps on odds are
looked at by `greedy` alone (roles by none), and an uncertain player is a point to all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.queue_matches import SECOND
from evenmatch.lab.queue_rules import widths
from evenmatch.lab.queue_teams import Group, Line, by_region, fill, foretold, line_up, proposals, split
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import FOREVER, Whole, rows_of, starts

BINS = 10
WAVE = 15 * SECOND


class Other(NamedTuple):
    """A comparison matchmaker, and what it is in a line."""

    propose: Callable[[Queue, int, Policy], Proposals]
    what: str


def others() -> dict[str, Other]:
    """The comparison matchmakers by name, made anew: `waves` remembers when it last fired."""
    return {
        "fifo": Other(fifo, "First in, first out; ranks are not looked at."),
        "bins": Other(bins, f"{BINS} fixed bins of percentiles; first in, first out in each."),
        "greedy": Other(greedy, "Neighbours in percentile who satisfy all filters; the tightest match first."),
        "pivot": Other(pivot, "The longest-waiting ticket's widened filter decides; the nearest fill its match."),
        "waves": Other(Waves(), f"Every {WAVE // SECOND} seconds the whole queue, sorted by percentile, is cut up."),
    }


def fifo(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Who came first plays first: Nakama without properties in the query, Open Match's first example."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, _by_age(line)):
        groups += fill(line, rows, policy, region)
    return proposals(line, now, policy, groups)


def bins(queue: Queue, now: int, policy: Policy) -> Proposals:
    """First come, first served within ten fixed bands of rank: leagues and brackets, as many games queue them."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, _by_age(line)):
        middle = (line.low[rows] + line.high[rows]) / 2.0
        band = np.minimum(middle * BINS // 100, BINS - 1)
        for one in np.unique(band):
            groups += fill(line, rows[band == one], policy, region)
    return proposals(line, now, policy, groups)


class Waves:
    """Every 15 seconds the queue in order of percentile, cut into matches from the bottom up: lichess's waves.

    Filters are not looked at; those left over at the top wait for the next wave.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def __call__(self, queue: Queue, now: int, policy: Policy) -> Proposals:
        """The matches of the wave that is due, or none. A time before the last one begins anew."""
        last, self._last = self._last, now
        line, groups = line_up(queue), list[Group]()
        if last is not None and now // WAVE > last // WAVE:
            for region, rows in by_region(line, np.arange(len(line))):
                groups += fill(line, rows, policy, region)
        return proposals(line, now, policy, groups)


def pivot(queue: Queue, now: int, policy: Policy) -> Proposals:
    """The longest-waiting ticket takes the nearest that its own filter lets in: FlexMatch's and PlayFab's expansions.

    Their rules widen by the age of one ticket of the match; the filters of the others are not looked at.
    """
    line, groups = line_up(queue), []
    bottoms, tops = _windows(line, now, policy)
    free = np.ones(len(line), np.bool_)
    for region, rows in by_region(line, np.arange(len(line))):
        low, high, size, bottom, top = line.low[rows], line.high[rows], line.size[rows], bottoms[rows], tops[rows]
        first, stop = np.searchsorted(low, bottom), np.searchsorted(low, top, side="right")
        so_far = starts(size)
        hopeful = so_far[stop] - so_far[first] >= policy.players
        for at in np.lexsort((line.number[rows], line.queued[rows])).tolist():
            if not hopeful[at] or not free[rows[at]]:
                continue
            near = np.arange(first[at], stop[at])
            near = near[free[rows[near]] & (high[near] <= top[at]) & (near != at)]
            if size[near].sum() + size[at] < policy.players:
                continue
            apart = np.abs(low[near] + high[near] - low[at] - high[at])
            candidates = np.concatenate(([at], near[np.argsort(apart, kind="stable")]))
            if found := fill(line, rows[_enough(candidates, size, policy)], policy, region)[:1]:
                groups += found
                free[found[0].rows] = False
    return proposals(line, now, policy, groups)


def greedy(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Runs of neighbours in percentile that satisfy everybody's filter, tightest first, one pass: best window first."""
    line, groups = line_up(queue), []
    bottom, top = _windows(line, now, policy)
    for region, rows in by_region(line, np.arange(len(line))):
        first, stop, spread = _runs(line, rows, bottom[rows], top[rows], policy)
        taken = np.zeros(len(rows), np.bool_)
        for at in np.argsort(spread, kind="stable").tolist():
            run = slice(int(first[at]), int(stop[at]))
            if taken[run].any():
                continue
            group = split(line, rows[run], policy, region)
            if group is not None and _allowed(line, group, policy):
                groups.append(group)
                taken[run] = True
    return proposals(line, now, policy, groups)


def _by_age(line: Line) -> Whole:
    return np.lexsort((line.number, line.queued))


def _windows(line: Line, now: int, policy: Policy) -> tuple[Floats, Floats]:
    """The lowest and highest percentile that each ticket's filter lets in now."""
    wide = np.where(line.loose, widths(policy, (now - line.queued) / SECOND), -np.inf)
    return np.minimum(line.chosen_low, line.low - wide), np.maximum(line.chosen_high, line.high + wide)


def _enough(candidates: Whole, size: Whole, policy: Policy) -> Whole:
    """The first of them: just enough where all are solo players, else twice as many to choose from."""
    wanted = policy.players if (size[candidates] == 1).all() else 2 * policy.players
    return candidates[: int(np.searchsorted(np.cumsum(size[candidates]), wanted)) + 1]


def _runs(line: Line, rows: Whole, bottom: Floats, top: Floats, policy: Policy) -> tuple[Whole, Whole, Floats]:
    """Where runs of neighbours begin and end that fill a match and satisfy all filters, and their spreads."""
    so_far = starts(line.size[rows])
    first = np.arange(len(rows))
    stop = np.searchsorted(so_far, so_far[:-1] + policy.players)
    full = so_far[np.minimum(stop, len(rows))] == so_far[:-1] + policy.players
    first, stop = first[full], stop[full]
    if not len(first):
        return first, stop, np.empty(0)
    pairs = np.column_stack((first, stop)).ravel()

    def highest(values: Floats) -> Floats:
        found: Floats = np.maximum.reduceat(np.append(values, 0.0), pairs)[::2]  # a run may end behind the last
        return found

    low, high = -highest(-line.low[rows]), highest(line.high[rows])
    good = (highest(bottom) <= low) & (-highest(-top) >= high)
    if policy.max_rating_spread is not None:
        good &= highest(line.rating_high[rows]) + highest(-line.rating_low[rows]) <= policy.max_rating_spread
    return first[good], stop[good], (high - low)[good]


def _allowed(line: Line, group: Group, policy: Policy) -> bool:
    """Whether the policy lets the odds be, and nobody meets whom they avoid."""
    odds = foretold(line, group, policy)
    if policy.max_odds is not None and max(odds, 1.0 - odds) > policy.max_odds:
        return False
    name = rows_of(line.named_first[group.rows], line.named_count[group.rows])
    if not len(name):
        return True
    avoided = line.named[name][line.met[name] == FOREVER]
    return not np.isin(avoided, line.players[rows_of(line.first[group.rows], line.size[group.rows])]).any()
