"""Kernels that say who is not to meet whom: avoid lists for ever, recent meetings for a while."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.matchmaking.compiled import compiled, lean, merged
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.tickets import FOREVER, Whole

SECONDS = 1e-6  # in a microsecond


@lean
def worth(v: View, rules: Rules, a: int, b: int) -> float:
    """Seconds of waiting that it is worth to keep two tickets apart: 0 where nothing speaks against them; inf: never.

    a, b  places of the tickets in the view
    """
    return max(_named_by(v, rules, a, b), _named_by(v, rules, b, a))


@lean
def _named_by(v: View, rules: Rules, a: int, b: int) -> float:
    """The same for the players whom `a` names."""
    one, other = v.t[a], v.t[b]
    if one.names & other.players == 0:
        return 0.0
    most = 0.0
    for n in range(one.named_first, one.named_first + one.named_count):
        for m in range(other.first, other.first + other.size):
            if v.named[n].player == v.members[m].player:
                most = max(most, _seconds(v.named[n].met, rules.now, rules.rematch_wait, rules.rematch_fade))
    return most


@lean
def _seconds(met: int, now: int, rematch_wait: float, rematch_fade: float) -> float:
    if met == FOREVER:
        return float("inf")
    fresh = 1.0 - (now - met) * SECONDS / rematch_fade
    return rematch_wait * min(max(fresh, 0.0), 1.0)


@merged
def mixes(v: View, rules: Rules, a: int, b: int) -> bool:
    """Whether newcomers would meet others although neither ticket has waited for that."""
    alike = (v.t[a].newcomers > 0) == (v.t[b].newcomers > 0)
    return not alike and bool(max(v.t[a].waited, v.t[b].waited) < rules.newcomer_wait)


@compiled
def keep_apart(t: Any, members: Any, named: Any, now: int, rematch_wait: float, rematch_fade: float) -> Any:  # noqa: ANN401
    """Which tickets are not to meet now: (first of each ticket's, int64 (N+1,); their places, int64).

    Two are kept apart where the longer-waiting of them has not waited what it is worth. Players named are found by a
    table of them (open addressing), so that it costs nothing where they do not wait.
    """
    count = 0
    for place in range(len(t)):
        count += t[place].named_count
    start, others = np.zeros(len(t) + 1, np.int64), np.empty(0, np.int64)
    if count == 0:
        return start, others
    index = _index(t, named, count)
    rules = (now, rematch_wait, rematch_fade)
    _pairs(t, members, named, index, rules, start, others)
    total = 0
    for place in range(len(t)):
        own = start[place]
        start[place] = total
        total += own
    others = np.empty(total, np.int64)
    _pairs(t, members, named, index, rules, start, others)
    for place in range(len(t), 0, -1):
        start[place] = start[place - 1]
    start[0] = 0
    return start, others


class Index(NamedTuple):
    """Who names whom: a table of players named, with a chain of the tickets that name each.

    key, head  int64 (R,)  player and first entry, or -1;  then, by, row  int64 (C,)  next entry, place, row of names
    """

    key: Whole
    head: Whole
    then: Whole
    by: Whole
    row: Whole


@compiled
def _index(t: Any, named: Any, count: int) -> Index:  # noqa: ANN401
    room = 2
    while room < 2 * count:
        room *= 2
    key, head = np.full(room, -1, np.int64), np.full(room, -1, np.int64)
    then, by, row, at = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64), 0
    for place in range(len(t)):
        for n in range(t[place].named_first, t[place].named_first + t[place].named_count):
            cell = _cell(key, named[n].player)
            key[cell] = named[n].player
            then[at], by[at], row[at] = head[cell], place, n
            head[cell] = at
            at += 1
    return Index(key, head, then, by, row)


@lean
def _pairs(
    t: Any,  # noqa: ANN401
    members: Any,  # noqa: ANN401
    named: Any,  # noqa: ANN401
    index: Index,
    rules: tuple[int, float, float],
    start: Whole,
    others: Whole,
) -> None:
    """Count for each ticket those to be kept apart from it, in `start`; or note them, where `others` is long."""
    for b in range(len(t)):
        for m in range(t[b].first, t[b].first + t[b].size):
            at = index.head[_cell(index.key, members[m].player)]
            while at >= 0:
                a, seconds = index.by[at], _seconds(named[index.row[at]].met, rules[0], rules[1], rules[2])
                if a != b and seconds > max(t[a].waited, t[b].waited):
                    if len(others):
                        others[start[a]], others[start[b]] = b, a
                    start[a] += 1
                    start[b] += 1
                at = index.then[at]


@lean
def _cell(key: Whole, player: int) -> int:
    """Where a player is in the table, or would be."""
    mask = len(key) - 1
    cell = np.int64(np.uint64(player) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
    while key[cell] >= 0 and key[cell] != player:
        cell = (cell + 1) & mask
    return int(cell)


@merged
def meets(v: View, marked: Whole, mark: int, j: int) -> bool:
    """Whether a ticket is to be kept apart from one that has this mark."""
    found = False
    for at in range(v.apart_start[j], v.apart_start[j + 1]):
        found = found or marked[v.apart[at]] == mark
    return found
