"""Checks of matches that several systems share. Each gives (match, reason) pairs for `System.refuse`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns


def mixed(h: Columns, column: str, system: str) -> Iterator[tuple[int, str]]:
    """Matches in which some players have a value in this column and others have not."""
    for match, gaps, players in _gaps(h, column):
        if gaps < players:
            yield match, f"{column} is empty for {gaps} of {players} players; {system} needs it for all of them or none"


def missing(h: Columns, column: str, where: NDArray[np.bool_], system: str) -> Iterator[tuple[int, str]]:
    """Matches among those chosen (bool (M,)) in which a player has no value in this column."""
    for match, gaps, players in _gaps(h, column):
        if where[match]:
            yield match, f"{column} is empty for {gaps} of {players} players; {system} needs it for every player"


def match_of(h: Columns, teams: NDArray[np.integer]) -> NDArray[np.intp]:
    """The match of each of these teams."""
    return np.searchsorted(h.team_start, teams, side="right") - 1


def _gaps(h: Columns, column: str) -> Iterator[tuple[int, int, int]]:
    """(match, players without a value, players) for each match with a gap in the column."""
    gap = np.isnan(getattr(h, column))
    if not gap.any():
        return
    slots = h.slot_start[h.team_start]
    gaps, players = np.add.reduceat(gap, slots[:-1], dtype=np.int64), np.diff(slots)
    for match in np.flatnonzero(gaps).tolist():
        yield match, int(gaps[match]), int(players[match])


def team_count(h: Columns, accepted: int, system: str) -> Iterator[tuple[int, str]]:
    """Matches that have not exactly this many teams."""
    counts = h.team_start[1:] - h.team_start[:-1]
    for match in (counts != accepted).nonzero()[0].tolist():
        yield match, f"{counts[match]} teams; {system} rates matches of exactly {accepted}"
