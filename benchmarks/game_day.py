"""What happens in a day of a game with a million players; docs/scale.md computes with the same numbers."""

from __future__ import annotations

from typing import NamedTuple


class GameDay(NamedTuple):
    """A game of 6v6 in one region.

    players        who play on a day, each of them `matches_each` matches
    reads_each     times that the game shows each of them their standing, by the API
    views_each     pages of the web site that each of them looks at
    match_seconds  how long a match takes
    longest        seconds that a simulated one takes at the most, so that matches end soon after a run begins
    busiest        arrivals in the busiest hour, as a multiple of the day's mean: they rise and fall with the cosine of
                   the hour, and four times as many come in the busiest hour as in the quietest
    """

    players: int = 1_000_000
    matches_each: int = 3
    reads_each: int = 4
    views_each: int = 1
    team_size: int = 6
    match_seconds: float = 900.0
    longest: float = 60.0
    busiest: float = 1.6

    def match_seconds_at(self, multiple: float) -> float:
        """How long a simulated match takes at this multiple of real time."""
        return min(self.match_seconds / multiple, self.longest)

    @property
    def joins(self) -> int:
        """Joins of a queue in a day; all players are alone."""
        return self.players * self.matches_each

    @property
    def matches(self) -> int:
        """Matches in a day: as many offers, and as many reports."""
        return self.joins // (2 * self.team_size)

    @property
    def reads(self) -> int:
        """Standings read by the game in a day."""
        return self.players * self.reads_each

    @property
    def views(self) -> int:
        """Page views in a day."""
        return self.players * self.views_each
