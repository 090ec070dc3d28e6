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

SUMS = np.dtype(
    [
        ("seats", "i8"),
        ("reach", "f8"),  # where the first of the windows ends
        ("top", "f8"),  # the highest player
        ("rating_low", "f8"),
        ("rating_high", "f8"),
        ("waited", "f8"),  # the longest
        ("spread", "f8"),  # percentiles that they may have between them
        ("mark", "i8"),  # of the tickets at hand
    ],
    align=True,
)


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
    sums     SUMS (1,)     of all tickets at hand
    marked   int64 (N,)    by place in the view: the mark of the last match it was at hand for
    scratch  int64         for pack.py
    """

    active: Whole
    counts: Whole
    room: Whole
    held: Whole
    sums: Any
    marked: Whole
    scratch: Whole


AT_HAND, SEEN = 2, 24  # tickets at hand, and looked at, for each seat of a match; at the most


@compiled
def work_for(count: int, rules: Rules, room: Whole, sums: Any) -> Work:  # noqa: ANN401 - a record
    """Room for matches of so many tickets by these rules."""
    return Work(
        np.empty(max(24, AT_HAND * rules.teams * rules.size), np.int64),
        np.zeros(rules.size + 1, np.int64),
        room,
        np.zeros(len(room), np.int64),
        sums,
        np.zeros(count, np.int64),
        np.zeros(max(rules.teams, rules.size + 1), np.int64),
    )


@lean
def collect(v: View, search: Search, k: int, rules: Rules, aim: Aim, work: Work) -> tuple[int, int]:
    """Gather tickets upwards from at[k] until a match can be made: (how many are at hand, the last of them in `at`).

    (0, -1) where none can. All at hand go together with each other; the lowest is the first.
    """
    lo, hi, at = search.lo, search.hi, search.at
    first = at[k]
    if not _begin(v, lo, hi, first, rules, work):
        return 0, -1
    bottom, count, s = v.t[first].low, 1, work.sums[0]
    far = min(hi[first], bottom + aim.most_spread)
    for q in range(k + 1, min(len(at), k + SEEN * len(work.active) // AT_HAND)):
        j = at[q]
        t = v.t[j]
        if t.low > s.reach:
            if t.low > far:
                break
            count = _evict(v, hi, t.low, rules, work, count)
        if search.taken[j] or not _goes(v, lo, hi, rules, work, j):
            continue
        if count == len(work.active) or t.low > far:
            break
        work.active[count] = j
        count += 1
        if not rules.roles:
            work.counts[t.size] += 1
        _add(v, hi, work, j)
        if s.seats >= rules.teams * rules.size and _is_full(v, rules, aim, work, j):
            return count, q
    return 0, -1


@merged
def _goes(v: View, lo: Floats, hi: Floats, rules: Rules, work: Work, j: int) -> bool:
    """Whether a ticket goes together with all that are at hand."""
    t, s, first = v.t[j], work.sums[0], work.active[0]
    if lo[j] > v.t[first].low or t.high > s.reach or hi[j] < max(s.top, t.high):
        return False
    if max(s.rating_high, t.rating_high) - min(s.rating_low, t.rating_low) > rules.rating_cap:
        return False
    if mixes(v, rules, first, j):
        return False
    if meets(v, work.marked, s.mark, j):
        return False
    return not rules.roles or _takes_part(v, rules, work, j)


@lean
def _begin(v: View, lo: Floats, hi: Floats, first: int, rules: Rules, work: Work) -> bool:
    """Put the first ticket at hand; False where its own window does not hold its own players."""
    t = v.t[first]
    if lo[first] > t.low or hi[first] < t.high:
        return False
    work.counts[:] = 0
    work.held[:] = 0
    if rules.roles and not add_party(work.held, work.room, 1, v, first):
        return False
    work.active[0] = first
    _alone(v, hi, work, first)
    return True


@lean
def _alone(v: View, hi: Floats, work: Work, first: int) -> None:
    """Sum up the first ticket alone."""
    t, s = v.t[first], work.sums[0]
    work.counts[t.size] = 1
    s.seats, s.reach, s.top, s.waited, s.spread = t.size, hi[first], t.high, t.waited, t.spread
    s.rating_low, s.rating_high = t.rating_low, t.rating_high
    s.mark += 1
    work.marked[first] = s.mark


@merged
def _add(v: View, hi: Floats, work: Work, j: int) -> None:
    t, s = v.t[j], work.sums[0]
    s.seats += t.size
    s.reach, s.top = min(s.reach, hi[j]), max(s.top, t.high)
    s.waited, s.spread = max(s.waited, t.waited), max(s.spread, t.spread)
    s.rating_low, s.rating_high = min(s.rating_low, t.rating_low), max(s.rating_high, t.rating_high)
    work.marked[j] = s.mark


@lean
def _evict(v: View, hi: Floats, low: float, rules: Rules, work: Work, count: int) -> int:
    """Let go of the tickets whose windows end below `low`; the first stays. Returns how many do."""
    first, kept = work.active[0], 1
    work.counts[:] = 0
    _alone(v, hi, work, first)
    if rules.roles:
        work.held[:] = 0
        add_party(work.held, work.room, 1, v, first)
    for i in range(1, count):
        j = work.active[i]
        if hi[j] >= low:
            work.active[kept] = j
            kept += 1
            work.counts[v.t[j].size] += 1
            if rules.roles:
                add_party(work.held, work.room, rules.teams, v, j)
            _add(v, hi, work, j)
    return kept


@lean
def _is_full(v: View, rules: Rules, aim: Aim, work: Work, j: int) -> bool:
    """Whether a match can be made now that ticket `j` is at hand."""
    s = work.sums[0]
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
def _takes_part(v: View, rules: Rules, work: Work, j: int) -> bool:
    """Count a ticket where roles matter, if there are seats and roles for all who are at hand; see `pack.has_room`."""
    size, s = v.t[j].size, work.sums[0]
    if s.seats + size > rules.teams * rules.size or not add_party(work.held, work.room, rules.teams, v, j):
        return False
    work.counts[size] += 1
    if work.counts[1] == s.seats + size or has_room(work.counts, rules.teams, rules.size, work.scratch):
        return True
    work.counts[size] -= 1
    for m in range(v.t[j].first, v.t[j].first + size):
        take_back(work.held, v.role[m])
    return False
