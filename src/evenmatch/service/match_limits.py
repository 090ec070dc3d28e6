"""The largest match that is accepted, in all and on each ladder, and the most live matches of a ladder.

Rating a match compares each team with every other.
"""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.errors import InputError
from evenmatch.service.settings import Settings


class MatchLimits(NamedTuple):
    """The most teams and the most players of a match, and the most live matches of a ladder.

    team_setting, player_setting  what sets the first two, for messages; empty: they are fixed
    """

    teams: int = 10_000
    players: int = 10_000
    running: int = 10_000
    team_setting: str = ""
    player_setting: str = ""

    def on(self, ladder: str, settings: Settings) -> MatchLimits:
        """These limits on a ladder, whose settings may lower them."""
        limits = self
        if settings.team_limit < self.teams:
            limits = limits._replace(teams=settings.team_limit, team_setting=f"team_limit of ladder {ladder!r}")
        if settings.player_limit < self.players:
            limits = limits._replace(players=settings.player_limit, player_setting=f"player_limit of ladder {ladder!r}")
        return limits

    def refusal(self, teams: int, players: int) -> str | None:
        """Why a match of this size is refused; None: it is not."""
        if teams <= self.teams and players <= self.players:
            return None
        most_teams = f"{self.teams:,} teams{_by(self.team_setting)}"
        most_players = f"{self.players:,} players{_by(self.player_setting)}"
        return f"has {teams:,} teams with {players:,} players; expected at most {most_teams} and {most_players}"

    def check(self, what: str, teams: int, players: int) -> None:
        """Raise InputError, which names `what`, for a match of this size that is refused."""
        reason = self.refusal(teams, players)
        if reason is not None:
            raise InputError(f"{what} {reason}")


LARGEST = MatchLimits()


def _by(setting: str) -> str:
    return f" ({setting})" if setting else ""
