"""Kernels that collect tickets for one match: upwards from the lowest ticket until the teams can be filled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.conflict import meets, mixes
from evenmatch.matchmaking.kernel_options import INT64, inner, lean_inner, merged
from evenmatch.matchmaking.pack import fills, has_room
from evenmatch.matchmaking.records import KernelRules, QueueView
from evenmatch.matchmaking.roles import add_party, take_back
from evenmatch.matchmaking.tickets import Whole


class TicketTotals(NamedTuple):
    """Totals of the collected tickets.

    reach   the lowest upper end of their windows
    top     the highest percentile of a player
    waited  the longest wait
    spread  the largest spread of percentiles that is allowed unless they are neighbours
    """

    seats: int
    reach: float
    top: float
    rating_low: float
    rating_high: float
    waited: float
    spread: float


class Search(NamedTuple):
    """The input of one search pass.

    lo, hi      float64 (N,)  windows that must contain all other players of the match, by place in the view
    at          int64 (K,)    ascending places in the view: the tickets to search
    taken       bool (N,)     tickets already in a match, skipped
    """

    lo: Floats
    hi: Floats
    at: Whole
    taken: Flags


class TargetMatch(NamedTuple):
    """The matches that a pass creates.

    largest      the largest party size in the match
    mixed        whether teams may have parties of different sizes
    most_spread  the largest spread of percentiles that any waiting ticket allows
    """

    largest: int
    mixed: bool
    most_spread: float


class CollectionBuffers(NamedTuple):
    """Scratch arrays for the tickets collected for a match.

    active   int64         places in the view of the collected tickets; its length is the limit
    counts   int64 (size + 1,)  collected tickets by party size
    room     int64 (2^R,)  how many players of a team may offer no role outside a subset; held: how many do
    marked   int64 (N,)    by place in the view: the mark of the last collection that included it
    mark     int64 (1,)    mark of the present collection
    scratch  int64         for pack.py
    """

    active: Whole
    counts: Whole
    room: Whole
    held: Whole
    marked: Whole
    mark: Whole
    scratch: Whole


AT_HAND, SEEN = 2, 24  # limits of collected and of inspected tickets, per seat of a match


@inner
def work_for(count: int, rules: KernelRules, room: Whole) -> CollectionBuffers:
    """Allocate the scratch arrays for a view of `count` tickets."""
    return CollectionBuffers(
        np.empty(max(24, AT_HAND * rules.teams * rules.size), np.int64),
        np.zeros(rules.size + 1, np.int64),
        room,
        np.zeros(len(room), np.int64),
        np.zeros(count, np.int64),
        np.zeros(1, np.int64),
        np.zeros(max(rules.teams, rules.size + 1), np.int64),
    )


@lean_inner
def _begin(v: QueueView, hi: Floats, work: CollectionBuffers, first: int) -> TicketTotals:
    """Start a collection with the first ticket alone."""
    t = v.t[first]
    work.counts[:] = 0
    work.counts[t.size] = 1
    work.active[0] = first
    work.mark[0] += 1
    work.marked[first] = work.mark[0]
    seats = t.size + INT64(0)  # as wide as the sum will be
    return TicketTotals(seats, hi[first], t.high, t.rating_low, t.rating_high, t.waited, t.spread)


@merged
def _with(s: TicketTotals, t: Any, end: float) -> TicketTotals:  # noqa: ANN401
    """The totals with one more ticket, whose window ends at `end`."""
    return TicketTotals(
        s.seats + t.size,
        min(s.reach, end),
        max(s.top, t.high),
        min(s.rating_low, t.rating_low),
        max(s.rating_high, t.rating_high),
        max(s.waited, t.waited),
        max(s.spread, t.spread),
    )


@lean_inner
def _opens(v: QueueView, work: CollectionBuffers, first: int) -> bool:
    """Count the roles of the first ticket; False if a team has no room for them."""
    work.held[:] = 0
    return add_party(work.held, work.room, INT64(1), v, first)


@lean_inner
def _evict(
    v: QueueView, hi: Floats, low: float, rules: KernelRules, work: CollectionBuffers, count: int
) -> tuple[int, TicketTotals]:
    """Remove collected tickets whose windows end below `low`, except the first; (remaining count, totals)."""
    first, kept = work.active[0], 1
    s = _begin(v, hi, work, first)
    if rules.roles:
        _opens(v, work, first)
    for i in range(1, count):
        j = work.active[i]
        if hi[j] >= low:
            work.active[kept] = j
            kept += 1
            work.counts[v.t[j].size] += 1
            work.marked[j] = work.mark[0]
            if rules.roles:
                add_party(work.held, work.room, rules.teams, v, j)
            s = _with(s, v.t[j], hi[j])
    return kept, s


@lean_inner
def _is_full(
    v: QueueView,
    s: TicketTotals,
    rules: KernelRules,
    aim: TargetMatch,
    work: CollectionBuffers,
    count: int,
    neighbours: bool,
) -> bool:
    """Whether the collected tickets can form a match.

    neighbours  whether no other free ticket of the pass lies between them: then any spread is allowed
    """
    if not work.counts[aim.largest]:
        return False
    if s.top - v.t[work.active[0]].low > s.spread and not neighbours:
        return False
    if rules.roles:
        return bool(s.seats == rules.teams * rules.size)
    if aim.mixed:
        if s.waited < rules.party_wait:
            return False
    elif work.counts[v.t[work.active[count - 1]].size] % rules.teams:
        return False
    party = v.t[work.active[0]].size
    return fills(work.counts, rules.teams, rules.size, party, aim.largest, aim.mixed, work.scratch)


@lean_inner
def _takes_part(v: QueueView, s: TicketTotals, rules: KernelRules, work: CollectionBuffers, j: int) -> bool:
    """With roles: count a ticket if seats and roles suffice for all collected tickets; see `pack.has_room`."""
    size = v.t[j].size
    if s.seats + size > rules.teams * rules.size or not add_party(work.held, work.room, rules.teams, v, j):
        return False
    work.counts[size] += 1
    if work.counts[1] == s.seats + size or has_room(work.counts, rules.teams, rules.size, work.scratch):
        return True
    work.counts[size] -= 1
    for m in range(v.t[j].first, v.t[j].first + size):
        take_back(work.held, v.role[m])
    return False


@merged
def _goes(
    v: QueueView,
    s: TicketTotals,
    t: Any,  # noqa: ANN401
    end: float,
    rules: KernelRules,
    work: CollectionBuffers,
    j: int,
) -> bool:
    """Whether ticket `j`, whose window ends at `end`, is compatible with all collected tickets."""
    if t.high > s.reach or end < max(s.top, t.high):
        return False
    if max(s.rating_high, t.rating_high) - min(s.rating_low, t.rating_low) > rules.rating_cap:
        return False
    if mixes(v, rules, work.active[0], j):
        return False
    if meets(v, work.marked, work.mark[0], j):
        return False
    return not rules.roles or _takes_part(v, s, rules, work, j)


@lean_inner
def collect(
    v: QueueView, search: Search, k: int, rules: KernelRules, aim: TargetMatch, work: CollectionBuffers
) -> tuple[int, int, bool, TicketTotals]:
    """Collect tickets upwards from at[k] until they can form a match.

    Returns their count, the index in `at` of the last one, whether they are neighbours (no other free ticket of the
    pass lies between them), and their totals; count 0 if no match is possible. Collected tickets are pairwise
    compatible; the lowest is the first.
    """
    lo, hi, at = search.lo, search.hi, search.at
    first = at[k]
    s = _begin(v, hi, work, first)
    if lo[first] > v.t[first].low or s.reach < s.top or (rules.roles and not _opens(v, work, first)):
        return 0, -1, False, s
    bottom, count, gone, neighbours = v.t[first].low, INT64(1), 0, True
    for q in range(k + 1, min(len(at), k + SEEN * len(work.active) // AT_HAND)):
        j = at[q]
        t = v.t[j]
        neighbours = neighbours and count + gone == q - k
        if t.low > (hi[first] if neighbours else min(hi[first], bottom + aim.most_spread)):
            break
        if search.taken[j]:
            gone += 1
            continue
        if t.low > s.reach:
            count, s = _evict(v, hi, t.low, rules, work, count)
            neighbours = False
        if lo[j] > bottom or not _goes(v, s, t, hi[j], rules, work, j):
            continue
        if count == len(work.active):
            break
        work.active[count] = j
        count += 1
        if not rules.roles:
            work.counts[t.size] += 1
        work.marked[j] = work.mark[0]
        s = _with(s, t, hi[j])
        if s.seats >= rules.teams * rules.size and _is_full(v, s, rules, aim, work, count, neighbours):
            return count, q, neighbours, s
    return 0, -1, False, s
