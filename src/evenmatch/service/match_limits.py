"""The largest match that is accepted, in all and on each ladder, and the most live matches of a ladder.

Rating a match compares each team with every other.
"""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.errors import InputError
from evenmatch.service.settings import Settings


class MatchLimits(NamedTuple):
    """The most teams and the most players of a match, and the most live matches of a ladder.

    whose  what sets the first two, for messages
    """

    teams: int = 10_000
    players: int = 10_000
    running: int = 10_000
    whose: str = "of this service, EVENMATCH_TEAM_LIMIT and EVENMATCH_PLAYER_LIMIT"

    def on(self, ladder: str, settings: Settings) -> MatchLimits:
        """These limits on a ladder, whose settings may lower them."""
        if settings.team_limit >= self.teams and settings.player_limit >= self.players:
            return self
        return MatchLimits(
            min(self.teams, settings.team_limit),
            min(self.players, settings.player_limit),
            self.running,
            f"of ladder {ladder!r}, its settings team_limit and player_limit",
        )

    def refusal(self, teams: int, players: int) -> str | None:
        """Why a match of this size is refused; None: it is not."""
        if teams <= self.teams and players <= self.players:
            return None
        return (
            f"has {teams:,} teams with {players:,} players; expected at most {self.teams:,} teams and "
            f"{self.players:,} players, which are the limits {self.whose}"
        )

    def check(self, what: str, teams: int, players: int) -> None:
        """Raise InputError, which names `what`, for a match of this size that is refused."""
        reason = self.refusal(teams, players)
        if reason is not None:
            raise InputError(f"{what} {reason}")


LARGEST = MatchLimits()
