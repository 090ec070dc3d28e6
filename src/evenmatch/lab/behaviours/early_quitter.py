"""Early quitters leave soon after the start, whatever the score."""

from __future__ import annotations

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play
from evenmatch.lab.seasons.season import Season


class EarlyQuitter(Behaviour):
    """In a share `dose` of its matches, leaves after the first stage: it dislikes the map, or dinner is ready.

    Cost: the team is one player short for seven eighths of the match. The player saves the time.
    """

    name = "early_quitter"
    title = "Early quitter"
    does = "leaves soon after the start, whatever the score"

    def during(self, season: Season, play: Play, mine: Flags) -> None:
        """Leave at the first opportunity."""
        play.leave(mine & (play.whim < self.dose))


BEHAVIOUR = EarlyQuitter
