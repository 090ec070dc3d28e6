"""Kernel that selects disjoint matches: weighted interval scheduling."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.kernel_options import compiled
from evenmatch.matchmaking.tickets import Whole


@compiled
def pick(last: Whole, value: Floats) -> Whole:
    """The first tickets of the disjoint matches with the largest total value, ascending.

    last   int64 (N,)    the last ticket of the match that begins at each ticket; -1: no match
    value  float64 (N,)  the value of that match, above 0
    Dynamic programming from the end, O(N); a greedy choice would leave a fifth of the matchable tickets unmatched.
    """
    count = len(last)
    best = np.zeros(count + 1)
    for at in range(count - 1, -1, -1):
        best[at] = best[at + 1]
        if last[at] >= 0:
            best[at] = max(best[at], value[at] + best[last[at] + 1])
    picked, found, at = np.empty(count, np.int64), 0, 0
    while at < count:
        if last[at] >= 0 and value[at] + best[last[at] + 1] >= best[at + 1]:
            picked[found] = at
            found += 1
            at = last[at] + 1
        else:
            at += 1
    return picked[:found].copy()
