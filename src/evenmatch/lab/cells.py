"""Matches divided into cells: by block of time, ladder, period and how many matches the players had behind them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats, History, Integers
from evenmatch.tables import MatchTable

BLOCKS = 500  # consecutive matches are resampled together: what follows another is not independent of it
ENOUGH, LARGE = 50, 5  # blocks, though they be smaller than so many matches
EXPERIENCE = ((0, "0"), (1, "1–9"), (10, "10–29"), (30, "30–99"), (100, "100 or more"))  # matches before: from, label
YEARS, MONTHS = 3, 2  # a history longer than this is looked at by year, or by month and not by day


@dataclass(frozen=True)
class Cells:
    """The cell of each match, and what the matches of a cell have in common; cells are in order of their blocks.

    of          int32 (M,)  the cell of each match
    warm_up     bool (C,)   whether it lies in the warm-up share
    block       int32 (C,)  block of time, counted through the history
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
        """The values (C, …) of the chosen cells summed by block: (blocks, …)."""
        summed = np.zeros((self.blocks, *values.shape[1:]))
        block = self.block[chosen]
        first = np.flatnonzero(np.diff(block, prepend=-1))
        if len(first):
            summed[block[first]] = np.add.reduceat(values[chosen], first)
        return summed


def divide(matches: MatchTable, warm_up: int) -> Cells:
    """Cells of these matches, the first `warm_up` of which are the warm-up."""
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
    return Cells(
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
    """How many blocks to make of so many matches: of five or more each, unless that would leave few of them."""
    return min(BLOCKS, matches, max(ENOUGH, matches // LARGE))


def fewest_matches(history: History) -> NDArray[np.int64]:
    """How many matches the least experienced player of each match had behind them: int64 (M,)."""
    player = history.columns.player
    order = np.argsort(player, kind="stable")
    first = np.flatnonzero(np.diff(player[order], prepend=-1))
    size = np.diff(first, append=len(player))
    before = np.empty(len(player), np.int64)
    before[order] = np.arange(len(player)) - np.repeat(first, size)
    return np.minimum.reduceat(before, history.match_slots[:-1])


def _periods(history: History) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Period of each match, by year, month or day, and their names."""
    time = history.columns.time.astype("datetime64[us]")
    unit = "D"
    for longer, least in (("M", MONTHS), ("Y", YEARS)):
        if len(np.unique(time.astype(f"datetime64[{longer}]"))) > least:
            unit = longer
    names, period = np.unique(time.astype(f"datetime64[{unit}]"), return_inverse=True)
    return period.astype(np.int64), tuple(str(name) for name in names)
