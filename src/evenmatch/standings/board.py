"""The board of a ladder: ranks, percentiles and divisions as of a time, computed from numeric columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadParameterError, InputError
from evenmatch.history import Flags, Floats, Times
from evenmatch.standings.activity import Activity
from evenmatch.standings.distribution import Distribution, Population, lowered, percentile_falls
from evenmatch.standings.division import Division, settle
from evenmatch.standings.placement import UNKNOWN
from evenmatch.standings.rules import AUTO, StandingsRules

Rows = NDArray[np.intp]
MIDDLE = 50.0  # the queue percentile of a player without a known rating
LAST = float(np.finfo(np.float64).min)  # the value of a player whose rating is not shown, below all ratings


@dataclass(frozen=True, eq=False)
class Board:
    """The players of one ladder as columns (P,) in ascending order of player id. Raises InputError otherwise.

    matches         number of counted matches
    completed       matches that the player did not quit
    last_completed  microseconds since the epoch; standings.activity.NEVER if there is none
    expected_move   lowest expected move of the percentile by the next match, see standings.placement
    division        index of the recorded division; -1 if none was recorded yet
    hidden          banned or erased: neither listed nor counted
    """

    player: NDArray[np.int64]
    rating: Floats
    matches: NDArray[np.int64]
    completed: NDArray[np.int64]
    last_completed: Times
    expected_move: Floats
    division: NDArray[np.int16]
    hidden: Flags

    def __post_init__(self) -> None:
        for name in ("rating", "matches", "completed", "last_completed", "expected_move", "division", "hidden"):
            if (entries := len(getattr(self, name))) != len(self.player):
                raise InputError(f"column {name} has {entries} entries; expected {len(self.player)}")
        if len(unordered := np.flatnonzero(self.player[1:] <= self.player[:-1])):
            ids = self.player[unordered[0] : unordered[0] + 2].tolist()
            raise InputError(f"player {ids[1]} comes after {ids[0]}; expected ascending ids without duplicates")
        if len(invalid := np.flatnonzero(~np.isfinite(self.rating))):
            raise InputError(
                f"the rating of player {self.player[invalid[0]]} is {self.rating[invalid[0]]}; expected a finite number"
            )

    def __len__(self) -> int:
        return len(self.player)

    def find(self, players: Sequence[int] | NDArray[np.int64]) -> Rows:
        """The row of each of these players; -1 for an unknown id."""
        wanted = np.asarray(players, np.int64)
        if not len(self):
            return np.full(len(wanted), -1)
        row = np.minimum(self.player.searchsorted(wanted), len(self) - 1)
        return np.where(self.player[row] == wanted, row, -1)


class Standing(NamedTuple):
    """The standing of a player.

    rank        1 is best, and ties share a rank; null: the player is not listed
    rating      null: the ladder does not show it
    percentile  1 to 100, among the active players; null: the player is not listed, or it is not shown
    division    null: the player is not listed
    completed   matches that the player did not quit
    placed      true: placement has ended, because the matches are completed or the percentile has steadied
    active      true: the player has completed a match within the ladder's active days
    expected_move  with placement=auto: percentiles by which the next match is expected to move a player who is not
                   placed; null: not known yet, or not shown
    """

    player: int
    rank: int | None
    rating: float | None
    percentile: int | None
    division: str | None
    matches: int
    completed: int
    placed: bool
    active: bool
    expected_move: float | None = None


class DivisionThreshold(NamedTuple):
    """A division and the lowest rating of an active player whose percentile reaches it; None: no player does."""

    division: Division
    rating: float | None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A board as of a time. All values are computed at creation; a query costs one binary search.

    Players who are placed, active and not hidden are listed, by descending rating, then ascending id.
    active     bool  (P,)  counted in the percentiles, placed or not
    placed     bool  (P,)  placement has ended
    listed     bool  (P,)
    order      intp  (L,)  rows of the listed players, best first
    divisions  int16 (P,)  the new divisions (see `settle`); players who are not listed keep theirs
    falls      int64 (P,)  percentiles by which inactivity lowers what is shown
    against    the ratings of the active players
    population number of active players
    show       what standings reveal, see `shown_as`; "rating": everything
    """

    board: Board
    rules: StandingsRules
    as_of: int
    active: Flags
    placed: Flags
    listed: Flags
    order: Rows
    divisions: NDArray[np.int16]
    falls: NDArray[np.int64]
    against: Population
    population: int
    _percentile: NDArray[np.int16]  # by row, of active players
    _ratings: Floats  # of the listed players, ascending
    _cuts: tuple[DivisionThreshold, ...]
    show: str = "rating"

    def __len__(self) -> int:
        """Number of listed players."""
        return len(self.order)

    @property
    def has_ratings(self) -> bool:
        """Whether ratings are shown, at least those of placed players."""
        return self.show in ("rating", "after_placement")

    def percentile(self, rating: float) -> int:
        """The percentile 1..100 of this rating among the active players; for arrays use `against.percentiles`."""
        return int(self.against.percentiles(rating))

    def queue_percentile(self, rating: float | None) -> float:
        """The fractional percentile 0..100 used by queues; 50 for an unknown rating."""
        return MIDDLE if rating is None else float(self.against.queue_percentiles(rating))

    def standing(self, player: int) -> Standing | None:
        """The standing of a player; None for an unknown id."""
        row = self.board.find([player])
        return self._standings(row)[0] if row[0] >= 0 else None

    def place_of(self, player: int) -> float:
        """The value by which this snapshot orders a known player; with the id, it is where `after` starts."""
        return float(self.board.rating[self.board.find([player])[0]])

    def pages(self, size: int) -> int:
        """Number of pages of `size` listed players; 0 if there are none."""
        return -(-len(self) // _at_least(1, size, "the size of a page"))

    def page(self, number: int, size: int) -> list[Standing]:
        """The listed players of a page, counted from 1; empty after the last page."""
        start = (_at_least(1, number, "the number of a page") - 1) * _at_least(1, size, "the size of a page")
        return self._standings(self.order[start : start + size])

    def after(self, rating: float, player: int, size: int) -> list[Standing]:
        """Up to `size` listed players after the position of this value and id, even if that player has since gone."""
        first, end = self._tied(rating)
        ids = self.board.player[self.order[first:end]]
        start = first + int(ids.searchsorted(player, side="right"))
        return self._standings(self.order[start : start + _at_least(1, size, "the size of a page")])

    def around(self, player: int, each_side: int) -> list[Standing]:
        """The player with up to `each_side` listed players above and below; fewer at the ends of the list.

        For a player who is not listed, returns the neighbours of the position that the player would have. Empty for an
        unknown id.
        """
        _at_least(0, each_side, "the number on each side")
        (row,) = self.board.find([player]).tolist()
        if row < 0:
            return []
        position = self._position(row)
        rows = self.order[max(0, position - each_side) : position + each_side + int(self.listed[row])]
        return self._standings(rows)

    def among(self, players: Sequence[int] | NDArray[np.int64]) -> list[Standing]:
        """Select these players, without duplicates: listed players in order, then the others by rating, then by id.

        Ranks and percentiles are those of the whole ladder. Unknown ids are left out.
        """
        row = np.unique(self.board.find(players))
        row = row[row >= 0]
        return self._standings(row[np.lexsort((row, -self.board.rating[row], ~self.listed[row]))])

    def cuts(self) -> list[DivisionThreshold]:
        """The lowest rating for each division now; see DivisionThreshold.

        A rating between those of two active players may also reach the division of the higher one.
        """
        return list(self._cuts)

    def distribution(self, bins: int = 40) -> Distribution | None:
        """Histogram of the active players' ratings with at most `bins` bins, see Population.histogram.

        On a snapshot from `shown_as`: only the listed players, or None if no ratings are shown.
        """
        return self.against.histogram(bins) if self.has_ratings else None

    def shown_as(self, show: str) -> Snapshot:
        """The snapshot for callers who must not see all ratings. Neither contents nor order reveal hidden values.

        show  rating: everything; after_placement: hide the ratings of players who are not placed; percentile, division:
              show these instead of ratings, so players with equal values share a rank and are sorted by id
        Percentiles are left out where only divisions are shown.
        """
        if show == "rating":
            return self
        board, listed = self.board, np.flatnonzero(self.listed)
        percentile = np.where(self.listed, self._percentile, np.int16(0))
        if show == "after_placement":
            value = np.where(self.placed, board.rating, LAST)
        else:
            value = np.where(self.listed, percentile if show == "percentile" else self.divisions, -1).astype(np.float64)
        order = _best_first(value, listed)
        ascending = value[order[::-1]]
        own = Population(ascending if show == "after_placement" else np.empty(0))
        return replace(
            self,
            board=replace(board, rating=value),
            order=order,
            against=own,
            _percentile=np.zeros_like(percentile) if show == "division" else percentile,
            _ratings=ascending,
            _cuts=_cuts(self.rules.divisions, own, self.against.percentiles(own.rating)),
            show=show,
        )

    def changed(self, board: Board) -> Rows:
        """The rows whose division differs from the one recorded in `board`, which must have the same players."""
        if board is not self.board and not np.array_equal(board.player, self.board.player):
            raise InputError("the board has other players than the snapshot; expected the same players")
        return np.flatnonzero(self.divisions != board.division)

    def _position(self, row: int) -> int:
        """The number of listed players before this row, by rating, then by id."""
        first, end = self._tied(self.board.rating[row])
        return first + int(self.order[first:end].searchsorted(row))

    def _tied(self, rating: float) -> tuple[int, int]:
        """The range of positions of the listed players with exactly this rating."""
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
            self.placed[rows],
            self.active[rows],
            b.expected_move[rows],
            self.listed[rows],
        )
        has_ratings, has_percentiles = self.has_ratings, self.show != "division"
        has_moves = self.rules.placement == AUTO and self.show in ("rating", "percentile")
        return [
            Standing(
                player,
                rank if listed else None,
                own if has_ratings and own != LAST else None,
                percentile if listed and has_percentiles else None,
                names[division] if listed else None,
                matches,
                completed,
                placed,
                active,
                move if has_moves and not placed and move != UNKNOWN else None,
            )
            for player, rank, own, percentile, division, matches, completed, placed, active, move, listed in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]


