"""Kernels that create matches: passes by preference, the tickets collected for each match, and which matches are kept.

Passes prefer chosen filters, large parties, equal party sizes and the home region. Within a pass, weighted interval
scheduling selects disjoint matches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.conflict import meets, mixes
from evenmatch.matchmaking.pack import choose, fills, has_room
from evenmatch.matchmaking.records import INT64, KernelRules, QueueView, compiled, inner, lean_inner, merged
from evenmatch.matchmaking.roles import add_party, take_back
from evenmatch.matchmaking.tickets import Masks, Whole


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


@compiled
def pick(last: Whole, value: Floats) -> Whole:
    """The first tickets of the disjoint matches with the largest total value, ascending.

    last   int64 (N,)    the last ticket of the match that begins at each ticket; -1: no match
    value  float64 (N,)  the value of that match, above 0
    Dynamic programming from the end, O(N); a greedy choice would leave a fifth of the matchable tickets unmatched.
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


COST = 60.0  # seconds: a match that costs this much more has a value e times lower


@lean_inner
def _oldest_first(v: QueueView, active: Whole, count: int) -> None:
    """Order all but the first: the ticket with the widest allowed spread, then by wait; ties by place."""
    for i in range(2, count):
        own, at = active[i], i
        while at > 1 and v.t[active[at - 1]].waited < v.t[own].waited:
            active[at] = active[at - 1]
            at -= 1
        active[at] = own
    widest = 1
    for i in range(2, count):
        if v.t[active[i]].spread > v.t[active[widest]].spread:
            widest = i
    own = active[widest]
    for i in range(widest, 1, -1):
        active[i] = active[i - 1]
    active[1] = own


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
    """Choose collected tickets that fill the teams: the first, then the longest-waiting. Returns their number.

    0 if their spread is too wide: the tickets that allowed it were not chosen.
    """
    active = work.active
    if rules.roles or seats == rules.teams * rules.size:
        for i in range(count):
            out[i] = active[i]
        return count
    party = v.t[active[0]].size
    choose(work.counts, rules.teams, rules.size, party, aim.largest, aim.mixed, wanted)
    _oldest_first(v, active, count)
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
    """The value of the collected match, 0 to 1: the wider, the lower; above all for close ones."""
    return float(np.exp(-rules.spread_cost * (s.top - v.t[work.active[0]].low) / COST))


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
    """Create matches from the searched tickets; returns the new total number of matches.

    made    the number of matches so far;  start, ticket  first ticket of each match and all tickets, appended to
    A match begins with its lowest ticket. The match with the least spread is found for each ticket, and the disjoint
    ones with the largest total value are created.
    """
    at, ahead, second = search.at, -1, -1  # the next two parties of size `largest`: a match needs one, or one per team
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
    """Keep the places that are not taken; returns their number."""
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
    """Select the tickets for one pass into `at`; returns their number, 0 if they cannot form a match."""
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
    """Select the tickets that accept a cell from those of one pass into `selected`; see `_fit`.

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
    """Create matches from tickets not taken: (offset of each match, places in the view); updates `taken`.

    cells   uint64 (C,)  what the tickets of a match accept together, see attribute_cells; 0: anything
    room    int64 (2^R,)  see view.role_room
    """
    n = len(v.t)
    work = work_for(n, rules, room)
    start, ticket, made = np.zeros(n // rules.teams + 2, np.int64), np.empty(n, np.int64), INT64(0)
    left, at = np.flatnonzero(~taken), np.empty(n, np.int64)
    inside, accepts = np.empty(n, np.int64), np.empty(n, np.uint64)
    choosy = len(cells) > 0 and cells[0] > 0
    wider, most_spread, longest = _widest(v, windows, left)
    patient = rules.roles or longest >= rules.party_wait  # otherwise no match with different party sizes is allowed
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
