"""Sort the teams of a match by order of finish, independently of the order in which the match lists them."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Columns, Floats
from evenmatch.systems.compiled import kernel, rarely


@kernel
def are_alike(h: Columns, first: int, row: int, other: int, low: int, high: int, scratch: Floats) -> bool:
    """Whether two teams have the same place and, up to rounding, the same numbers in these columns of scratch."""
    alike = h.place[first + row] == h.place[first + other]
    for column in range(low, high):
        alike = alike and np.float32(scratch[row, column]) == np.float32(scratch[other, column])
    return alike


@kernel
def comes_before(h: Columns, first: int, row: int, other: int, low: int, high: int, scratch: Floats) -> bool:
    """Whether a team is sorted before another, by place and then by these columns of scratch.

    Rounded numbers are compared first; otherwise the order of two equal teams would depend on how sums were rounded.
    """
    if h.place[first + row] != h.place[first + other]:
        return h.place[first + row] < h.place[first + other]
    for column in range(low, high):
        if np.float32(scratch[row, column]) != np.float32(scratch[other, column]):
            return scratch[row, column] < scratch[other, column]
    for column in range(low, high):
        if scratch[row, column] != scratch[other, column]:
            return scratch[row, column] < scratch[other, column]
    return False


@rarely
def sort_teams(h: Columns, first: int, count: int, low: int, high: int, scratch: Floats, order: int) -> None:
    """Write the rows of a match's teams into a column of scratch in the order of finish, by Shell sort.

    Teams at the same place are sorted by columns `low` up to `high` of their rows. These must hold every number that
    distinguishes teams for the caller, so that the order in which a match lists them has no effect.
    order  the column to write to
    """
    for rank in range(count):
        scratch[rank, order] = float(rank)
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for start in range(gap, count):
            row, rank = int(scratch[start, order]), start
            while rank >= gap and comes_before(h, first, row, int(scratch[rank - gap, order]), low, high, scratch):
                scratch[rank, order] = scratch[rank - gap, order]
                rank -= gap
            scratch[rank, order] = float(row)
        gap //= 3


@rarely
def rank_teams(
    h: Columns, first: int, count: int, low: int, high: int, scratch: Floats, order: int, ranks: int
) -> None:
    """Sort teams as `sort_teams` does, and write each team's rank into the column `ranks`.

    Equal teams share the best of their ranks.
    """
    sort_teams(h, first, count, low, high, scratch, order)
    for rank in range(count):
        row = int(scratch[rank, order])
        scratch[row, ranks] = float(rank)
        if rank > 0:
            above = int(scratch[rank - 1, order])
            if are_alike(h, first, row, above, low, high, scratch):
                scratch[row, ranks] = scratch[above, ranks]
