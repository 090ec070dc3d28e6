"""The board of a ladder: who stands where as of a time, out of columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadParameterError, InputError
from evenmatch.history import Flags, Floats, Times
from evenmatch.standings.activity import Activity
from evenmatch.standings.distribution import Distribution, Population
from evenmatch.standings.division import DIVISIONS, Division, checked
from evenmatch.standings.hysteresis import settle

Rows = NDArray[np.intp]

CENTURY = 36_525  # days


@dataclass(frozen=True, eq=False)
class Board:
    """One ladder's players, as columns (P,) in ascending order of player id. Raises InputError where they are not.

    matches         counted ones
    completed       those that the player did not quit
    last_completed  microseconds since the epoch; standings.activity.NEVER where there is none
    division        the recorded one, an index; -1 where none was recorded yet
    hidden          banned or erased: neither listed nor counted
    """

    player: NDArray[np.int64]
    rating: Floats
    matches: NDArray[np.int64]
    completed: NDArray[np.int64]
    last_completed: Times
    division: NDArray[np.int16]
    hidden: Flags

    def __post_init__(self) -> None:
        for name in ("rating", "matches", "completed", "last_completed", "division", "hidden"):
            if (entries := len(getattr(self, name))) != len(self.player):
                raise InputError(f"column {name} has {entries} entries; {len(self.player)} were expected")
        if len(back := np.flatnonzero(self.player[1:] <= self.player[:-1])):
            ids = self.player[back[0] : back[0] + 2].tolist()
            raise InputError(f"player {ids[1]} comes after {ids[0]}; accepted are rising ids, each once")
        if len(wrong := np.flatnonzero(~np.isfinite(self.rating))):
            raise InputError(
                f"the rating of player {self.player[wrong[0]]} is {self.rating[wrong[0]]}; accepted is a finite number"
            )

    def __len__(self) -> int:
        return len(self.player)

    def find(self, players: Sequence[int] | NDArray[np.int64]) -> Rows:
        """The row of each of these players; -1 for an id that is not on the board."""
        wanted = np.asarray(players, np.int64)
        if not len(self):
            return np.full(len(wanted), -1)
        row = np.minimum(self.player.searchsorted(wanted), len(self) - 1)
        return np.where(self.player[row] == wanted, row, -1)


@dataclass(frozen=True)
class StandingsRules:
    """What the ladder decided. Raises BadParameterError or InputError, which say what is accepted.

    placement        matches to complete before a player is listed
    active_days      a player is active who completed a match in so many days: a float, at most CENTURY
    division_margin  percentiles below a division's lowest at which its players still keep it
    """

    placement: int = 10
    active_days: float = 30.0
    divisions: tuple[Division, ...] = DIVISIONS
    division_margin: int = 3

    def __post_init__(self) -> None:
        for name in ("placement", "active_days", "division_margin"):
            if not (value := getattr(self, name)) >= 0:
                raise BadParameterError(f"{name} is {value}; accepted is 0 or more")
        if self.active_days > CENTURY:
            raise BadParameterError(f"active_days is {self.active_days}; accepted are up to {CENTURY:,}, a century")
        object.__setattr__(self, "active_days", float(self.active_days))
        checked(self.divisions)


class Standing(NamedTuple):
    """Where a player stands. None is what is not shown: it needs a player who is placed, active and not hidden.

    rank    1 is best, ties share one
    active  counted in the percentiles; a hidden player is not
    """

    player: int
    rank: int | None
    rating: float
    percentile: int | None
    division: str | None
    matches: int
    completed: int
    placed: bool
    active: bool


class Cut(NamedTuple):
    """A division, and the lowest rating of an active player whose percentile reaches it; None: nobody's does."""

    division: Division
    rating: float | None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A board as of a time; everything is worked out when it is taken, and a question costs a search.

    Listed are the placed and active who are not hidden, by rating downwards, then by id upwards.
    active     bool  (P,)  who counts in the percentiles; the not yet placed do
    listed     bool  (P,)
    order      intp  (L,)  rows of the listed, best first
    divisions  int16 (P,)  to be recorded from now on (see `settle`); those who are not listed keep theirs
    against    the ratings of the active
    """

    board: Board
    rules: StandingsRules
    as_of: int
    active: Flags
    listed: Flags
    order: Rows
    divisions: NDArray[np.int16]
    against: Population
    _percentile: NDArray[np.int16]  # of each active player's row
    _ratings: Floats  # of the listed, ascending
    _cuts: tuple[Cut, ...]

    def __len__(self) -> int:
        """How many are listed."""
        return len(self.order)

    @property
    def population(self) -> int:
        """How many are active."""
        return len(self.against)

    def percentile(self, rating: float) -> int:
        """What a player of this rating would be shown, 1..100, against the active; `against` takes many at once."""
        return int(self.against.percentiles(rating))

    def queue_percentile(self, rating: float) -> float:
        """The fractional percentile 0..100 that queues use; `against` takes many at once."""
        return float(self.against.queue_percentiles(rating))

    def rank_of(self, rating: float) -> int:
        """1 + the number of listed players strictly above: a listed player's rank, anybody else's had they one."""
        return 1 + len(self) - int(self._ratings.searchsorted(rating, side="right"))

    def standing(self, player: int) -> Standing | None:
        """Where this player stands; None for an id that is not on the board."""
        row = self.board.find([player])
        return self._standings(row)[0] if row[0] >= 0 else None

    def pages(self, size: int) -> int:
        """How many pages of so many the listed players fill; 0 where nobody is listed."""
        return -(-len(self) // _at_least(1, size, "the size of a page"))

    def page(self, number: int, size: int) -> list[Standing]:
        """The listed players of a page, counted from 1; empty beyond the end."""
        start = (_at_least(1, number, "the number of a page") - 1) * _at_least(1, size, "the size of a page")
        return self._standings(self.order[start : start + size])

    def after(self, rating: float, player: int, size: int) -> list[Standing]:
        """So many of the listed who come after this rating and id, whoever has them now, or nobody."""
        first, end = self._tied(rating)
        ids = self.board.player[self.order[first:end]]
        start = first + int(ids.searchsorted(player, side="right"))
        return self._standings(self.order[start : start + _at_least(1, size, "the size of a page")])

    def around(self, player: int, each_side: int) -> list[Standing]:
        """The player between so many listed above and so many below; fewer at the ends of the list.

        For a player who is not listed: those around the place that their rating and id would have, without them.
        Empty for an id that is not on the board.
        """
        _at_least(0, each_side, "the number on each side")
        (row,) = self.board.find([player]).tolist()
        if row < 0:
            return []
        place = self._place(row)
        return self._standings(self.order[max(0, place - each_side) : place + each_side + int(self.listed[row])])

    def among(self, players: Sequence[int] | NDArray[np.int64]) -> list[Standing]:
        """These players alone, each once: the listed in their order, then the others by rating, then by id.

        Ranks and percentiles are those of the ladder. Ids that are not on the board are left out.
        """
        row = np.unique(self.board.find(players))
        row = row[row >= 0]
        return self._standings(row[np.lexsort((row, -self.board.rating[row], ~self.listed[row]))])

    def cuts(self) -> list[Cut]:
        """From which rating each division is reached now; see Cut.

        A rating between two active players' may reach it, too, for it has fewer above than the next one up.
        """
        return list(self._cuts)

    def distribution(self, bins: int = 40) -> Distribution:
        """The ratings of the active in at most so many bins of a round width; see Population.histogram."""
        return self.against.histogram(bins)

    def changed(self, board: Board) -> Rows:
        """The rows whose division is another than the recorded one of this board, which has the same players."""
        if board is not self.board and not np.array_equal(board.player, self.board.player):
            raise InputError("the board has other players than the snapshot; accepted are the same")
        return np.flatnonzero(self.divisions != board.division)

    def _place(self, row: int) -> int:
        """How many listed players come before this row's: by rating, then by id."""
        first, end = self._tied(self.board.rating[row])
        return first + int(self.order[first:end].searchsorted(row))

    def _tied(self, rating: float) -> tuple[int, int]:
        """From which place to which the listed have this very rating."""
        first = len(self) - int(self._ratings.searchsorted(rating, side="right"))
        return first, len(self) - int(self._ratings.searchsorted(rating, side="left"))

    def _standings(self, rows: Rows) -> list[Standing]:
        b, names = self.board, [division.name for division in self.rules.divisions]
        rating = b.rating[rows]
        columns = (
            b.player[rows],
            1 + len(self) - self._ratings.searchsorted(rating, side="right"),
            rating,
            self._percentile[rows],
            self.divisions[rows],
            b.matches[rows],
            b.completed[rows],
            b.completed[rows] >= self.rules.placement,
            self.active[rows],
            self.listed[rows],
        )
        return [
            Standing(player, rank, own, percentile, names[division], *rest)
            if listed
            else Standing(player, None, own, None, None, *rest)
            for player, rank, own, percentile, division, *rest, listed in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]