def snapshot(board: Board, rules: StandingsRules, as_of: int) -> Snapshot:
    """Create the snapshot of a board as of a time (microseconds since the epoch); O(P log P)."""
    activity = Activity(board.matches, board.completed, board.last_completed, board.last_completed)
    active = activity.active(as_of, rules.active_days) & ~board.hidden
    placed = rules.placed(board.completed, board.expected_move)
    listed = active & placed
    best_first = _best_first(board.rating, np.flatnonzero(active))
    order = best_first[listed[best_first]]
    against = Population(board.rating[best_first[::-1]])
    ascending = against.own_percentiles()
    percentile = np.zeros(len(board), np.int16)
    percentile[best_first] = ascending[::-1]
    falls = percentile_falls(board.last_completed, as_of, rules)
    percentile = lowered(percentile, falls, rules).astype(np.int16)
    divisions = np.where(
        listed, settle(board.division, percentile, rules.divisions, rules.division_margin), board.division
    )
    ratings = board.rating[order[::-1]]
    for column in (active, placed, listed, order, divisions, falls, against.rating, percentile, ratings):
        column.flags.writeable = False
    cuts = _cuts(rules.divisions, against, ascending)
    return Snapshot(
        *(board, rules, as_of, active, placed, listed, order, divisions, falls, against, len(against)),
        *(percentile, ratings, cuts),
    )


def _best_first(rating: Floats, rows: Rows) -> Rows:
    """Sort ascending rows by descending rating, ties by ascending row.

    A stable sort is three times slower than numpy's default sort followed by an integer sort that orders the ties.
    """
    rating = rating[rows]
    order = np.argsort(-rating)
    rating = rating[order]
    tie = np.zeros(len(order), np.int64)
    np.cumsum(rating[1:] != rating[:-1], out=tie[1:])
    first_key = tie * len(order)
    return rows[np.sort(first_key + order) - first_key]


def _cuts(
    divisions: Sequence[Division], against: Population, percentile: NDArray[np.int64]
) -> tuple[DivisionThreshold, ...]:
    start = percentile.searchsorted([division.lowest for division in divisions]).tolist()
    ratings = [float(against.rating[index]) if index < len(against) else None for index in start]
    return tuple(map(DivisionThreshold, divisions, ratings))


def _at_least(least: int, value: int, what: str) -> int:
    if value < least:
        raise BadParameterError(f"{what} is {value}; expected {least} or more")
    return value
