"""Filter abusers set a strict narrow filter, so that nobody far above or below can beat them."""

from __future__ import annotations

from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Whole
from evenmatch.lab.seasons.season import Plan, Season

ROOM = 1.25  # players whom the filter admits, as a multiple of those whom a match needs


class FilterAbuser(Behaviour):
    """Strong players who, in a share `dose` of the rounds, set the narrowest strict filter that may find a match.

    At the top there are few rivals within such a filter, always the same ones and mostly below. Cost: many rounds
    without a match.
    """

    name = "filter_abuser"
    title = "Filter abuser"
    does = "sets a strict narrow filter at the top"
    games = ("duel", "team", "brawl")

    def choose(self, season: Season, culprits: Whole) -> Whole:
        """Return the stronger half of the culprits."""
        return season.strongest(culprits)

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Narrow the filter to the players needed, above and below together."""
        narrow = own[self.acts(season)[own]]
        present = max(int(plan.joins.sum()), 1)
        plan.within[narrow] = min(50.0 * ROOM * season.game.players / present, 100.0)
        plan.loose[narrow] = False


BEHAVIOUR = FilterAbuser
