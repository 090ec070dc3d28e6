"""Kernels for the columns of a queue: bulk join, and merging new tickets into the sorted order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.kernel_options import compiled, lean, lean_inner
from evenmatch.matchmaking.tickets import Masks, Whole


class Joining(NamedTuple):
    """The columns of `Tickets`, with role and region bits as numbered by the queue."""

    id: Whole
    queued: Whole
    start: Whole
    player: Whole
    percentile: Floats
    rating: Floats
    within: Floats
    loose: Flags
    deviation: Floats
    newcomer: Flags
    roles: Masks
    able: Masks
    named_start: Whole
    named: Whole
    met: Whole


@lean_inner
def bit_of(player: int) -> np.uint64:
    """Map a player to one of 64 bits with a multiplicative hash (Knuth)."""
    return np.uint64(1) << (np.uint64(player) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(58))


@compiled
def join(tickets: Any, members: Any, named: Any, j: Joining, slots: Whole, member: int, name: int) -> None:  # noqa: ANN401
    """Write tickets to these slots, members to the pool from `member`, named players from `name`."""
    for at in range(len(j.id)):
        t, start, stop = tickets[slots[at]], j.start[at], j.start[at + 1]
        t.alive, t.id, t.queued, t.size, t.first = True, j.id[at], j.queued[at], stop - start, member
        low, high, chosen_lo, chosen_hi = j.percentile[start], j.percentile[start], np.inf, -np.inf
        rating_low, rating_high, total, loose, newcomers = j.rating[start], j.rating[start], 0.0, True, 0
        players, names = np.uint64(0), np.uint64(0)
        for m in range(start, stop):
            own, p, w, r = members[member], j.percentile[m], j.within[m], j.rating[m]
            low, high = min(low, p), max(high, p)
            chosen_lo, chosen_hi = min(chosen_lo, p - w), max(chosen_hi, p + w)
            rating_low, rating_high, total = min(rating_low, r), max(rating_high, r), total + r
            loose = loose and j.loose[m]
            newcomers += j.newcomer[m]
            players |= bit_of(j.player[m])
            own.player, own.percentile, own.rating, own.within = j.player[m], p, r, w
            own.deviation, own.roles, own.loose, own.newcomer = j.deviation[m], j.roles[m], j.loose[m], j.newcomer[m]
            member += 1
        t.low, t.high, t.chosen_lo, t.chosen_hi, t.loose = low, high, chosen_lo, chosen_hi, loose
        t.rating_low, t.rating_high, t.rating_sum, t.newcomers = rating_low, rating_high, total, newcomers
        t.players, t.able = players, j.able[at]
        t.named_first, t.named_count = name, j.named_start[at + 1] - j.named_start[at]
        for n in range(j.named_start[at], j.named_start[at + 1]):
            named[name].player, named[name].met = j.named[n], j.met[n]
            names |= bit_of(j.named[n])
            name += 1
        t.names = names


@lean
def merge(order: Whole, fresh: Whole, t: Any, out: Whole) -> int:  # noqa: ANN401
    """Merge two sorted slot lists by percentile, then time, then id, without removed tickets.

    Returns the number of slots written to `out`, which has room for all.
    """
    count, at = 0, 0
    for slot in order:
        if not t[slot].alive:
            continue
        while at < len(fresh):
            other = fresh[at]
            if t[other].alive:
                if t[other].low > t[slot].low:
                    break
                if t[other].low == t[slot].low:
                    if t[other].queued > t[slot].queued:
                        break
                    if t[other].queued == t[slot].queued and t[other].id > t[slot].id:
                        break
                out[count] = other
                count += 1
            at += 1
        out[count] = slot
        count += 1
    for rest in range(at, len(fresh)):
        if t[fresh[rest]].alive:
            out[count] = fresh[rest]
            count += 1
    return count


@compiled
def count_arrivals(counts: Whole, stamps: Whole, j: Joining, span: int) -> None:
    """Count joining players by time (a ring of buckets of `span` microseconds) and percentile."""
    for at in range(len(j.id)):
        stamp = j.queued[at] // span
        row = stamp % len(stamps)
        late = stamps[row] > stamp  # its bucket was reused already; unless a clock was far ahead
        if late and stamps[row] - stamp < 2 * len(stamps):
            continue
        if stamps[row] != stamp:
            counts[row] = 0
            stamps[row] = stamp
        for m in range(j.start[at], j.start[at + 1]):
            counts[row, min(int(j.percentile[m]), counts.shape[1] - 1)] += 1


@lean
def fill_waiting(
    tickets: Any,  # noqa: ANN401 - TICKET
    order: Whole,
    now: int,
    longest: float,
    largest: int,
    steps: Floats,
    even_spread: float,
    t: Any,  # noqa: ANN401 - WAITING
    expired: Whole,
) -> tuple[int, int]:
    """Write the tickets with their present windows to `t` and expired ones to `expired`; returns both counts.

    longest  wait in seconds after which a ticket expires;  largest  larger parties are left out
    steps    float64 (N, 2)  seconds, and the width of a loose filter from then on
    """
    kept, given_up, last = 0, 0, steps[len(steps) - 1, 1]
    for slot in order:
        s = tickets[slot]
        waited = max((now - s.queued) * 1e-6, 0.0)
        if waited >= longest:
            expired[given_up] = s.id
            given_up += 1
            continue
        if s.size > largest:
            continue
        w = t[kept]
        kept += 1
        w.slot, w.waited, w.id, w.low, w.high = slot, waited, s.id, s.low, s.high
        w.chosen_lo, w.chosen_hi, w.rating_low, w.rating_high = s.chosen_lo, s.chosen_hi, s.rating_low, s.rating_high
        w.rating_sum, w.able, w.players, w.names, w.first = s.rating_sum, s.able, s.players, s.names, s.first
        w.named_first, w.named_count, w.size = s.named_first, s.named_count, s.size
        w.newcomers, w.loose = s.newcomers, s.loose
        w.lo, w.hi, w.last_lo, w.last_hi = s.chosen_lo, s.chosen_hi, s.chosen_lo, s.chosen_hi
        width = 0.0
        for step in range(len(steps)):
            if steps[step, 0] <= waited:
                width = steps[step, 1]
        w.spread = even_spread + s.high - s.low
        if s.loose:
            w.lo, w.hi = min(w.lo, s.low - width), max(w.hi, s.high + width)
            w.last_lo, w.last_hi = min(w.last_lo, s.low - last), max(w.last_hi, s.high + last)
    return kept, given_up
