"""Kernels for overdue tickets: collect the oldest compatible tickets, wherever they are in the order."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.conflict import meets
from evenmatch.matchmaking.kernel_options import compiled, lean_inner
from evenmatch.matchmaking.pack import has_room
from evenmatch.matchmaking.records import KernelRules, QueueView
from evenmatch.matchmaking.roles import add_party
from evenmatch.matchmaking.tickets import Whole


@lean_inner
def _add(v: QueueView, rules: KernelRules, room: Whole, counts: Whole, held: Whole, scratch: Whole, j: int) -> bool:
    """Count a ticket if seats and roles suffice; False otherwise."""
    size = v.t[j].size
    counts[size] += 1
    if has_room(counts, rules.teams, rules.size, scratch) and (
        not rules.roles or add_party(held, room, rules.teams, v, j)
    ):
        return True
    counts[size] -= 1
    return False


@compiled
def oldest_with(
    v: QueueView,
    lo: Floats,
    hi: Floats,
    order: Whole,
    first: int,
    region: int,
    cell: np.uint64,
    free: Flags,
    rules: KernelRules,
    room: Whole,
    marked: Whole,
    mark: int,
) -> Whole:
    """Collect compatible tickets for a match with `first`, in the given order, until it is full or none is left.

    lo, hi  windows that must contain all other players, by place in the view
    order   places in the view;  region  a bit number;  room  see view.role_room
    cell    what all tickets accept, see attribute_cells; 0: anything
    marked  int64 (N,)  scratch: places with this mark are already collected
    """
    found, count = np.empty(rules.teams * rules.size, np.int64), 1
    counts, held = np.zeros(rules.size + 1, np.int64), np.zeros(len(room), np.int64)
    scratch = np.empty(max(rules.teams, rules.size + 1), np.int64)
    t = v.t[first]
    if t.size > rules.size or lo[first] > t.low or hi[first] < t.high:
        return found[:0]
    if not _add(v, rules, room, counts, held, scratch, first):
        return found[:0]
    found[0], marked[first] = first, mark
    seats, reach, top, low, bottom = t.size, hi[first], t.high, t.low, lo[first]
    rating_low, rating_high = t.rating_low, t.rating_high
    for j in order:
        t = v.t[j]
        if j == first or not free[j] or not t.able >> np.uint64(region) & np.uint64(1) or t.size > rules.size:
            continue
        if v.accepts[j] & cell != cell:
            continue
        if max(bottom, lo[j]) > min(low, t.low) or min(reach, hi[j]) < max(top, t.high):
            continue
        if max(rating_high, t.rating_high) - min(rating_low, t.rating_low) > rules.rating_cap:
            continue
        if meets(v, marked, mark, j) or not _add(v, rules, room, counts, held, scratch, j):
            continue
        found[count], marked[j] = j, mark
        count += 1
        seats += t.size
        reach, bottom, top, low = min(reach, hi[j]), max(bottom, lo[j]), max(top, t.high), min(low, t.low)
        rating_low, rating_high = min(rating_low, t.rating_low), max(rating_high, t.rating_high)
        if seats == rules.teams * rules.size:
            break
    return found[:count]
