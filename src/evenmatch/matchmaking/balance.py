"""Kernels that divide the tickets of a match into teams: exact for few tickets, a heuristic for many."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.records import INT64, KernelRules, QueueView, compiled, inner, lean_inner
from evenmatch.matchmaking.roles import assign, covers
from evenmatch.matchmaking.tickets import Whole

ROUNDS = 50  # rounds of swaps over all pairs of tickets, at most; usually a few suffice


@inner
def _kinds(v: QueueView, rules: KernelRules, room: Whole, own: Whole) -> Whole:
    """The kind of each ticket: its size, or the role of single players. Only tickets of one kind are swapped."""
    kind = np.empty(len(own), np.int64)
    for i in range(len(own)):
        kind[i] = v.t[own[i]].size
    if not rules.roles or kind.max() > 1:
        return kind
    masks = np.empty(len(own), np.int64)
    for i in range(len(own)):
        masks[i] = v.role[v.t[own[i]].first]
    roles = 0
    while 1 << roles < len(room):
        roles += 1
    need = np.empty(roles, np.int64)
    for role in range(roles):
        need[role] = (room[1 << role] - room[0]) * rules.teams
    if assign(masks, need, kind):
        kind += 2  # roles begin at -1, kinds at 1
    return kind


@inner
def _deal_evenly(rules: KernelRules, kind: Whole, rating: Floats, team: Whole, total: Floats) -> bool:
    """Deal equal numbers of each kind to every team, the strongest to the weakest team. False if that is impossible."""
    largest = 0
    for one in kind:
        largest = max(largest, one)
    for one in range(1, largest + 1):
        count = 0
        for other in kind:
            count += other == one
        if count % rules.teams:
            return False
    team[:] = -1
    dealt = np.zeros(rules.teams, np.int64)
    for one in range(largest, 0, -1):
        dealt[:] = 0
        each = 0
        for i in range(len(kind)):
            each += kind[i] == one
        each //= rules.teams
        for _ in range(each * rules.teams):
            i = -1
            for other in range(len(kind)):  # the strongest remaining
                if kind[other] == one and team[other] < 0 and (i < 0 or rating[other] > rating[i]):
                    i = other
            to = -1
            for other in range(rules.teams):
                if dealt[other] < each and (to < 0 or total[other] < total[to]):
                    to = other
            team[i] = to
            dealt[to] += 1
            total[to] += rating[i]
    return True


@lean_inner
def _fill_one(order: Whole, sizes: Whole, number: int, size: int, team: Whole, made: Flags) -> bool:
    """Fill one team exactly from unassigned tickets. `made` is scratch: [inspected tickets, players]."""
    begin = 0
    while begin < len(order) and team[order[begin]] >= 0:
        begin += 1
    if begin == len(order):
        return False
    left = size - sizes[begin]
    team[order[begin]] = number
    made[:] = False
    made[0, 0] = True
    for at in range(len(order)):
        for seats in range(size + 1):
            made[at + 1, seats] = made[at, seats]
            if team[order[at]] < 0 and seats >= sizes[at] and made[at, seats - sizes[at]]:
                made[at + 1, seats] = True
    if not made[len(order), left]:
        return False
    for at in range(len(order) - 1, -1, -1):
        if not made[at, left]:
            team[order[at]] = number
            left -= sizes[at]
    return True


@inner
def _fill(v: QueueView, rules: KernelRules, own: Whole, rating: Floats, team: Whole, total: Floats) -> bool:
    """Fill the teams one by one, starting each with the largest remaining party. False if that fails."""
    team[:] = -1
    order, sizes, at = np.empty(len(own), np.int64), np.empty(len(own), np.int64), 0
    for size in range(rules.size, 0, -1):
        for i in range(len(own)):
            if v.t[own[i]].size == size:
                order[at], sizes[at] = i, size
                at += 1
    made = np.zeros((len(own) + 1, rules.size + 1), np.bool_)
    for number in range(rules.teams):
        if not _fill_one(order, sizes, number, rules.size, team, made):
            return False
    total[:] = 0.0
    for i in range(len(own)):
        total[team[i]] += rating[i]
    return True


@lean_inner
def _all_cover(v: QueueView, rules: KernelRules, room: Whole, own: Whole, team: Whole, held: Whole) -> bool:
    good = True
    for number in range(rules.teams):
        good = good and covers(v, room, own, team, number, held)
    return good


@lean_inner
def _swap(
    v: QueueView,
    rules: KernelRules,
    room: Whole,
    own: Whole,
    kind: Whole,
    rating: Floats,
    team: Whole,
    total: Floats,
    held: Whole,
) -> bool:
    """Swap each pair of one kind that makes two teams more even. Returns whether any pair was swapped."""
    swapped = False
    for a in range(len(own)):
        for b in range(a + 1, len(own)):
            if team[a] == team[b] or kind[a] != kind[b]:
                continue
            moved, gap = rating[a] - rating[b], total[team[a]] - total[team[b]]
            if abs(gap - 2.0 * moved) >= abs(gap) - 1e-9 * (abs(gap) + 1e-12):
                continue
            team[a], team[b] = team[b], team[a]
            if rules.roles and not (
                covers(v, room, own, team, team[a], held) and covers(v, room, own, team, team[b], held)
            ):
                team[a], team[b] = team[b], team[a]
                continue
            total[team[b]] -= moved
            total[team[a]] += moved
            swapped = True
    return swapped


@inner
def assign_teams(v: QueueView, rules: KernelRules, room: Whole, own: Whole, team: Whole) -> int:
    """Write the team of each ticket of `own` to `team`. Returns 1, or 0 if no division was found.

    If the numbers allow it, tickets of each kind are dealt evenly, the strongest to the weakest team. Otherwise the
    teams are filled one by one. Then tickets of one kind are swapped while that makes teams more even.
    """
    kind, held = _kinds(v, rules, room, own), np.empty(len(room), np.int64)
    rating = np.empty(len(own))
    for i in range(len(own)):
        rating[i] = v.t[own[i]].rating_sum
    total = np.zeros(rules.teams)
    if not (_deal_evenly(rules, kind, rating, team, total) or _fill(v, rules, own, rating, team, total)):
        return 0
    if rules.roles and not _all_cover(v, rules, room, own, team, held):
        return 0
    for _ in range(ROUNDS):
        if not _swap(v, rules, room, own, kind, rating, team, total, held):
            break
    return 1


EXACT = 16  # with at most this many tickets, all divisions into two teams are tried
EXACT_SOLOS = 8  # up to this team size, the divisions of single players are precomputed


@cache
def companions(size: int) -> NDArray[np.uint8]:
    """All choices of team-mates for the first of 2 * `size` single players; uint8 (choices, 2).

    A choice has the bits of the first half of the other players and those of the second half. Empty for large teams.
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
    """Try every choice of the table for two teams of single players. `rating` and `sums` are scratch."""
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
    """Write the team of each ticket to `team`. Returns 1 for each match, or 0 if it cannot be divided.

    start, ticket  as returned by passes.make_matches
    room           int64 (2^R,)  see view.role_room;  table  see `companions`
    gap_cost       cost in seconds of one point between the teams' mean ratings
    Chooses the cheapest division. Different mean ratings cost, and so do different party sizes. Ties are broken by an
    order that depends only on the tickets.
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
