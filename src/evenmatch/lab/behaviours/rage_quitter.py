"""Rage quitters leave when their team is clearly behind."""

from __future__ import annotations

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play
from evenmatch.lab.seasons.season import Season


class RageQuitter(Behaviour):
    """In a share `dose` of its matches, leaves as soon as its team is behind by CLEAR or more.

    Cost: the team goes on without the player's skill and loses `Game.absence` besides, so it hardly ever comes back; a
    duel is lost at once.
    """

    name = "rage_quitter"
    title = "Rage quitter"
    does = "leaves when the team is clearly behind"

    def during(self, season: Season, play: Play, mine: Flags) -> None:
        """Leave a match that is going badly."""
        play.leave(mine & (play.whim < self.dose) & (play.lead <= -CLEAR))


CLEAR = 0.4  # probits; from there a team of equal skill still wins about 3 of 10 matches

BEHAVIOUR = RageQuitter
