"""Kernels that gather tickets for one match: from the lowest of them upwards, until the teams can be filled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.compiled import compiled, lean
from evenmatch.matchmaking.conflict import apart, mixes
from evenmatch.matchmaking.pack import fills, has_room
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.roles import add_party
from evenmatch.matchmaking.tickets import Whole

LOOK = 256  # tickets that one match is looked for among, at the most
SUMS = np.dtype(
    [
        ("seats", "i8"),
        ("reach", "f8"),  # where the first of the windows ends
        ("top", "f8"),  # the highest player
        ("rating_low", "f8"),
        ("rating_high", "f8"),
        ("waited", "f8"),  # the longest
        ("spread", "f8"),  # percentiles that they may have between them
        ("players", "u8"),
        ("names", "u8"),
    ],
    align=True,
)


class Work(NamedTuple):
    """Room for the tickets that are at hand while a match is looked for.

    active   int64 (LOOK,)  places in the view
    counts   int64 (size + 1,)  tickets by party size
    room     int64 (2^R,)  how many players of a team may offer nothing outside a subset of roles; held: how many do
    sums     SUMS (1,)     of all tickets at hand
    scratch  int64         for pack.py
    """

    active: Whole
    counts: Whole
    room: Whole
    held: Whole
    sums: Any
    scratch: Whole


@compiled
def work_for(teams: int, size: int, room: Whole, sums: Any) -> Work:  # noqa: ANN401 - a record
    """Room for a match of so many teams."""
    return Work(
        np.empty(LOOK, np.int64),
        np.zeros(size + 1, np.int64),
        room,
        np.zeros(len(room), np.int64),
        sums,
        np.zeros(max(teams, size + 1), np.int64),
    )


@lean
def collect(v: View, lo: Floats, hi: Floats, at: Whole, k: int, rules: Rules, work: Work) -> tuple[int, int]:
    """Gather tickets upwards from at[k] until a match can be made: (how many are at hand, the last of them in `at`).

    (0, -1) where none can. All at hand go together with each other; the lowest is the first.
    """
    first = at[k]
    bottom, far = v.t[first].low, hi[first]
    if not _begin(v, lo, hi, first, rules, work):
        return 0, -1
    count, all_seats, s = 1, rules.teams * rules.size, work.sums[0]
    for q in range(k + 1, len(at)):
        j = at[q]
        t = v.t[j]
        if t.low > s.reach:
            if t.low > far:
                break
            count = _evict(v, hi, t.low, rules, work, count)
        if lo[j] > bottom or t.high > s.reach or hi[j] < max(s.top, t.high) or t.size > rules.size:
            continue
        if max(s.rating_high, t.rating_high) - min(s.rating_low, t.rating_low) > rules.rating_cap:
            continue
        if mixes(v, rules, first, j) or (
            (t.names & s.players) | (t.players & s.names) and _any_apart(v, rules, work.active, count, j)
        ):
            continue
        if rules.roles and not _takes_part(v, rules, work, j):
            continue
        if count == LOOK:
            break
        work.active[count] = j
        count += 1
        if not rules.roles:
            work.counts[t.size] += 1
        _add(v, hi, work, j)
        if s.seats >= all_seats and _is_full(v, rules, work, j):
            return count, q
    return 0, -1


@lean
def _begin(v: View, lo: Floats, hi: Floats, first: int, rules: Rules, work: Work) -> bool:
    """Put the first ticket at hand; False where its own window does not hold its own players."""
    t, s = v.t[first], work.sums[0]
    if lo[first] > t.low or hi[first] < t.high or t.size > rules.size:
        return False
    work.counts[:] = 0
    work.held[:] = 0
    if rules.roles and not add_party(work.held, work.room, 1, v, first):
        return False
    work.active[0] = first
    work.counts[t.size] = 1
    s.seats, s.reach, s.top, s.waited, s.spread = t.size, hi[first], t.high, t.waited, t.spread
    s.rating_low, s.rating_high, s.players, s.names = t.rating_low, t.rating_high, t.players, t.names
    return True


@lean
def _add(v: View, hi: Floats, work: Work, j: int) -> None:
    t, s = v.t[j], work.sums[0]
    s.seats += t.size
    s.reach, s.top = min(s.reach, hi[j]), max(s.top, t.high)
    s.waited, s.spread = max(s.waited, t.waited), max(s.spread, t.spread)
    s.rating_low, s.rating_high = min(s.rating_low, t.rating_low), max(s.rating_high, t.rating_high)
    s.players, s.names = s.players | t.players, s.names | t.names


@lean
def _evict(v: View, hi: Floats, low: float, rules: Rules, work: Work, count: int) -> int:
    """Let go of the tickets whose windows end below `low`; the first stays. Returns how many do."""
    first, kept = work.active[0], 1
    t, s = v.t[first], work.sums[0]
    work.counts[:] = 0
    work.counts[t.size] = 1
    s.seats, s.reach, s.top, s.waited, s.spread = t.size, hi[first], t.high, t.waited, t.spread
    s.rating_low, s.rating_high, s.players, s.names = t.rating_low, t.rating_high, t.players, t.names
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
def _is_full(v: View, rules: Rules, work: Work, j: int) -> bool:
    """Whether a match can be made now that ticket `j` is at hand."""
    s = work.sums[0]
    if s.top - v.t[work.active[0]].low > s.spread:
        return False
    if rules.roles:
        return bool(s.seats == rules.teams * rules.size)
    if rules.mixed:
        if s.waited < rules.party_wait:
            return False
    elif work.counts[v.t[j].size] % rules.teams:
        return False
    return fills(work.counts, rules.teams, rules.size, v.t[work.active[0]].size, rules.mixed, work.scratch)


@lean
def _takes_part(v: View, rules: Rules, work: Work, j: int) -> bool:
    """Count a ticket where roles matter, if there are seats and roles for all who are at hand; see `pack.has_room`."""
    size = v.t[j].size
    work.counts[size] += 1
    if has_room(work.counts, rules.teams, rules.size, work.scratch) and add_party(
        work.held, work.room, rules.teams, v, j
    ):
        return True
    work.counts[size] -= 1
    return False


@lean
def _any_apart(v: View, rules: Rules, active: Whole, count: int, j: int) -> bool:
    held_apart = False
    for i in range(count):
        held_apart = held_apart or apart(v, rules, active[i], j)
    return held_apart
