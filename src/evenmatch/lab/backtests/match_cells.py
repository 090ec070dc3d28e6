"""Division of matches into cells by block of time, ladder, period and experience of the players."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats, History, Integers
from evenmatch.tables import MatchTable

BLOCKS = 500  # blocks of consecutive matches are resampled together, since consecutive matches are not independent
ENOUGH, LARGE = 50, 5  # at least ENOUGH blocks, even if each then has fewer than LARGE matches
# Lowest number of earlier matches, label.
EXPERIENCE = ((0, "0"), (1, "1–9"), (10, "10–29"), (30, "30–99"), (100, "100 or more"))
YEARS, MONTHS = 3, 2  # a history of more than this many years (months) is divided by year (month), else by day


@dataclass(frozen=True)
class MatchCells:
    """The cell of each of M matches, and the properties of each of C cells, ordered by block.

    of          int32 (M,)  cell of each match
    warm_up     bool (C,)   whether the cell is part of the warm-up
    block       int32 (C,)  block of time, numbered over the whole history
    ladder, period, experience  int32 (C,)  indices into the labels
    """

    of: Integers
    warm_up: NDArray[np.bool_]
    block: Integers
    ladder: Integers
    period: Integers
    experience: Integers
    blocks: int
    warm_up_blocks: int
    ladders: tuple[str, ...]
    periods: tuple[str, ...]
    experiences: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.block)

    def by_block(self, values: Floats, chosen: NDArray[np.bool_]) -> Floats:
        """Sum the values (C, …) of the chosen cells by block: (blocks, …)."""
        summed = np.zeros((self.blocks, *values.shape[1:]))
        block = self.block[chosen]
        first = np.flatnonzero(np.diff(block, prepend=-1))
        if len(first):
            summed[block[first]] = np.add.reduceat(values[chosen], first)
        return summed


def divide(matches: MatchTable, warm_up: int) -> MatchCells:
    """Divide matches into cells; the first `warm_up` matches are the warm-up."""
    history = matches.history
    count = len(history)
    number = np.arange(count)
    early, late = _blocks(warm_up), _blocks(count - warm_up)
    before = number * early // max(warm_up, 1)
    after = early + (number - warm_up) * late // max(count - warm_up, 1)
    block = np.where(number < warm_up, before, after)
    period, periods = _periods(history)
    starts = [start for start, _ in EXPERIENCE]
    experience = np.searchsorted(starts, fewest_matches(history), side="right") - 1
    sizes = (early + late, len(matches.ladders), len(periods), len(EXPERIENCE))
    kinds, of = np.unique(np.ravel_multi_index((block, matches.ladder, period, experience), sizes), return_inverse=True)
    of_block, of_ladder, of_period, of_experience = (i.astype(np.int32) for i in np.unravel_index(kinds, sizes))
    return MatchCells(
        of.astype(np.int32),
        of_block < early,
        of_block,
        of_ladder,
        of_period,
        of_experience,
        blocks=early + late,
        warm_up_blocks=early,
        ladders=matches.ladders,
        periods=periods,
        experiences=tuple(label for _, label in EXPERIENCE),
    )


def _blocks(matches: int) -> int:
    """Number of blocks: at most BLOCKS, of LARGE or more matches each unless that gives fewer than ENOUGH."""
    return min(BLOCKS, matches, max(ENOUGH, matches // LARGE))


def fewest_matches(history: History) -> NDArray[np.int64]:
    """Number of earlier matches of the least experienced player in each match: int64 (M,)."""
    player = history.columns.player
    order = np.argsort(player, kind="stable")
    first = np.flatnonzero(np.diff(player[order], prepend=-1))
    size = np.diff(first, append=len(player))
    before = np.empty(len(player), np.int64)
    before[order] = np.arange(len(player)) - np.repeat(first, size)
    return np.minimum.reduceat(before, history.match_slots[:-1])


def _periods(history: History) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Period of each match (year, month or day) and the names of the periods."""
    time = history.columns.time.astype("datetime64[us]")
    unit = "D"
    for longer, least in (("M", MONTHS), ("Y", YEARS)):
        if len(np.unique(time.astype(f"datetime64[{longer}]"))) > least:
            unit = longer
    names, period = np.unique(time.astype(f"datetime64[{unit}]"), return_inverse=True)
    return period.astype(np.int64), tuple(str(name) for name in names)
