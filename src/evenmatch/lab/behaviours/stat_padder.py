"""Stat padders play for their own score and not for the win."""

from __future__ import annotations

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play
from evenmatch.lab.seasons.season import Season

MORE = 0.5  # of the own score
COST = 0.5  # standard deviations of skill for the win


class StatPadder(Behaviour):
    """Raises its own score by a share MORE · `dose` and plays COST · `dose` less well for the win.

    Cost: time spent on kills, or on damage that decides nothing, is not spent on the objective. The size is an
    assumption: a padder of dose 1 in a team of four costs the team an eighth of a standard deviation of skill.
    """

    name = "stat_padder"
    title = "Stat padder"
    does = "plays for a high score and not for the win"
    games = ("team", "brawl", "duel")

    def prepare(self, season: Season, play: Play, mine: Flags) -> None:
        """Trade skill for score."""
        play.score_factor[mine] *= 1.0 + MORE * self.dose
        play.skill[mine] -= COST * self.dose


BEHAVIOUR = StatPadder
