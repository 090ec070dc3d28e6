"""Kernel that creates matches by preference: chosen filters, large parties, equal party sizes, home region."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.disjoint_matches import find
from evenmatch.matchmaking.kernel_options import INT64, compiled, lean_inner
from evenmatch.matchmaking.records import KernelRules, QueueView
from evenmatch.matchmaking.ticket_collection import Search, TargetMatch, work_for
from evenmatch.matchmaking.tickets import Masks, Whole

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
