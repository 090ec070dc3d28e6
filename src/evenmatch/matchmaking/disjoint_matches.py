"""Kernels that find disjoint matches in sorted tickets: the closest match from each ticket, then the best set."""

from __future__ import annotations

import numpy as np

from evenmatch.matchmaking.kernel_options import inner, lean_inner
from evenmatch.matchmaking.pack import choose
from evenmatch.matchmaking.records import KernelRules, QueueView
from evenmatch.matchmaking.schedule import pick
from evenmatch.matchmaking.ticket_collection import CollectionBuffers, Search, TargetMatch, TicketTotals, collect
from evenmatch.matchmaking.tickets import Whole

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
    ones with the largest total value are created. A second sweep creates further matches from the remaining tickets,
    upwards; tickets that were taken separate neighbours no more.
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
    picked = pick(last, value)
    wanted = np.empty(rules.size + 1, np.int64)
    for sweep in range(2 if len(picked) else 0):
        for i in range(len(at) if sweep else len(picked)):
            k = i if sweep else picked[i]
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