def snapshot(board: Board, rules: StandingsRules, as_of: int) -> Snapshot:
    """Everybody's place as of a time (microseconds since the epoch); P log P."""
    activity = Activity(board.matches, board.completed, board.last_completed, board.last_completed)
    active = activity.active(as_of, rules.active_days) & ~board.hidden
    listed = active & activity.placed(rules.placement)
    best_first = _best_first(board.rating, np.flatnonzero(active))
    order = best_first[listed[best_first]]
    against = Population(board.rating[best_first[::-1]])
    ascending = against.own_percentiles()
    percentile = np.zeros(len(board), np.int16)
    percentile[best_first] = ascending[::-1]
    divisions = np.where(
        listed, settle(board.division, percentile, rules.divisions, rules.division_margin), board.division
    )
    ratings = board.rating[order[::-1]]
    for column in (active, listed, order, divisions, against.rating, percentile, ratings):
        column.flags.writeable = False
    cuts = _cuts(rules.divisions, against, ascending)
    return Snapshot(board, rules, as_of, active, listed, order, divisions, against, percentile, ratings, cuts)


def _best_first(rating: Floats, rows: Rows) -> Rows:
    """These ascending rows by rating downwards, ties upwards.

    A stable sort takes three times as long as numpy's fastest, after which one of whole numbers puts ties in order.
    """
    rating = rating[rows]
    order = np.argsort(-rating)
    rating = rating[order]
    tie = np.zeros(len(order), np.int64)
    np.cumsum(rating[1:] != rating[:-1], out=tie[1:])
    first_key = tie * len(order)
    return rows[np.sort(first_key + order) - first_key]


def _cuts(divisions: Sequence[Division], against: Population, percentile: NDArray[np.int64]) -> tuple[Cut, ...]:
    start = percentile.searchsorted([division.lowest for division in divisions]).tolist()
    ratings = [float(against.rating[at]) if at < len(against) else None for at in start]
    return tuple(map(Cut, divisions, ratings))


def _at_least(least: int, value: int, what: str) -> int:
    if value < least:
        raise BadParameterError(f"{what} is {value}; accepted is {least} or more")
    return value
