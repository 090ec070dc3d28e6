"""Kernels that decide whether parties can fill the teams exactly, and which parties do."""

from __future__ import annotations

import numpy as np

from evenmatch.matchmaking.records import compiled, inner, lean, lean_inner
from evenmatch.matchmaking.tickets import Whole


@lean_inner
def _begin(fills: Whole, size: int, party: int, largest: int) -> None:
    """Start the fills of two teams with the parties that must be in the match."""
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
    """How many more parties of size `one` two teams could contain."""
    must = (one == party) + (one == largest and largest != party)
    return min(int(counts[one]) - must, 2 * (size // one))


@lean_inner
def _add(fills: Whole, one: int, size: int) -> None:
    """Add the fills that one more party of size `one` allows, in either team."""
    most = (1 << (size + 1)) - 1
    for a in range(size, -1, -1):
        word = fills[a]
        if word:
            if a + one <= size:
                fills[a + one] |= word
            fills[a] = (word | word << one) & most


@lean_inner
def two_fill(counts: Whole, size: int, party: int, largest: int, scratch: Whole) -> bool:
    """Whether two teams can be filled, with parties of sizes `party` and `largest` among them; see `fills`."""
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
    """Choose the number of parties of each size that fill the two teams; see `choose`."""
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


@lean_inner
def _sets(counts: Whole, teams: int, party: int, largest: int, one: int) -> int:
    """The number of sets (one party of size `one` per team), without those that must be in the match."""
    must = (one == party) + (one == largest and largest != party)
    return int(counts[one]) // teams - must


@lean_inner
def _alike(counts: Whole, teams: int, size: int, party: int, largest: int) -> bool:
    """Whether sets of equal parties, one per team, fill the teams. A subset sum in the bits of an integer."""
    must = party if party == largest else party + largest
    if counts[party] < teams or counts[largest] < teams or must > size:
        return False
    sums = 1 << must
    for one in range(1, largest + 1):
        for _ in range(min(_sets(counts, teams, party, largest, one), size // one)):
            sums |= sums << one
    return sums >> size & 1 == 1


@lean_inner
def _first_fit(counts: Whole, teams: int, size: int, party: int, left: Whole, wanted: Whole) -> bool:
    """Fill the teams with the largest parties that fit, starting with `party`; `wanted`, unless empty, counts them."""
    for one in range(size + 1):
        left[one] = counts[one]
    for team in range(teams):
        seats = size
        if team == 0:
            seats -= party
            left[party] -= 1
            if len(wanted):
                wanted[party] += 1
        for one in range(size, 0, -1):
            while left[one] > 0 and one <= seats:
                left[one] -= 1
                seats -= one
                if len(wanted):
                    wanted[one] += 1
        if seats:
            return False
    return True


@lean
def fills(counts: Whole, teams: int, size: int, party: int, largest: int, mixed: bool, scratch: Whole) -> bool:
    """Whether teams of `size` can be filled exactly with parties that include sizes `party` and `largest`.

    counts   int64 (size + 1,)  available parties by size; none is larger than `largest`
    mixed    False: every team has the same party sizes; True: any sizes, exact for two teams, else a heuristic
    scratch  at least max(size + 1, teams) entries
    """
    if not mixed:
        return _alike(counts, teams, size, party, largest)
    if teams == 2:
        return two_fill(counts, size, party, largest, scratch)
    return counts[largest] > 0 and _first_fit(counts, teams, size, party, scratch, scratch[:0])


@inner
def _choose_alike(counts: Whole, teams: int, size: int, party: int, largest: int, wanted: Whole) -> None:
    made = np.zeros((largest + 1, size + 1), np.bool_)  # [largest, sum]: can sets up to this size give the sum
    made[0, 0] = True
    for one in range(1, largest + 1):
        sets = _sets(counts, teams, party, largest, one)
        for total in range(size + 1):
            for times in range(min(sets, total // one) + 1):
                if made[one - 1, total - times * one]:
                    made[one, total] = True
    wanted[party] = teams
    wanted[largest] = teams
    left = size - (party if party == largest else party + largest)
    for one in range(largest, 0, -1):
        for times in range(min(_sets(counts, teams, party, largest, one), left // one), -1, -1):
            if made[one - 1, left - times * one]:
                wanted[one] += times * teams
                left -= times * one
                break


@compiled
def choose(counts: Whole, teams: int, size: int, party: int, largest: int, mixed: bool, wanted: Whole) -> None:
    """Write the number of parties of each size to `wanted`, int64 (size + 1,), large ones first. Requires `fills`."""
    wanted[:] = 0
    if not mixed:
        _choose_alike(counts, teams, size, party, largest, wanted)
    elif teams == 2:
        fill_two(counts, size, party, largest, wanted)
    else:
        _first_fit(counts, teams, size, party, np.empty(size + 1, np.int64), wanted)


@lean
def has_room(counts: Whole, teams: int, size: int, scratch: Whole) -> bool:
    """Whether all available parties fit into teams of at most `size`, by first fit from the largest."""
    left = scratch[:teams]
    left[:] = size
    for party in range(size, 0, -1):
        for _ in range(counts[party]):
            for team in range(teams):
                if left[team] >= party:
                    left[team] -= party
                    break
            else:
                return False
    return True
