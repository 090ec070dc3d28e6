"""Margin padders run up the score of matches that they win."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play
from evenmatch.lab.seasons.season import Season

MORE = 1.0  # of the margin, if the whole team does it
COST = 0.1  # standard deviations of skill for the win


class MarginPadder(Behaviour):
    """Raises the margin of its wins by a share MORE · `dose`, in proportion to its part of the team.

    Cost: attacks that only serve the score leave the lead unguarded, COST · `dose` of skill. The size is an assumption.
    """

    name = "margin_padder"
    title = "Margin padder"
    does = "runs up the score instead of securing the win"
    games = ("team", "duel")

    def prepare(self, season: Season, play: Play, mine: Flags) -> None:
        """Trade skill for margin."""
        part = np.bincount(play.team, mine, len(play.margin_factor)) / play.game.team_size
        play.margin_factor *= 1.0 + MORE * self.dose * part
        play.skill[mine] -= COST * self.dose


BEHAVIOUR = MarginPadder
