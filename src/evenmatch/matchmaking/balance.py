"""Kernels that divide the tickets of a match into teams: exact for few tickets, a heuristic for many."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats
from evenmatch.matchmaking.kernel_options import INT64, compiled, lean_inner
from evenmatch.matchmaking.records import KernelRules, QueueView
from evenmatch.matchmaking.roles import covers
from evenmatch.matchmaking.team_swaps import assign_teams
from evenmatch.matchmaking.tickets import Whole

EXACT = 16  # up to this many tickets all divisions into two teams are tried
EXACT_SOLOS = 8  # up to this team size the divisions of single players are precomputed


@cache
def companions(size: int) -> NDArray[np.uint8]:
    """All choices of team mates of the first of 2 * `size` single players; uint8 (choices, 2).

    Each choice has the bits of the first half of the other players, and of the second half. Empty for large teams.
    """
    if not 1 < size <= EXACT_SOLOS:
        return np.empty((0, 2), np.uint8)
    others = 2 * size - 1
    half = others // 2
    masks = [sum(1 << player for player in choice) for choice in combinations(range(others), size - 1)]
    return np.array([(mask & ((1 << half) - 1), mask >> half) for mask in masks], np.uint8)


@lean_inner
def _subset_sums(values: Floats, sums: Floats) -> None:
    """The sums of all subsets of the values, indexed by the bits of the subset."""
    sums[0] = 0.0
    for i in range(len(values)):
        for mask in range(1 << i):
            sums[mask | 1 << i] = sums[mask] + values[i]


@lean_inner
def _best_of_solos(
    v: QueueView, own: Whole, table: NDArray[np.uint8], rating: Floats, sums: Floats, out: Whole
) -> None:
    """Try every choice in the table, for two teams of single players. `rating` and `sums` are scratch."""
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


@lean_inner
def _unlike(v: QueueView, own: Whole, inside: Whole) -> int:
    """The difference between the sizes of the largest parties of the two teams."""
    largest, other = 0, 0
    for i in range(len(own)):
        if inside[i]:
            largest = max(largest, v.t[own[i]].size)
        else:
            other = max(other, v.t[own[i]].size)
    return abs(largest - other)


@lean_inner
def _best_of_all(
    v: QueueView, rules: KernelRules, room: Whole, own: Whole, gap_cost: float, inside: Whole, held: Whole, out: Whole
) -> int:
    """Try every division into two teams with the first ticket in the first team, in Gray code order."""
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
                not rules.roles
                or (covers(v, room, own, inside, INT64(0), held) and covers(v, room, own, inside, INT64(1), held))
            ):
                least, best = cost, mask
    if best < 0:
        return 0
    for i in range(count):
        out[i] = 0 if i == 0 or best >> i & 1 else 1
    return 1


@compiled
def divide(
    v: QueueView,
    rules: KernelRules,
    room: Whole,
    start: Whole,
    ticket: Whole,
    table: NDArray[np.uint8],
    gap_cost: float,
    team: Whole,
) -> Whole:
    """Divide matches into teams: `team` is the output for each ticket; returns 1 or 0 (impossible) for each match.

    start, ticket  as returned by disjoint_matches.find
    room           int64 (2^R,)  see view.role_room;  table  see `companions`
    gap_cost       cost in seconds of one point between the teams' mean ratings
    The division with the lowest cost is chosen; uneven mean ratings and party sizes that differ between teams cost.
    Ties are resolved by an order that depends only on the tickets.
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
            good[match] = assign_teams(v, rules, room, own, out)
    return good
