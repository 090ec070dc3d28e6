"""Kernels that divide large matches into teams: deal tickets evenly, then swap pairs while that helps."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.kernel_options import inner, lean_inner
from evenmatch.matchmaking.records import KernelRules, QueueView
from evenmatch.matchmaking.roles import assign, covers
from evenmatch.matchmaking.tickets import Whole

ROUNDS = 50  # most rounds of swaps over all pairs of tickets; usually a few suffice


@inner
def _kinds(v: QueueView, rules: KernelRules, room: Whole, own: Whole) -> Whole:
    """The kind of each ticket; only tickets of one kind (size, or role of single players) are swapped."""
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
        kind += 2  # from 1
    return kind


@inner
def _deal_evenly(rules: KernelRules, kind: Whole, rating: Floats, team: Whole, total: Floats) -> bool:
    """Deal equal numbers of each kind to every team, the strongest to the weakest team; False if impossible."""
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
    """Fill one team exactly from unassigned tickets; `made` is scratch: [inspected tickets, players]."""
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
    """Fill the teams one by one, each starting with the largest remaining party; False if that fails."""
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
    """Swap pairs of one kind while that makes two teams more even; returns whether any pair was swapped."""
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
    """Divide one match into teams: 1 if possible, else 0. `team` is the output for each ticket of `own`.

    Tickets of one kind (party size, or role of a single player) are dealt evenly if their number allows it, the
    strongest to the weakest team; otherwise the teams are filled one by one. Then tickets of one kind are swapped while
    the teams become more even.
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
