"""Kernels that create matches: the passes, the tickets that each candidate collects, and the choice of candidates.

The order of the passes prefers chosen filters, large parties, equal party sizes and the home region. Within a pass,
weighted interval scheduling selects disjoint matches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.conflict import meets, mixes
from evenmatch.matchmaking.exact_teams import choose, fills, has_room
from evenmatch.matchmaking.records import INT64, KernelRules, QueueView, compiled, inner, lean_inner, merged
from evenmatch.matchmaking.roles import add_party, take_back
from evenmatch.matchmaking.tickets import Masks, Whole


class TicketTotals(NamedTuple):
    """Totals of the collected tickets.

    reach   the lowest upper end of their windows
    top     the highest percentile of a player
    waited  the longest wait
    spread  how many percentiles the match may span if it skips other tickets
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
    at          int64 (K,)    the tickets to search, as ascending places in the view
    taken       bool (N,)     tickets that are already in a match
    """

    lo: Floats
    hi: Floats
    at: Whole
    taken: Flags


class TargetMatch(NamedTuple):
    """The kind of match that a pass creates.

    largest      the largest party size in the match
    mixed        whether teams may have parties of different sizes
    most_spread  the largest `spread` of any waiting ticket, see TicketTotals
    """

    largest: int
    mixed: bool
    most_spread: float


class CollectionBuffers(NamedTuple):
    """Scratch arrays for the tickets collected for a match.

    active   int64         places in the view of the collected tickets; the length is their maximum number
    counts   int64 (size + 1,)  collected tickets by party size
    room     int64 (2^R,)  see view.role_room
    held     int64 (2^R,)  see roles.add
    marked   int64 (N,)    by place in the view: the mark of the last collection that included it
    mark     int64 (1,)    the mark of the present collection
    scratch  int64         for exact_teams
    """

    active: Whole
    counts: Whole
    room: Whole
    held: Whole
    marked: Whole
    mark: Whole
    scratch: Whole


COLLECTED_PER_SEAT, INSPECTED_PER_SEAT = 2, 24  # at most, per seat of a match


@inner
def work_for(count: int, rules: KernelRules, room: Whole) -> CollectionBuffers:
    """Allocate the scratch arrays for a view of `count` tickets."""
    return CollectionBuffers(
        np.empty(max(24, COLLECTED_PER_SEAT * rules.teams * rules.size), np.int64),
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
    seats = t.size + INT64(0)  # int64, like the later sums
    return TicketTotals(seats, hi[first], t.high, t.rating_low, t.rating_high, t.waited, t.spread)


@merged
def _with(s: TicketTotals, t: Any, end: float) -> TicketTotals:  # noqa: ANN401
    """The totals after adding a ticket whose window ends at `end`."""
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
    """Count the roles of the first ticket. False if a team has no room for them."""
    work.held[:] = 0
    return add_party(work.held, work.room, INT64(1), v, first)


@lean_inner
def _evict(
    v: QueueView, hi: Floats, low: float, rules: KernelRules, work: CollectionBuffers, count: int
) -> tuple[int, TicketTotals]:
    """Remove the collected tickets whose windows end below `low`, but keep the first. Returns (count, totals)."""
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

    neighbours  whether no other free ticket of the pass lies between them, which allows any spread
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
    """For policies with roles: count a ticket if seats and roles suffice for it; see `exact_teams.has_room`."""
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

    Returns the count, the index in `at` of the last ticket, whether they are neighbours (see `_is_full`), and the
    totals. The count is 0 if no match is possible. The collected tickets are pairwise compatible, the lowest first.
    """
    lo, hi, at = search.lo, search.hi, search.at
    first = at[k]
    s = _begin(v, hi, work, first)
    if lo[first] > v.t[first].low or s.reach < s.top or (rules.roles and not _opens(v, work, first)):
        return 0, -1, False, s
    bottom, count, gone, neighbours = v.t[first].low, INT64(1), 0, True
    for q in range(k + 1, min(len(at), k + INSPECTED_PER_SEAT * len(work.active) // COLLECTED_PER_SEAT)):
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


@compiled
def pick(last: Whole, value: Floats) -> Whole:
    """The first tickets of the disjoint matches with the largest total value, ascending.

    last   int64 (N,)    the last ticket of the match that begins at each ticket; -1: no match
    value  float64 (N,)  the value of that match, above 0
    Weighted interval scheduling by dynamic programming from the end, O(N).
    """
    count = len(last)
    best = np.zeros(count + 1)
    for at in range(count - 1, -1, -1):
        best[at] = best[at + 1]
        if last[at] >= 0:
            best[at] = max(best[at], value[at] + best[last[at] + 1])
    picked, found, at = np.empty(count, np.int64), 0, 0
    while at < count:
        if last[at] >= 0 and value[at] + best[last[at] + 1] >= best[at + 1]:
            picked[found] = at
            found += 1
            at = last[at] + 1
        else:
            at += 1
    return picked[:found].copy()


VALUE_SCALE = 60.0  # seconds of cost that reduce the value of a match by a factor of e


@inner
def _choose(
    v: QueueView,
    seats: int,
    rules: KernelRules,
    aim: TargetMatch,
    work: CollectionBuffers,
    count: int,
    neighbours: bool,
    wanted: Whole,
    out: Whole,
) -> int:
    """Choose tickets that fill the teams, from the lowest upwards. Returns their number.

    Returns 0 if the chosen tickets span too many percentiles, because one that allowed the spread was not chosen.
    """
    active = work.active
    if rules.roles or seats == rules.teams * rules.size:
        for i in range(count):
            out[i] = active[i]
        return count
    party = v.t[active[0]].size
    choose(work.counts, rules.teams, rules.size, party, aim.largest, aim.mixed, wanted)
    taken, top, spread = 0, 0.0, 0.0
    for i in range(count):
        t = v.t[active[i]]
        if wanted[t.size] > 0:
            wanted[t.size] -= 1
            out[taken] = active[i]
            taken += 1
            top, spread = max(top, t.high), max(spread, t.spread)
    return taken if neighbours or top - v.t[active[0]].low <= spread else 0


@lean_inner
def _value(v: QueueView, s: TicketTotals, rules: KernelRules, work: CollectionBuffers) -> float:
    """The value of the collected match, 0 to 1. It falls with the spread."""
    return float(np.exp(-rules.spread_cost * (s.top - v.t[work.active[0]].low) / VALUE_SCALE))


@inner
def find(
    v: QueueView,
    search: Search,
    rules: KernelRules,
    aim: TargetMatch,
    work: CollectionBuffers,
    made: int,
    start: Whole,
    ticket: Whole,
) -> int:
    """Create matches from the searched tickets and return the new total number of matches.

    made    the number of matches so far;  start, ticket  outputs: first ticket of each match, and all tickets
    Each ticket is the lowest of one candidate, the narrowest that it can begin. The disjoint candidates with the
    largest total value become matches.
    """
    at, ahead, second = search.at, -1, -1  # the next two parties of size `largest`; a match needs one, or one per team
    last, value = np.full(len(at), -1, np.int64), np.zeros(len(at))
    for k in range(len(at) - 1, -1, -1):
        t = v.t[at[k]]
        if t.size == aim.largest:
            ahead, second = k, ahead
        needed = ahead if aim.mixed or rules.roles else second
        if needed >= 0 and v.t[at[needed]].low <= search.hi[at[k]]:
            count, end, _, sums = collect(v, search, k, rules, aim, work)
            if count:
                last[k], value[k] = end, _value(v, sums, rules, work)
    wanted = np.empty(rules.size + 1, np.int64)
    for k in pick(last, value):
        if search.taken[at[k]]:
            continue
        count, _, neighbours, sums = collect(v, search, k, rules, aim, work)
        own = ticket[start[made] :]
        size = _choose(v, sums.seats, rules, aim, work, count, neighbours, wanted, own) if count else 0
        if size:
            made += 1
            start[made] = start[made - 1] + size
            for n in range(size):
                search.taken[own[n]] = True
    return made


EVERYWHERE = -1  # the home of tickets that can play in any region


class TicketWindows(NamedTuple):
    """The chosen and the present windows of all tickets, by place in the view; float64 (N,)."""

    chosen_lo: Floats
    chosen_hi: Floats
    lo: Floats
    hi: Floats


class MatchRegions(NamedTuple):
    """Where matches can be played.

    region  int64 (R,)  bit numbers in the order of their names; empty: no ticket has regions
    home    int64 (N,)  bit number of the region with the best ping of each ticket, or EVERYWHERE
    """

    region: Whole
    home: Whole


@lean_inner
def _widest(v: QueueView, windows: TicketWindows, left: Whole) -> tuple[bool, float, float]:
    """Whether any window is wider than chosen, the widest allowed spread, the longest wait."""
    wider, spread, waited = False, 0.0, 0.0
    for j in left:
        wider = wider or windows.lo[j] < windows.chosen_lo[j] or windows.hi[j] > windows.chosen_hi[j]
        spread, waited = max(spread, v.t[j].spread), max(waited, v.t[j].waited)
    return wider, spread, waited


@lean_inner
def _has_size(v: QueueView, left: Whole, size: int) -> bool:
    found = False
    for j in left:
        found = found or v.t[j].size == size
    return found


@lean_inner
def _still(taken: Flags, left: Whole) -> int:
    """Keep the places that are not taken, and return their number."""
    count = 0
    for j in left:
        if not taken[j]:
            left[count] = j
            count += 1
    return count


@lean_inner
def _fit(
    v: QueueView,
    rules: KernelRules,
    aim: TargetMatch,
    places: MatchRegions,
    region: int,
    away: bool,
    taken: Flags,
    left: Whole,
    at: Whole,
) -> int:
    """Write the tickets of one pass to `at`. Returns their number, or 0 if they cannot form a match."""
    count, seats, large = 0, 0, 0
    beside = aim.largest if aim.mixed else rules.size - aim.largest
    for j in left:
        size = v.t[j].size
        if taken[j] or (size != aim.largest and size > beside):
            continue
        if region >= 0 and not v.t[j].able >> np.uint64(region) & np.uint64(1):
            continue
        if not away and region >= 0 and places.home[j] != EVERYWHERE and places.home[j] != region:
            continue
        at[count] = j
        count += 1
        seats += size
        large += size == aim.largest
    enough = seats >= rules.teams * rules.size and large >= (1 if aim.mixed or rules.roles else rules.teams)
    return count if enough else 0


@lean_inner
def _fit_cell(
    v: QueueView,
    rules: KernelRules,
    aim: TargetMatch,
    cell: np.uint64,
    taken: Flags,
    places: Whole,
    accepts: Masks,
    selected: Whole,
) -> int:
    """Write the tickets of one pass that accept a cell to `selected`. Returns the same as `_fit`.

    places, accepts  the tickets of the pass, and what they accept
    """
    count, seats, large = 0, 0, 0
    for i in range(len(places)):
        if accepts[i] & cell == cell and not taken[places[i]]:
            size = v.t[places[i]].size
            selected[count] = places[i]
            count += 1
            seats += size
            large += size == aim.largest
    enough = seats >= rules.teams * rules.size and large >= (1 if aim.mixed or rules.roles else rules.teams)
    return count if enough else 0


@lean_inner
def _can_cover(v: QueueView, rules: KernelRules, room: Whole, at: Whole) -> bool:
    """Whether enough of these players offer each role."""
    roles = 0
    while 1 << roles < len(room):
        roles += 1
    for role in range(roles):
        offered = 0
        for j in at:
            for m in range(v.t[j].first, v.t[j].first + v.t[j].size):
                offered += v.role[m] >> role & 1
        if offered < rules.teams * (room[1 << role] - room[0]):
            return False
    return True


@compiled
def make_matches(
    v: QueueView,
    windows: TicketWindows,
    places: MatchRegions,
    cells: Masks,
    taken: Flags,
    rules: KernelRules,
    room: Whole,
) -> tuple[Whole, Whole]:
    """Create matches from the tickets that are not taken, and mark their tickets as taken.

    cells   uint64 (C,)  values that all tickets of a match accept, see tick.cells_of; 0: anything
    room    int64 (2^R,)  see view.role_room
    Returns (offset of each match, places in the view).
    """
    n = len(v.t)
    work = work_for(n, rules, room)
    start, ticket, made = np.zeros(n // rules.teams + 2, np.int64), np.empty(n, np.int64), INT64(0)
    left, at = np.flatnonzero(~taken), np.empty(n, np.int64)
    inside, accepts = np.empty(n, np.int64), np.empty(n, np.uint64)
    choosy = len(cells) > 0 and cells[0] > 0
    wider, most_spread, longest = _widest(v, windows, left)
    patient = rules.roles or longest >= rules.party_wait  # otherwise all teams need the same party sizes
    for level in range(1 + wider):
        lo = windows.lo if level else windows.chosen_lo
        hi = windows.hi if level else windows.chosen_hi
        for largest in range(rules.size, 0, -1):
            left = left[: _still(taken, left)]
            if not _has_size(v, left, largest):
                continue
            for mixed in range(2 if largest > 1 and patient else 1):
                aim = TargetMatch(largest, mixed == 1, most_spread)
                for away in range(2 if len(places.region) > 1 else 1):
                    for place in range(max(len(places.region), 1)):
                        region = places.region[place] if len(places.region) else -1
                        count = _fit(v, rules, aim, places, region, away == 1, taken, left, at)
                        if choosy:
                            for i in range(count):
                                accepts[i] = v.accepts[at[i]]
                        for cell in cells:
                            own = at[:count]
                            if choosy:
                                own = inside[: _fit_cell(v, rules, aim, cell, taken, own, accepts, inside)]
                            if len(own) and (not rules.roles or _can_cover(v, rules, room, own)):
                                search = Search(lo, hi, own, taken)
                                made = find(v, search, rules, aim, work, made, start, ticket)
    return start[: made + 1].copy(), ticket[: start[made]].copy()
