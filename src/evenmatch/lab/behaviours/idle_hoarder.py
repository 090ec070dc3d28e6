"""Idle hoarders stop playing at their best rank, to keep it."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play, Whole
from evenmatch.lab.seasons.season import Plan, Season

WATCHED = 0.75  # share of the season that a hoarder of dose 1 does not spend on looking for the best rank
NEAR = 2.0  # percentiles
LEAST = 5  # matches before anybody stops


class IdleHoarder(Behaviour):
    """Plays like everybody for a share 1 - WATCHED · `dose` of the season, and from then on only below its best rank.

    Cost: matches that it does not play, and the rank that others gain meanwhile. It plays again when it falls more than
    NEAR below its best.
    """

    name = "idle_hoarder"
    title = "Idle hoarder"
    does = "stops playing at the best rank, to keep it"
    games = ("duel", "team", "brawl")

    def begin(self, season: Season, own: Whole) -> None:
        """Remember the best percentile of each account."""
        self.best = np.full(season.accounts, -np.inf)

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Stay away with a good rank."""
        if season.round >= (1.0 - WATCHED * self.dose) * season.rounds:
            proud = (season.percentile[own] >= self.best[own] - NEAR) & (season.played[own] >= LEAST)
            plan.joins[own[proud]] = False

    def after(self, season: Season, play: Play, mine: Flags) -> None:
        """Update the best percentile."""
        account = play.account[mine & (season.played[play.account] >= LEAST)]
        self.best[account] = np.maximum(self.best[account], season.percentile[account])


BEHAVIOUR = IdleHoarder
