"""Match counts and times per player, the basis of placement and of the active window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenmatch.durations import DAY
from evenmatch.history import Flags, History, Times

ALL_TIME = 4_000_000  # days, longer than the calendar
NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Activity:
    """Counts and times per player, int64 (P,). A player completes a match by not quitting. NEVER: no such match.

    Matches played as a guest (`keep` is False) do not count.
    """

    matches: NDArray[np.int64]
    completed: NDArray[np.int64]
    last_played: Times
    last_completed: Times

    @classmethod
    def of(cls, history: History) -> Activity:
        """Compute the activity from a history."""
        c, players = history.columns, history.players
        own, stayed = c.keep, c.keep & ~c.quit
        time = c.time[history.slot_match]
        return cls(
            matches=np.bincount(c.player[own], minlength=players),
            completed=np.bincount(c.player[stayed], minlength=players),
            last_played=_latest(c.player[own], time[own], players),
            last_completed=_latest(c.player[stayed], time[stayed], players),
        )

    def active(self, as_of: Times | int, days: float) -> Flags:
        """Mask of players who completed a match in the `days` days up to `as_of` (microseconds; scalar or (P,))."""
        oldest = as_of - np.int64(min(days, ALL_TIME) * DAY)
        active: Flags = (
            (self.last_completed != NEVER) & (self.last_completed >= oldest) & (self.last_completed <= as_of)
        )
        return active

    def placed(self, placement: int) -> Flags:
        """Mask of players who completed their placement matches."""
        return self.completed >= placement


def _latest(player: NDArray[np.int32], time: Times, players: int) -> Times:
    latest = np.full(players, NEVER)
    np.maximum.at(latest, player, time)
    return latest
