"""Queue dodgers decline offers of matches that they expect to lose."""

from __future__ import annotations

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.season import Offer, Season

LOW = 0.5  # chance to win by the known ratings


class QueueDodger(Behaviour):
    """Declines a share `dose` of the offers in which its team's chance is below LOW.

    Cost: whoever declines does not play in this round. The others of the match go back to the queue for the second
    tick, or play nothing if that was the second.
    """

    name = "queue_dodger"
    title = "Queue dodger"
    does = "declines matches with a low chance to win"

    def accept(self, season: Season, offer: Offer, mine: Flags) -> Flags:
        """Accept even matches and better ones."""
        return ~(mine & (offer.chance < LOW) & self.acts(season)[offer.account])


BEHAVIOUR = QueueDodger
