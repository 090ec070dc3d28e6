"""Kernels that fill two teams exactly from parties of any sizes: a subset sum over both teams at once."""

from __future__ import annotations

import numpy as np

from evenmatch.matchmaking.kernel_options import inner, lean_inner
from evenmatch.matchmaking.tickets import Whole


@lean_inner
def _begin(fills: Whole, size: int, party: int, largest: int) -> None:
    """Initialize the fills of two teams with the parties that must be in the match."""
    fills[:] = 0
    if party == largest:
        fills[party] = 1
        return
    fills[party] = 1 << largest
    if party + largest <= size:
        fills[party + largest] = 1


@lean_inner
def _has(fills: Whole, a: int, b: int) -> bool:
    return bool(fills[a] >> b & 1)


@lean_inner
def _closes(counts: Whole, gap: int) -> bool:
    """Whether the parties of at most `gap` players have at least `gap` players in total."""
    seats = 0
    for one in range(1, gap + 1):
        seats += one * counts[one]
    return bool(seats >= gap)


@lean_inner
def _useful(counts: Whole, size: int, party: int, largest: int, one: int) -> int:
    """The most further parties of size `one` that two teams could contain."""
    must = (one == party) + (one == largest and largest != party)
    return min(int(counts[one]) - must, 2 * (size // one))


@lean_inner
def _add(fills: Whole, one: int, size: int) -> None:
    """Add the fills with one more party of size `one` in either team."""
    most = (1 << (size + 1)) - 1
    for a in range(size, -1, -1):
        word = fills[a]
        if word:
            if a + one <= size:
                fills[a + one] |= word
            fills[a] = (word | word << one) & most


@lean_inner
def two_fill(counts: Whole, size: int, party: int, largest: int, scratch: Whole) -> bool:
    """Whether two teams can be filled, with parties of sizes `party` and `largest` among them; see `pack.fills`."""
    total = 0
    for one in range(1, largest + 1):
        total += one * counts[one]
    if total < 2 * size or not counts[largest]:
        return False
    if not _closes(counts, size - largest) or not _closes(counts, size - party):
        return False
    fills = scratch[: size + 1]  # bit b of word a: the teams can have a and b players
    _begin(fills, size, party, largest)
    for one in range(largest, 0, -1):
        for _ in range(_useful(counts, size, party, largest, one)):
            _add(fills, one, size)
    return _has(fills, size, size)


@inner
def fill_two(counts: Whole, size: int, party: int, largest: int, wanted: Whole) -> None:
    """Choose the number of parties of each size that fill the two teams; see `pack.choose`."""
    items = 0
    for one in range(1, largest + 1):
        items += _useful(counts, size, party, largest, one)
    after = np.zeros((items + 1, size + 1), np.int64)
    sizes = np.empty(items, np.int64)
    _begin(after[0], size, party, largest)
    at = 0
    for one in range(largest, 0, -1):
        for _ in range(_useful(counts, size, party, largest, one)):
            for a in range(size + 1):
                after[at + 1, a] = after[at, a]
            _add(after[at + 1], one, size)
            sizes[at] = one
            at += 1
    wanted[party] += 1
    if largest != party:
        wanted[largest] += 1
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
