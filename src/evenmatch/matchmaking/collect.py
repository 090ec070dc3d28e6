"""Kernels that gather tickets for one match: from the lowest of them upwards, until the teams can be filled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.compiled import compiled, lean, merged
from evenmatch.matchmaking.conflict import meets, mixes
from evenmatch.matchmaking.pack import fills, has_room
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.roles import add_party, take_back
from evenmatch.matchmaking.tickets import Whole


class Sums(NamedTuple):
    """What the tickets at hand have together.

    reach   where the first of their windows ends
    top     the highest player
    waited  the longest
    spread  percentiles that they may have between them
    """

    seats: int
    reach: float
    top: float
    rating_low: float
    rating_high: float
    waited: float
    spread: float


class Search(NamedTuple):
    """What one pass looks for, and where.

    lo, hi      float64 (N,)  the windows that must hold everybody else, by place in the view
    at          int64 (K,)    ascending places in the view: the tickets to look at
    taken       bool (N,)     tickets that are in a match already, to be passed over
    """

    lo: Floats
    hi: Floats
    at: Whole
    taken: Flags


class Aim(NamedTuple):
    """Which matches a pass makes.

    largest      party size that it has, and none larger
    mixed        whether parties of other sizes may stand against each other
    most_spread  percentiles that no match may have more of, since nobody has waited so long
    """

    largest: int
    mixed: bool
    most_spread: float


class Work(NamedTuple):
    """Room for the tickets that are at hand while a match is looked for.

    active   int64         places in the view: of so many tickets, at the most, a match is made
    counts   int64 (size + 1,)  tickets by party size
    room     int64 (2^R,)  how many players of a team may offer nothing outside a subset of roles; held: how many do
    marked   int64 (N,)    by place in the view: the mark of the last match it was at hand for
    mark     int64 (1,)    of the tickets at hand
    scratch  int64         for pack.py
    """

    active: Whole
    counts: Whole
    room: Whole
    held: Whole
    marked: Whole
    mark: Whole
    scratch: Whole


AT_HAND, SEEN = 2, 24  # tickets at hand, and looked at, for each seat of a match; at the most


@compiled
def work_for(count: int, rules: Rules, room: Whole) -> Work:
    """Room for matches of so many tickets by these rules."""
    return Work(
        np.empty(max(24, AT_HAND * rules.teams * rules.size), np.int64),
        np.zeros(rules.size + 1, np.int64),
        room,
        np.zeros(len(room), np.int64),
        np.zeros(count, np.int64),
        np.zeros(1, np.int64),
        np.zeros(max(rules.teams, rules.size + 1), np.int64),
    )


@lean
def collect(v: View, search: Search, k: int, rules: Rules, aim: Aim, work: Work) -> tuple[int, int, Sums]:
    """Gather tickets upwards from at[k] until a match can be made: (how many, the last of them in `at`, their sums).

    (0, -1, anything) where none can. All at hand go together with each other; the lowest is the first.
    """
    lo, hi, at = search.lo, search.hi, search.at
    first = at[k]
    s = _begin(v, hi, work, first)
    if lo[first] > v.t[first].low or s.reach < s.top or (rules.roles and not _opens(v, work, first)):
        return 0, -1, s
    bottom, count = v.t[first].low, 1
    far = min(s.reach, bottom + aim.most_spread)
    for q in range(k + 1, min(len(at), k + SEEN * len(work.active) // AT_HAND)):
        j = at[q]
        t = v.t[j]
        if t.low > s.reach:
            if t.low > far:
                break
            count, s = _evict(v, hi, t.low, rules, work, count)
        if search.taken[j] or lo[j] > bottom or not _goes(v, s, t, hi[j], rules, work, j):
            continue
        if count == len(work.active) or t.low > far:
            break
        work.active[count] = j
        count += 1
        if not rules.roles:
            work.counts[t.size] += 1
        work.marked[j] = work.mark[0]
        s = _with(s, t, hi[j])
        if s.seats >= rules.teams * rules.size and _is_full(v, s, rules, aim, work, j):
            return count, q, s
    return 0, -1, s


@merged
def _goes(v: View, s: Sums, t: Any, end: float, rules: Rules, work: Work, j: int) -> bool:  # noqa: ANN401
    """Whether ticket `j`, whose window reaches from below the first to `end`, goes together with all at hand."""
    if t.high > s.reach or end < max(s.top, t.high):
        return False
    if max(s.rating_high, t.rating_high) - min(s.rating_low, t.rating_low) > rules.rating_cap:
        return False
    if mixes(v, rules, work.active[0], j):
        return False
    if meets(v, work.marked, work.mark[0], j):
        return False
    return not rules.roles or _takes_part(v, s, rules, work, j)


@lean
def _begin(v: View, hi: Floats, work: Work, first: int) -> Sums:
    """Put the first ticket at hand, and none but it."""
    t = v.t[first]
    work.counts[:] = 0
    work.counts[t.size] = 1
    work.active[0] = first
    work.mark[0] += 1
    work.marked[first] = work.mark[0]
    seats = t.size + np.int64(0)  # as wide as the sum will be
    return Sums(seats, hi[first], t.high, t.rating_low, t.rating_high, t.waited, t.spread)


@lean
def _opens(v: View, work: Work, first: int) -> bool:
    """Count the roles of the first ticket, if a team has room for them."""
    work.held[:] = 0
    return add_party(work.held, work.room, 1, v, first)


@merged
def _with(s: Sums, t: Any, end: float) -> Sums:  # noqa: ANN401
    """The sums with one more ticket, whose window ends there."""
    return Sums(
        s.seats + t.size,
        min(s.reach, end),
        max(s.top, t.high),
        min(s.rating_low, t.rating_low),
        max(s.rating_high, t.rating_high),
        max(s.waited, t.waited),
        max(s.spread, t.spread),
    )


@lean
def _evict(v: View, hi: Floats, low: float, rules: Rules, work: Work, count: int) -> tuple[int, Sums]:
    """Let go of the tickets whose windows end below `low`; the first stays. Returns how many do, and their sums."""
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


@lean
def _is_full(v: View, s: Sums, rules: Rules, aim: Aim, work: Work, j: int) -> bool:
    """Whether a match can be made now that ticket `j` is at hand."""
    if s.top - v.t[work.active[0]].low > s.spread or not work.counts[aim.largest]:
        return False
    if rules.roles:
        return bool(s.seats == rules.teams * rules.size)
    if aim.mixed:
        if s.waited < rules.party_wait:
            return False
    elif work.counts[v.t[j].size] % rules.teams:
        return False
    party = v.t[work.active[0]].size
    return fills(work.counts, rules.teams, rules.size, party, aim.largest, aim.mixed, work.scratch)


@lean
def _takes_part(v: View, s: Sums, rules: Rules, work: Work, j: int) -> bool:
    """Count a ticket where roles matter, if there are seats and roles for all who are at hand; see `pack.has_room`."""
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
