"""Who played how much and when: what placement and the active window are judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, History, Times

DAY = 86_400_000_000  # microseconds
ALL_TIME = 4_000_000  # days, more than the calendar has
NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Activity:
    """Counts and times per player, int64 (P,). Completed: appeared and did not quit. NEVER where there is none.

    Who appeared as a guest (`keep` is False) has not played for their own rating, and that match is not counted.
    """

    matches: NDArray[np.int64]
    completed: NDArray[np.int64]
    last_played: Times
    last_completed: Times

    @classmethod
    def of(cls, history: History) -> Activity:
        """The activity that a history records."""
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
        """Who completed a match in the so many days up to `as_of` (microseconds; one for all, or one per player)."""
        oldest = as_of - np.int64(min(days, ALL_TIME) * DAY)
        active: Flags = (
            (self.last_completed != NEVER) & (self.last_completed >= oldest) & (self.last_completed <= as_of)
        )
        return active

    def placed(self, placement: int) -> Flags:
        """Who completed their placement matches."""
        return self.completed >= placement


def _latest(player: NDArray[np.int32], time: Times, players: int) -> Times:
    latest = np.full(players, NEVER)
    np.maximum.at(latest, player, time)
    return latest
