"""Win switchers change to the winning team near the end."""

from __future__ import annotations

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play
from evenmatch.lab.seasons.season import Season

LATE = 0.75  # share of the match after which they look at the score


class WinSwitcher(Behaviour):
    """In a share `dose` of its matches, changes to the leading team in the last quarter of the match.

    Cost: the old team is one player short, the new one has one too many. Nobody switches who is the last of a team.
    The report lists the player in the new team only, with the time played there.
    """

    name = "win_switcher"
    title = "Win switcher"
    does = "changes to the winning team near the end"
    games = ("team",)

    def during(self, season: Season, play: Play, mine: Flags) -> None:
        """Join the team that leads."""
        if play.done >= LATE:
            play.switch(mine & (play.whim < self.dose))


BEHAVIOUR = WinSwitcher
