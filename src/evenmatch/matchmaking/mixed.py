"""Kernels that fill two teams exactly from parties of any sizes: a subset sum over both fills at once."""

from __future__ import annotations

import numpy as np

from evenmatch.matchmaking.compiled import compiled, lean
from evenmatch.matchmaking.tickets import Whole


@lean
def two_fill(counts: Whole, size: int, party: int, scratch: Whole) -> bool:
    """Whether two teams of `size` can be filled, one of them with a party of size `party`; see `pack.fills`."""
    total = 0
    for one in range(1, size + 1):
        total += one * counts[one]
    if total < 2 * size:
        return False
    fills = scratch[: size + 1]  # bit b of word a: the first team can have a players and the second b
    fills[:] = 0
    fills[party] = 1
    for one in range(size, 0, -1):
        for _ in range(_useful(counts, size, party, one)):
            _add(fills, one, size)
    return _has(fills, size, size)


@compiled
def fill_two(counts: Whole, size: int, party: int, wanted: Whole) -> None:
    """How many parties of each size fill the two teams; see `pack.choose`."""
    items = 0
    for one in range(1, size + 1):
        items += _useful(counts, size, party, one)
    after = np.zeros((items + 1, size + 1), np.int64)
    sizes = np.empty(items, np.int64)
    after[0, party] = 1
    at = 0
    for one in range(size, 0, -1):
        for _ in range(_useful(counts, size, party, one)):
            after[at + 1] = after[at]
            _add(after[at + 1], one, size)
            sizes[at] = one
            at += 1
    wanted[party] += 1
    a, b = size, size
    for item in range(items - 1, -1, -1):
        one = sizes[item]
        if _has(after[item], a, b):
            continue
        wanted[one] += 1
        if a >= one and _has(after[item], a - one, b):
            a -= one
        else:
            b -= one


@lean
def _useful(counts: Whole, size: int, party: int, one: int) -> int:
    """How many further parties of this size could be in two teams at the most."""
    return min(int(counts[one]) - (1 if one == party else 0), 2 * (size // one))


@lean
def _add(fills: Whole, one: int, size: int) -> None:
    """Also count each fill with a party of this size added to either team."""
    most = (1 << (size + 1)) - 1
    for a in range(size, -1, -1):
        word = fills[a]
        grown = word << one
        if a + one <= size:
            fills[a + one] |= word
        fills[a] = (word | grown) & most


@lean
def _has(fills: Whole, a: int, b: int) -> bool:
    return bool(fills[a] >> b & 1)
