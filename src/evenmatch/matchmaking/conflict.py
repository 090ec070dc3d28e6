"""Kernels that say who is not to meet whom: avoid lists for ever, recent meetings for a while."""

from __future__ import annotations

from evenmatch.matchmaking.compiled import lean
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.tickets import FOREVER

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
                if v.named[n].met == FOREVER:
                    return float("inf")
                fresh = 1.0 - (rules.now - v.named[n].met) * SECONDS / rules.rematch_fade
                most = max(most, rules.rematch_wait * min(max(fresh, 0.0), 1.0))
    return most


@lean
def apart(v: View, rules: Rules, a: int, b: int) -> bool:
    """Whether two tickets are not to meet now: the longer-waiting of them has not waited what it is worth."""
    return bool(worth(v, rules, a, b) > max(v.t[a].waited, v.t[b].waited))


@lean
def mixes(v: View, rules: Rules, a: int, b: int) -> bool:
    """Whether newcomers would meet others although neither ticket has waited for that."""
    alike = (v.t[a].newcomers > 0) == (v.t[b].newcomers > 0)
    return not alike and bool(max(v.t[a].waited, v.t[b].waited) < rules.newcomer_wait)
