"""Kernels that find the matches in a row of tickets: the closest that begins with each, the best disjoint ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.collect import Work, collect, work_for
from evenmatch.matchmaking.compiled import compiled, lean
from evenmatch.matchmaking.pack import choose
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.schedule import pick
from evenmatch.matchmaking.tickets import Whole

REWARD = 600.0  # seconds that a match is worth by itself: waiting and cost change it by half at the most


@compiled
def find(
    v: View,
    lo: Floats,
    hi: Floats,
    at: Whole,
    rules: Rules,
    room: Whole,
    barred: Flags,
    sums: Any,  # noqa: ANN401
) -> tuple[Whole, Whole]:
    """Disjoint matches among the tickets at these places: (first ticket of each match, tickets).

    lo, hi  float64 (N,)  the windows that must hold everybody else, by place in the view
    at      int64 (K,)    ascending places in the view: the tickets to look at
    room    int64 (2^R,)  see view.role_room
    barred  bool (N,)     tickets with which no match may begin
    sums    SUMS (1,)     scratch
    A match begins with its lowest ticket. For each ticket the match with the least spread is found, and of these the
    disjoint ones with the largest total value are chosen.
    """
    work = work_for(rules.teams, rules.size, room, sums)
    last, value = np.full(len(at), -1, np.int64), np.zeros(len(at))
    for k in range(len(at)):
        if not barred[at[k]]:
            count, end = collect(v, lo, hi, at, k, rules, work)
            if count:
                last[k], value[k] = end, _value(v, rules, work)
    picked = pick(last, value)
    start = np.zeros(len(picked) + 1, np.int64)
    chosen = np.empty(len(at), np.int64)
    wanted = np.empty(rules.size + 1, np.int64)
    for match in range(len(picked)):
        count, _ = collect(v, lo, hi, at, picked[match], rules, work)
        start[match + 1] = start[match] + _choose(v, rules, work, count, wanted, chosen[start[match] :])
    return start, chosen[: start[-1]].copy()


@lean
def _value(v: View, rules: Rules, work: Work) -> float:
    """Seconds that a match of the tickets at hand is worth: more the longer one has waited, less the wider it is."""
    s = work.sums[0]
    cost = rules.spread_cost * (s.top - v.t[work.active[0]].low)
    return float(REWARD + min(s.waited, REWARD / 2) - min(cost, REWARD / 2))


@compiled
def _choose(v: View, rules: Rules, work: Work, count: int, wanted: Whole, out: Whole) -> int:
    """Those of the tickets at hand that fill the teams: the first, then the longest-waiting. Returns how many."""
    if rules.roles or work.sums[0].seats == rules.teams * rules.size:
        out[:count] = work.active[:count]
        return count
    party = v.t[work.active[0]].size
    choose(work.counts, rules.teams, rules.size, party, rules.mixed, wanted)
    _oldest_first(v, work.active, count)
    taken = 0
    for i in range(count):
        size = v.t[work.active[i]].size
        if wanted[size] > 0:
            wanted[size] -= 1
            out[taken] = work.active[i]
            taken += 1
    return taken


@lean
def _oldest_first(v: View, active: Whole, count: int) -> None:
    """Order all but the first by waiting time, those of equal times by their places."""
    for i in range(2, count):
        own, at = active[i], i
        while at > 1 and v.t[active[at - 1]].waited < v.t[own].waited:
            active[at] = active[at - 1]
            at -= 1
        active[at] = own
