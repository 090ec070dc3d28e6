"""Kernels that divide the tickets of a match into teams: the best of all ways where they are few enough to try."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats
from evenmatch.matchmaking.compiled import compiled, lean
from evenmatch.matchmaking.deal import deal
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.roles import covers
from evenmatch.matchmaking.tickets import Whole

EXACT = 16  # tickets, of which all divisions into two teams are tried
EXACT_SOLOS = 8  # team size up to which a table of them is kept


@cache
def companions(size: int) -> NDArray[np.uint8]:
    """For two teams of `size` single players: all choices of those who go with the first; uint8 (ways, 2).

    Each as the bits of the first half of the others, and of the second.  Teams that are too large to try all have none.
    """
    if not 1 < size <= EXACT_SOLOS:
        return np.empty((0, 2), np.uint8)
    others = 2 * size - 1
    half = others // 2
    masks = [sum(1 << one for one in way) for way in combinations(range(others), size - 1)]
    return np.array([(mask & ((1 << half) - 1), mask >> half) for mask in masks], np.uint8)


@compiled
def divide(
    v: View,
    rules: Rules,
    room: Whole,
    start: Whole,
    ticket: Whole,
    table: NDArray[np.uint8],
    gap_cost: float,
    team: Whole,
) -> Whole:
    """The team of each ticket of each match, in `team`; returns which matches could be divided, 1 or 0.

    start, ticket  as `find.find` gives them
    room           int64 (2^R,)  see view.role_room;  table  see `companions`
    gap_cost       seconds that a point between the teams' mean ratings costs
    Of two divisions the one that costs less is better: uneven mean ratings, and party sizes that differ between the
    teams. Of equal ones the first is taken, in an order that depends on nothing but the tickets.
    """
    good = np.zeros(len(start) - 1, np.int64)
    rating, sums = np.empty(2 * EXACT), np.empty((2, 1 << EXACT_SOLOS))
    inside, held = np.empty(EXACT, np.int64), np.empty(len(room), np.int64)
    for match in range(len(start) - 1):
        own, out = ticket[start[match] : start[match + 1]], team[start[match] : start[match + 1]]
        if rules.size == 1 and not rules.roles:
            for i in range(len(own)):
                out[i] = i
            good[match] = 1
        elif rules.teams == 2 and len(table) and len(own) == 2 * rules.size and not rules.roles:
            _best_of_solos(v, own, table, rating, sums, out)
            good[match] = 1
        elif rules.teams == 2 and len(own) <= EXACT:
            good[match] = _best_of_all(v, rules, room, own, gap_cost, inside, held, out)
        else:
            good[match] = deal(v, rules, room, own, out)
    return good


@lean
def _best_of_solos(v: View, own: Whole, table: NDArray[np.uint8], rating: Floats, sums: Floats, out: Whole) -> None:
    """Try every way in the table: two teams of single players. `rating` and `sums` are scratch."""
    others, total = len(own) - 1, v.t[own[0]].rating_sum
    half = others // 2
    for i in range(others):
        rating[i] = v.t[own[i + 1]].rating_sum
        total += rating[i]
    _subset_sums(rating[:half], sums[0])
    _subset_sums(rating[half:others], sums[1])
    least, best, first = np.inf, 0, v.t[own[0]].rating_sum
    for way in range(table.shape[0]):
        gap = abs(total - 2.0 * (first + sums[0, table[way, 0]] + sums[1, table[way, 1]]))
        if gap < least:
            least, best = gap, way
    mask = table[best, 0] | np.int64(table[best, 1]) << half
    out[0] = 0
    for i in range(others):
        out[i + 1] = 1 - (mask >> i & 1)


@lean
def _subset_sums(values: Floats, sums: Floats) -> None:
    """The sum of each subset of these values, by its bits."""
    sums[0] = 0.0
    for i in range(len(values)):
        for mask in range(1 << i):
            sums[mask | 1 << i] = sums[mask] + values[i]


@lean
def _best_of_all(
    v: View, rules: Rules, room: Whole, own: Whole, gap_cost: float, inside: Whole, held: Whole, out: Whole
) -> int:
    """Try every division into two teams, the first ticket in the first; in Gray's order, one ticket moves at a time."""
    count = len(own)
    total = 0.0
    for j in own:
        total += v.t[j].rating_sum
    inside[:] = 0
    inside[0] = 1
    seats, half = v.t[own[0]].size, v.t[own[0]].rating_sum
    least, best = np.inf, -1
    mask = 0
    for step in range(1 << (count - 1)):
        if step:
            bit = 0
            while not step >> bit & 1:
                bit += 1
            i = bit + 1
            mask ^= 1 << i
            inside[i] = 1 - inside[i]
            sign = 2 * inside[i] - 1
            seats += sign * v.t[own[i]].size
            half += sign * v.t[own[i]].rating_sum
        if seats != rules.size:
            continue
        cost = abs(total - 2.0 * half) / rules.size * gap_cost
        if cost < least:
            cost += rules.party_wait * _unlike(v, own, inside)
            if cost < least and (
                not rules.roles or (covers(v, room, own, inside, 0, held) and covers(v, room, own, inside, 1, held))
            ):
                least, best = cost, mask
    if best < 0:
        return 0
    for i in range(count):
        out[i] = 0 if i == 0 or best >> i & 1 else 1
    return 1


@lean
def _unlike(v: View, own: Whole, inside: Whole) -> int:
    """How much larger the largest party of one team is than that of the other."""
    largest, other = 0, 0
    for i in range(len(own)):
        if inside[i]:
            largest = max(largest, v.t[own[i]].size)
        else:
            other = max(other, v.t[own[i]].size)
    return abs(largest - other)


@compiled
def means(v: View, rules: Rules, start: Whole, ticket: Whole, team: Whole, good: Whole) -> tuple[Floats, Floats]:
    """The mean ratings of both teams of each match, or of the strongest and the weakest; nan where it is not good."""
    first, second = np.full(len(good), np.nan), np.full(len(good), np.nan)
    total = np.empty(rules.teams)
    for match in range(len(good)):
        if not good[match]:
            continue
        total[:] = 0.0
        for i in range(start[match], start[match + 1]):
            total[team[i]] += v.t[ticket[i]].rating_sum
        if rules.teams == 2:
            first[match], second[match] = total[0] / rules.size, total[1] / rules.size
        else:
            first[match], second[match] = total.max() / rules.size, total.min() / rules.size
    return first, second
