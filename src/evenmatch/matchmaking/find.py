"""Kernels that find disjoint matches in a row of tickets: the closest that begins with each, and the best of these."""

from __future__ import annotations

import numpy as np

from evenmatch.matchmaking.collect import Aim, Search, Sums, Work, collect
from evenmatch.matchmaking.compiled import compiled, lean
from evenmatch.matchmaking.pack import choose
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.schedule import pick
from evenmatch.matchmaking.tickets import Whole

REWARD = 600.0  # seconds that a match is worth by itself: waiting and cost change it by half at the most


@compiled
def find(v: View, search: Search, rules: Rules, aim: Aim, work: Work, made: int, start: Whole, ticket: Whole) -> int:
    """Make matches of the tickets that are looked at; returns how many there are in all.

    made    how many there are so far;  start, ticket  the first ticket of each, and all tickets: added to
    A match begins with its lowest ticket. For each ticket the match with the least spread is found, and of these the
    disjoint ones with the largest total value are made. Then, among those that are left, matches are made upwards as
    they come.
    """
    at, ahead, second = search.at, -1, -1  # the next large parties, of which a match has one, or one in each team
    last, value = np.full(len(at), -1, np.int64), np.zeros(len(at))
    for k in range(len(at) - 1, -1, -1):
        t = v.t[at[k]]
        if t.size == aim.largest:
            ahead, second = k, ahead
        needed = ahead if aim.mixed or rules.roles else second
        if needed >= 0 and v.t[at[needed]].low <= min(search.hi[at[k]], t.low + aim.most_spread):
            count, end, sums = collect(v, search, k, rules, aim, work)
            if count:
                last[k], value[k] = end, _value(v, sums, rules, work)
    picked = pick(last, value)
    wanted = np.empty(rules.size + 1, np.int64)
    for sweep in range(2):
        for i in range(len(at) if sweep else len(picked)):
            k = i if sweep else picked[i]
            if last[k] < 0 or search.taken[at[k]]:
                continue
            count, _, sums = collect(v, search, k, rules, aim, work)
            own = ticket[start[made] :]
            size = _choose(v, sums.seats, rules, aim, work, count, wanted, own) if count else 0
            if size:
                made += 1
                start[made] = start[made - 1] + size
                for n in range(size):
                    search.taken[own[n]] = True
    return made


@lean
def _value(v: View, s: Sums, rules: Rules, work: Work) -> float:
    """Seconds that a match of the tickets at hand is worth: more the longer one has waited, less the wider it is."""
    cost = rules.spread_cost * (s.top - v.t[work.active[0]].low)
    return float(REWARD + min(s.waited, REWARD / 2) - min(cost, REWARD / 2))


@compiled
def _choose(v: View, seats: int, rules: Rules, aim: Aim, work: Work, count: int, wanted: Whole, out: Whole) -> int:
    """Those of the tickets at hand that fill the teams: the first, then the longest-waiting. Returns how many.

    None where they reach farther than any of them has waited for: whoever had is not among them.
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
    return taken if top - v.t[active[0]].low <= spread else 0


@lean
def _oldest_first(v: View, active: Whole, count: int) -> None:
    """Order all but the lowest: one that is allowed the widest spread, then the longest-waiting; equals by place."""
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
