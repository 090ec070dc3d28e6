"""Kernels for conflicts between tickets: avoid lists (permanent) and recent meetings (temporary)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenmatch.matchmaking.records import INT64, KernelRules, QueueView, compiled, inner, lean, lean_inner, merged
from evenmatch.matchmaking.tickets import FOREVER, Whole

SECONDS = 1e-6  # in a microsecond


@lean_inner
def _seconds(met: int, now: int, rematch_wait: float, rematch_fade: float) -> float:
    if met == FOREVER:
        return float("inf")
    fresh = 1.0 - (now - met) * SECONDS / rematch_fade
    return rematch_wait * min(max(fresh, 0.0), 1.0)


@lean_inner
def _named_by(v: QueueView, rules: KernelRules, a: int, b: int) -> float:
    """Like `worth`, but only for players that `a` names."""
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
def worth(v: QueueView, rules: KernelRules, a: int, b: int) -> float:
    """Seconds that one of two tickets must have waited before they may meet (0: no conflict; inf: never).

    a, b  places of the tickets in the view
    """
    return max(_named_by(v, rules, a, b), _named_by(v, rules, b, a))


@merged
def mixes(v: QueueView, rules: KernelRules, a: int, b: int) -> bool:
    """Whether newcomers would meet placed players although neither ticket has waited for `newcomer_wait`."""
    alike = (v.t[a].newcomers > 0) == (v.t[b].newcomers > 0)
    return not alike and bool(max(v.t[a].waited, v.t[b].waited) < rules.newcomer_wait)


class Index(NamedTuple):
    """A hash table of named players. Each entry has a linked list of the tickets that name the player.

    key, head  int64 (R,)  player and first entry, or -1;  then, by, row  int64 (C,)  next entry, place, row of names
    """

    key: Whole
    head: Whole
    then: Whole
    by: Whole
    row: Whole


@lean_inner
def _cell(key: Whole, player: int) -> int:
    """The cell of a player in the table, or the free cell for it."""
    mask = len(key) - 1
    cell = np.int64(np.uint64(player) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
    while key[cell] >= 0 and key[cell] != player:
        cell = (cell + 1) & mask
    return int(cell)


@inner
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


@lean_inner
def _pairs(
    t: Any,  # noqa: ANN401
    members: Any,  # noqa: ANN401
    named: Any,  # noqa: ANN401
    index: Index,
    rules: tuple[int, float, float],
    start: Whole,
    others: Whole,
) -> None:
    """Count each ticket's conflicts in `start`. If `others` has room, write the conflicting tickets to it."""
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


@compiled
def keep_apart(t: Any, members: Any, named: Any, now: int, rematch_wait: float, rematch_fade: float) -> Any:  # noqa: ANN401
    """The tickets that must not meet now, as (offsets per ticket, int64 (N+1,); places, int64).

    Two tickets conflict until one of them has waited for their `worth`. A hash table with open addressing finds the
    waiting players among those named, so names of absent players cost nothing.
    """
    count = INT64(0)
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


@merged
def meets(v: QueueView, marked: Whole, mark: int, j: int) -> bool:
    """Whether a ticket conflicts with a ticket that has this mark."""
    found = False
    for at in range(v.apart_start[j], v.apart_start[j + 1]):
        found = found or marked[v.apart[at]] == mark
    return found
