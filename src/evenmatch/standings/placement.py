"""Automatic placement: the expected move of a player's percentile by the next match.

A player's recent rating change is the mean size of the changes so far, and from WINDOW completed matches on a moving
mean. A sample of the ladder's ratings turns it into an expected move of the percentile. The lowest move so far is
stored, so a player who is placed stays placed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats, History
from evenmatch.standings.distribution import Population
from evenmatch.standings.rules import WINDOW

UNKNOWN = 100.0  # stands for an unknown expected move; known ones are at most 50
FEWEST_SAMPLED = 30  # fewest players of a sample
SAMPLE = 101  # most ratings of a sample
EARLIEST = 32  # matches between two samples, at least
GROWTH = 4  # a sample is taken when the matches of the season have grown by a quarter

_HEAD = np.dtype("<i8")
_RATING = np.dtype("<f8")


@dataclass(frozen=True, eq=False)
class RatingSample:
    """A sample of the ratings of a season's players, taken at moments that depend on the ledger alone.

    since     position at which the season began
    position  of the match before which it was taken; `since` if none was
    rating    float64 (N,)  ascending, evenly spaced by rank; empty: none was taken, or of too few players
    """

    since: int
    position: int
    rating: Floats

    @classmethod
    def none(cls, since: int = 0) -> RatingSample:
        """No sample, at the beginning of a season."""
        return cls(since, since, np.empty(0))

    @property
    def next_at(self) -> int:
        """The next sample is taken before the first match at this position or a later one."""
        return self.position + max(EARLIEST, (self.position - self.since) // GROWTH)

    def taken(self, position: int, ratings: Floats) -> RatingSample:
        """Take a sample of these ratings, in any order, before the match at this position."""
        count = len(ratings)
        if count < FEWEST_SAMPLED:
            return RatingSample(self.since, position, np.empty(0))
        ordered = np.sort(ratings)
        if count > SAMPLE:
            ordered = ordered[np.arange(SAMPLE) * (count - 1) // (SAMPLE - 1)]
        return RatingSample(self.since, position, ordered)

    def expected_moves(self, rating: Floats, change: Floats) -> Floats:
        """Percentiles, 0..50, by which such rating changes, up or down, move players; UNKNOWN without a sample."""
        if not len(self.rating):
            return np.full(len(rating), UNKNOWN)
        percentiles = Population(self.rating).queue_percentiles
        moves: Floats = (percentiles(rating + change) - percentiles(rating - change)) / 2
        return moves

    def pack(self) -> bytes:
        """Serialize the sample."""
        return np.array([self.since, self.position], _HEAD).tobytes() + self.rating.astype(_RATING).tobytes()

    @classmethod
    def unpack(cls, packed: bytes | None) -> RatingSample:
        """Restore a sample from `pack`; None: there is none. Raises ValueError for damaged data."""
        if packed is None:
            return cls.none()
        start = 2 * _HEAD.itemsize
        if len(packed) < start or (len(packed) - start) % _RATING.itemsize:
            raise ValueError(f"{len(packed)} bytes, expected {start} and {_RATING.itemsize} for each rating")
        since, position = np.frombuffer(packed[:start], _HEAD).tolist()
        return cls(since, position, np.frombuffer(packed[start:], _RATING).copy())


def follow(
    players: NDArray[np.int64],
    rating: Floats,
    change: Floats,
    completed: NDArray[np.int64],
    recent: Floats,
    expected: Floats,
    sample: RatingSample,
) -> Floats:
    """Count completed matches, and update the recent rating change and lowest expected move of their players in place.

    players, rating, change  per player and match, in order of time: row, rating afterwards, its change without a sign
    completed, recent, expected  by row
    Return the lowest expected move after each match.
    """
    lowest = np.empty(len(players))
    for now in _rounds(players):
        row, after = players[now], rating[now]
        count = completed[row] + 1
        mean = recent[row] + (change[now] - recent[row]) / np.minimum(count, WINDOW)
        move = np.where(count >= WINDOW, sample.expected_moves(after, mean), UNKNOWN)
        lowest[now] = np.minimum(expected[row], move)
        completed[row], recent[row], expected[row] = count, mean, lowest[now]
    return lowest


class ExpectedMoves(NamedTuple):
    """The lowest expected move of a player after each completed match of a history.

    slot    its index in the history;  completed: the player's completed matches, this one included
    lowest  percentiles, or UNKNOWN
    """

    slot: NDArray[np.intp]
    completed: NDArray[np.int64]
    lowest: Floats

    def last(self, history: History) -> Floats:
        """The lowest expected move of each player at the end."""
        last = np.full(history.players, UNKNOWN)
        last[history.columns.player[self.slot]] = self.lowest  # of several entries of a player the last one counts
        return last


def expected_moves(history: History, before: Floats, after: Floats) -> ExpectedMoves:
    """The expected moves in a history of one ladder, whose first match is at position 1.

    before, after  ratings by slot
    """
    c, players = history.columns, history.players
    own = np.flatnonzero(c.keep & ~c.quit)
    completed, recent, expected = np.zeros(players, np.int64), np.zeros(players), np.full(players, UNKNOWN)
    rating, lowest, counts = np.full(players, np.nan), np.empty(len(own)), np.empty(len(own), np.int64)
    sample, start = RatingSample.none(), 0
    while start < len(history):
        if start + 1 >= sample.next_at:
            sample = sample.taken(start + 1, rating[~np.isnan(rating)])
        stop = min(sample.next_at - 1, len(history))
        first, end = own.searchsorted(history.match_slots[[start, stop]]).tolist()
        slots = own[first:end]
        rows, change = c.player[slots].astype(np.int64), np.abs(after[slots] - before[slots])
        counts[first:end] = completed[rows] + turns_of(rows) + 1
        lowest[first:end] = follow(rows, after[slots], change, completed, recent, expected, sample)
        kept = np.arange(*history.match_slots[[start, stop]].tolist())
        kept = kept[c.keep[kept]]
        rating[c.player[kept]] = after[kept]
        start = stop
    return ExpectedMoves(own, counts, lowest)


def _rounds(players: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Indices of the first match of every player, then of the second one, and so on."""
    turn = turns_of(players)
    if not turn.any():
        return [np.arange(len(players))] if len(players) else []
    return np.split(np.argsort(turn, kind="stable"), np.cumsum(np.bincount(turn))[:-1])


def turns_of(players: NDArray[np.integer]) -> NDArray[np.int64]:
    """Count, for each entry, the equal entries before it."""
    order = np.argsort(players, kind="stable")
    ordered = players[order]
    begins = np.ones(len(ordered), np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(begins)
    turns = np.empty(len(players), np.int64)
    turns[order] = np.arange(len(players)) - np.repeat(starts, np.diff(np.append(starts, len(players))))
    return turns
