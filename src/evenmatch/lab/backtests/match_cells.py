"""Division of matches into cells by block of time, ladder, period and experience of the players."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats, History, Integers, Times
from evenmatch.systems.compiled import cached
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
    days = days_of(matches.history.columns.time)
    division = CellDivision.of(len(matches), warm_up, matches.ladders, days)
    history, fewest = matches.history, np.empty(len(matches), np.int64)
    count_before(history.match_slots, history.columns.player, np.zeros(history.players, np.int64), fewest)
    of = division.number(0, history, matches.ladder, fewest)
    order = division.order()
    return division.cells(order, np.argsort(order)[of].astype(np.int32))


@dataclass(frozen=True)
class CellDivision:
    """How matches are divided into cells, which are numbered as they appear.

    unit, periods  of time: "D", "M" or "Y", and the first moments of all periods that occur, ascending
    kinds          the number of each cell by its block, ladder, period and experience as one number
    """

    matches: int
    warm_up: int
    blocks: tuple[int, int]
    ladders: tuple[str, ...]
    unit: str
    periods: NDArray[np.datetime64]
    kinds: dict[int, int]

    @classmethod
    def of(cls, matches: int, warm_up: int, ladders: tuple[str, ...], days: NDArray[np.datetime64]) -> CellDivision:
        """The division of this number of matches, played on these days."""
        blocks = (_blocks(warm_up), _blocks(matches - warm_up))
        unit = "D"
        for longer, least in (("M", MONTHS), ("Y", YEARS)):
            if len(np.unique(days.astype(f"datetime64[{longer}]"))) > least:
                unit = longer
        return cls(matches, warm_up, blocks, ladders, unit, np.unique(days.astype(f"datetime64[{unit}]")), {})

    @property
    def _sizes(self) -> tuple[int, int, int, int]:
        return (sum(self.blocks), len(self.ladders), len(self.periods), len(EXPERIENCE))

    def number(self, first: int, history: History, ladder: Integers, fewest: NDArray[np.int64]) -> Integers:
        """The cell of each of these matches; the first has the number `first`.

        ladder  of each match, an index into `ladders`;  fewest  earlier matches of its least experienced player
        """
        number = np.arange(first, first + len(history))
        early, late = self.blocks
        before = number * early // max(self.warm_up, 1)
        after = early + (number - self.warm_up) * late // max(self.matches - self.warm_up, 1)
        block = np.where(number < self.warm_up, before, after)
        moments = history.columns.time.astype("datetime64[us]").astype(f"datetime64[{self.unit}]")
        period = np.searchsorted(self.periods, moments)
        experience = np.searchsorted([start for start, _ in EXPERIENCE], fewest, side="right") - 1
        key, of = np.unique(np.ravel_multi_index((block, ladder, period, experience), self._sizes), return_inverse=True)
        cell = [self.kinds.setdefault(kind, len(self.kinds)) for kind in key.tolist()]
        return np.array(cell, np.int32)[of]

    def order(self) -> NDArray[np.intp]:
        """The numbers of the cells in order of block, ladder, period and experience."""
        return np.argsort(np.array(list(self.kinds)))

    def cells(self, order: NDArray[np.intp], of: Integers) -> MatchCells:
        """The cells in their order. of: the cell of each match, by that order; empty if not needed."""
        kinds = np.array(list(self.kinds))[order]
        block, ladder, period, experience = (i.astype(np.int32) for i in np.unravel_index(kinds, self._sizes))
        return MatchCells(
            of,
            block < self.blocks[0],
            block,
            ladder,
            period,
            experience,
            blocks=sum(self.blocks),
            warm_up_blocks=self.blocks[0],
            ladders=self.ladders,
            periods=tuple(str(name) for name in self.periods),
            experiences=tuple(label for _, label in EXPERIENCE),
        )


def days_of(time: Times) -> NDArray[np.datetime64]:
    """The days that occur in these times (microseconds)."""
    return np.unique(time.astype("datetime64[us]").astype("datetime64[D]"))


def _blocks(matches: int) -> int:
    """Number of blocks: at most BLOCKS, of LARGE or more matches each unless that gives fewer than ENOUGH."""
    return min(BLOCKS, matches, max(ENOUGH, matches // LARGE))


@cached
def count_before(match_slots: Integers, player: Integers, played: NDArray[np.int64], fewest: NDArray[np.int64]) -> None:
    """Write the number of earlier matches of the least experienced player of each match.

    played  int64 (P,)  matches of each player so far; updated
    """
    for m in range(len(fewest)):
        least = played[player[match_slots[m]]]
        for slot in range(match_slots[m], match_slots[m + 1]):
            least = min(least, played[player[slot]])
            played[player[slot]] += 1
        fewest[m] = least
