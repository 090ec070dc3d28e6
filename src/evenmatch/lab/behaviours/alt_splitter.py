"""Alt splitters divide their matches between two accounts."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Whole
from evenmatch.lab.seasons.season import Plan, Season, SeasonRecord


class AltSplitter(Behaviour):
    """Plays a share `dose` / 2 of the rounds on a second account, and is judged by the better of the two.

    Cost: each account has fewer matches. Whoever may choose the luckier of two ratings gains, unless the system is sure
    enough of a rating, or too slow for so few matches.
    """

    name = "alt_splitter"
    title = "Account splitter"
    does = "divides the matches between two accounts and shows the better one"
    games = ("team", "duel", "brawl")

    def judged(self, record: SeasonRecord) -> Flags:
        """Each player's first account, and every further account that has been placed; the best counts."""
        placed: Flags = (record.crew == self.index) & (record.state.played >= record.settings.placement)
        return super().judged(record) | placed

    def begin(self, season: Season, own: Whole) -> None:
        """Open the further accounts."""
        self.further = np.full(season.settings.players, -1)
        if self.dose:
            self.further[own] = [season.open_account(person) for person in own.tolist()]

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Queue with the further account; of one person's accounts only the last takes part."""
        person = own[own < len(self.further)]
        using = plan.joins[person] & (self.further[person] >= 0) & self.acts(season)[person]
        if self.is_time(season):
            plan.joins[self.further[person[using]]] = True

    def is_time(self, season: Season) -> bool:
        """Whether further accounts may be used in this round."""
        return season.round % 2 == 0


BEHAVIOUR = AltSplitter
