"""A view of a ladder's standings: a snapshot, and the settings and the ledger's head that it was computed from."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Floats
from evenmatch.ledger.codec import UNSHOWN, Ids
from evenmatch.ledger.plan import Counting
from evenmatch.ledger.store import Head
from evenmatch.service.callers.access import Caller
from evenmatch.service.settings import Settings
from evenmatch.standings.board import Snapshot
from evenmatch.standings.hysteresis import settle
from evenmatch.standings.percentile_decay import lowered

SHARE = 0.02  # share of processor time that refreshing may take: a snapshot that costs 0.5 s is used for 25 s
LEAST = 0.05  # seconds that a snapshot is used at least


@dataclass(frozen=True, eq=False)
class View:
    """A snapshot of the standings, with the ladder's head and settings that it was computed from.

    begun, taken  seconds on the machine's monotonic clock: nothing committed before `begun` is missing in it; when it
                  was complete;  cost  processor seconds that it took to compute
    lasts  False: ratings change with time alone, so all are read again for each view
    counting  which matches of a player the snapshot counts, see Plan.counting
    """

    head: Head
    settings: Settings
    snapshot: Snapshot
    begun: float
    taken: float
    cost: float
    lasts: bool
    counting: Counting

    def seen_by(self, caller: Caller) -> View:
        """The view as this caller may see it: with the scope `ratings` all of it, else what the ladder shows."""
        return self if self.settings.shown_to(caller, self.head.name) == "rating" else self.shown

    @property
    def basis(self) -> tuple[object, ...]:
        """Properties that two views must share, so that pages of one may follow pages of the other."""
        return self.head.ladder, self.head.generation, self.head.corrected, self.snapshot.show, self.settings

    @cached_property
    def identity(self) -> str:
        """A digest of the listed players in their order: the same for two views only if these are the same."""
        snapshot = self.snapshot
        digest = blake2b(repr(self.basis[:-1]).encode(), digest_size=12)
        for column in (snapshot.board.player, snapshot.board.rating):
            digest.update(column[snapshot.order].tobytes())
        return digest.hexdigest()

    @cached_property
    def shown(self) -> View:
        """The view as the ladder shows it to everybody."""
        return replace(self, snapshot=self.snapshot.shown_as(self.settings.show))

    def is_younger(self, times: float) -> bool:
        """Whether it is younger than `times` the period that a view of its cost is used for."""
        return time.monotonic() - self.taken < times * max(LEAST, self.cost / SHARE)

    def show(
        self, ids: Ids, rating: Floats, completed: NDArray[np.int64], expected_move: Floats
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The percentiles and division indices shown to players after their matches; UNSHOWN while not placed.

        ids, rating, completed, expected_move  one entry per player and match, in order: the rating after the match;
                                               completed matches and lowest expected move after all of them
        Percentiles are relative to the ratings of all others after the last of these matches.
        """
        rules = self.settings.standings
        taken, board = self.snapshot, self.snapshot.board
        row = board.find(ids)
        known = row >= 0
        before, recorded = np.full(len(ids), np.nan), np.full(len(ids), UNSHOWN, np.int16)
        recorded[known] = board.division[row[known]]
        before[known] = np.where(taken.active[row[known]], board.rating[row[known]], np.nan)
        counts = completed > 0
        counts[known] &= ~board.hidden[row[known]]
        _, last, of = np.unique(ids[::-1], return_index=True, return_inverse=True)
        last = len(ids) - 1 - last  # index of each player's last match
        own = np.where(counts, rating, np.nan)[last]
        replaced = before[last]
        percentile = taken.against.percentiles_after(
            rating, own[of[::-1]], replaced[~np.isnan(replaced)], own[~np.isnan(own)]
        ).astype(np.int64)
        falls = np.zeros(len(ids), np.int64)
        falls[known] = np.where(completed[known] == board.completed[row[known]], taken.falls[row[known]], 0)
        percentile = lowered(percentile, falls, rules)  # a match that was quit does not end inactivity
        division = settle(recorded, percentile, rules.divisions, rules.division_margin)
        placed = rules.placed(completed, expected_move)
        return np.where(placed, percentile, UNSHOWN), np.where(placed, division.astype(np.int64), UNSHOWN)
