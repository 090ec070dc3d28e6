"""Smurfs are strong players who begin again with a fresh account."""

from __future__ import annotations

from evenmatch.lab.behaviours.alt_splitter import AltSplitter
from evenmatch.lab.seasons.games import Whole
from evenmatch.lab.seasons.season import Season

START = 0.25  # share of the season after which the fresh accounts appear


class Smurf(AltSplitter):
    """Plays a share `dose` of the rounds on a fresh account, from a quarter of the season on. Strong players only.

    Cost: none but the time until the fresh account has climbed. Those who meet it on its way lose to a player much
    stronger than the rating says.
    """

    name = "smurf"
    title = "Smurf"
    does = "is strong and begins again with a fresh account"

    def choose(self, season: Season, culprits: Whole) -> Whole:
        """Return the stronger half of the culprits."""
        return season.strongest(culprits)

    def is_time(self, season: Season) -> bool:
        """Whether the ladder has settled."""
        return season.round >= START * season.rounds


BEHAVIOUR = Smurf
