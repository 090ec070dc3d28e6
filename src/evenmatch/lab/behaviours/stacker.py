"""Stackers queue only with strong friends."""

from __future__ import annotations

import numpy as np

from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Whole
from evenmatch.lab.seasons.season import Plan, Season


class Stacker(Behaviour):
    """In a share `dose` of the rounds, queues only in a party with friends from the top of the field.

    Each has as many friends as a team has other places. They play otherwise honestly and come when they would anyway.
    Cost: no match while no friend is there, and a longer wait, because a party of unequal players needs wide filters.
    """

    name = "stacker"
    title = "Stacker"
    does = "queues only with strong friends"
    games = ("team",)

    def begin(self, season: Season, own: Whole) -> None:
        """Find the friends: the strongest honest players, each the friend of one stacker."""
        self.friend_of = np.full(season.settings.players, -1)
        honest = np.setdiff1d(np.arange(season.settings.players), season.culprits)
        best = honest[np.argsort(-season.talent[honest])][: len(own) * (season.game.team_size - 1)]
        self.friend_of[best] = np.resize(own, len(best))

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Form the parties."""
        host = np.zeros(season.accounts, np.bool_)
        host[own] = plan.joins[own] & self.acts(season)[own]
        guests = np.flatnonzero(plan.joins[: len(self.friend_of)] & (self.friend_of >= 0))
        guests = guests[host[self.friend_of[guests]]]
        accompanied = np.unique(self.friend_of[guests])
        plan.party[guests] = season.accounts + self.friend_of[guests]
        plan.party[accompanied] = season.accounts + accompanied
        host[accompanied] = False
        plan.joins[host] = False


BEHAVIOUR = Stacker
