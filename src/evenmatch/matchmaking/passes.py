"""The kernel that makes matches in order of preference: chosen filters, large parties, like against like, at home."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.collect import Aim, Search, work_for
from evenmatch.matchmaking.compiled import compiled, lean
from evenmatch.matchmaking.find import find
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.tickets import Whole

EVERYWHERE = -1  # at home in every region


class Windows(NamedTuple):
    """The windows of all tickets, by place in the view: as chosen, and now; float64 (N,)."""

    chosen_lo: Floats
    chosen_hi: Floats
    lo: Floats
    hi: Floats


class Places(NamedTuple):
    """Where matches can be played.

    region  int64 (R,)  bit numbers in the order of their names; empty: nobody told any
    home    int64 (N,)  the bit of the region with the best ping of each ticket, or EVERYWHERE
    """

    region: Whole
    home: Whole


@compiled
def make_matches(
    v: View,
    windows: Windows,
    places: Places,
    taken: Flags,
    rules: Rules,
    room: Whole,
) -> tuple[Whole, Whole]:
    """Matches of the tickets that are not taken: (first of each match, places in the view); `taken` is changed.

    room    int64 (2^R,)  see view.role_room
    """
    n = len(v.t)
    work = work_for(n, rules, room)
    start, ticket, made = np.zeros(n // rules.teams + 2, np.int64), np.empty(n, np.int64), 0
    left, at = np.flatnonzero(~taken), np.empty(n, np.int64)
    wider, most_spread, longest = _widest(v, windows, left)
    patient = rules.roles or longest >= rules.party_wait  # else no match of unlike parties is ever full
    for level in range(1 + wider):
        lo = windows.lo if level else windows.chosen_lo
        hi = windows.hi if level else windows.chosen_hi
        for largest in range(rules.size, 0, -1):
            left = left[: _still(taken, left)]
            if not _has_size(v, left, largest):
                continue
            for mixed in range(2 if largest > 1 and patient else 1):
                aim = Aim(largest, mixed == 1, most_spread)
                for away in range(2 if len(places.region) > 1 else 1):
                    for place in range(max(len(places.region), 1)):
                        region = places.region[place] if len(places.region) else -1
                        count = _fit(v, rules, aim, places, region, away == 1, taken, left, at)
                        if count and (not rules.roles or _can_cover(v, rules, room, at[:count])):
                            search = Search(lo, hi, at[:count], taken)
                            made = find(v, search, rules, aim, work, made, start, ticket)
    return start[: made + 1].copy(), ticket[: start[made]].copy()


@lean
def _widest(v: View, windows: Windows, left: Whole) -> tuple[bool, float, float]:
    """Whether any window is wider than it was chosen, the widest spread that anybody is allowed, the longest wait."""
    wider, spread, waited = False, 0.0, 0.0
    for j in left:
        wider = wider or windows.lo[j] < windows.chosen_lo[j] or windows.hi[j] > windows.chosen_hi[j]
        spread, waited = max(spread, v.t[j].spread), max(waited, v.t[j].waited)
    return wider, spread, waited


@lean
def _still(taken: Flags, left: Whole) -> int:
    """Keep the places that are not taken; how many they are."""
    count = 0
    for j in left:
        if not taken[j]:
            left[count] = j
            count += 1
    return count


@lean
def _has_size(v: View, left: Whole, size: int) -> bool:
    found = False
    for j in left:
        found = found or v.t[j].size == size
    return found


@lean
def _can_cover(v: View, rules: Rules, room: Whole, at: Whole) -> bool:
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


@lean
def _fit(
    v: View,
    rules: Rules,
    aim: Aim,
    places: Places,
    region: int,
    away: bool,
    taken: Flags,
    left: Whole,
    at: Whole,
) -> int:
    """The tickets for one pass, in `at`: how many; 0 where they cannot make a match."""
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
