"""The effect of a correction: the ratings that it moves, in a preview or when applied."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.ledger import player_rows
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Store


class RatingMove(NamedTuple):
    """A player whose rating a correction changes; before, after: None without a rating."""

    player: str
    before: float | None
    matches_before: int
    after: float | None
    matches_after: int


class Effect(NamedTuple):
    """The effect of a correction that was applied or previewed.

    told      the correction in words;  moves  largest change first
    players   number on the ladder;  matches  number rated again
    left_out  matches that became unrated, because the new rules cannot rate them
    position  the last event of the ledger before the correction; a later event outdates a preview
    done      the ledger already had the correction under the given id, so nothing changed
    unlisted  further rating moves, smaller than those of `moves`
    """

    told: str
    moves: list[RatingMove]
    players: int
    matches: int
    left_out: int
    position: int
    done: bool = False
    unlisted: int = 0

    @property
    def moved(self) -> int:
        """The number of players whose rating changes."""
        return len(self.moves) + self.unlisted


def already_applied(event_id: str, position: int) -> Effect:
    """The empty effect of a correction whose id is already in the ledger."""
    return Effect(f"{event_id!r} was already applied", [], 0, 0, 0, position, done=True)


def rating_moves(
    store: Store, before: Roster, after: Roster, newcomers: Mapping[int, str] = MappingProxyType({})
) -> list[RatingMove]:
    """The players whose rating or match count differs between two rosters, largest rating change first.

    newcomers  names by id of players who are not stored yet
    """
    ids = np.union1d(before.ids, after.ids)
    old, new = _columns(before, ids), _columns(after, ids)
    change = np.abs(np.nan_to_num(new[0]) - np.nan_to_num(old[0]))
    moved = np.flatnonzero((old[0] != new[0]) | (old[1] != new[1]))
    moved = moved[np.argsort(-change[moved], kind="stable")]
    names = {**player_rows.names_of(store, ids[moved].tolist()), **newcomers}
    return [
        RatingMove(names[player], *_row(old, row), *_row(new, row))
        for row, player in zip(moved.tolist(), ids[moved].tolist(), strict=True)
    ]


def _columns(roster: Roster, ids: Ids) -> tuple[Floats, Ids]:
    """Ratings (NaN without one) and match counts of these ids, which include all of the roster's."""
    ratings, matches = np.full(len(ids), np.nan), np.zeros(len(ids), np.int64)
    rows = np.searchsorted(ids, roster.ids)
    ratings[rows], matches[rows] = roster.records["rating"], roster.tally["matches"]
    return ratings, matches


def _row(columns: tuple[Floats, Ids], row: int) -> tuple[float | None, int]:
    rating = float(columns[0][row])
    return None if math.isnan(rating) else rating, int(columns[1][row])
