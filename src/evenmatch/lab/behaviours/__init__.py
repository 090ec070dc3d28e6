"""Behaviours: what players do to win, or to win rating, besides playing well. One file each, found by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenmatch.history import Flags
from evenmatch.lab.seasons.games import Play, Whole

if TYPE_CHECKING:
    from evenmatch.lab.seasons.season import Offer, Plan, Season


class Behaviour:
    """The conduct of some players. A subclass overrides the hooks it needs; each is called once per round.

    name    how commands call it;  title, does  for people: "Rage quitter", "leaves when the team is behind"
    games   games in which it makes sense, the most telling first
    doses   intensities that are searched for the most profitable one; 0 is honest play
    """

    name = "honest"
    title = "Honest player"
    does = "plays to win, and to the end"
    games: tuple[str, ...] = ("team", "duel", "brawl")
    doses: tuple[float, ...] = (0.25, 0.5, 1.0)

    def __init__(self, dose: float = 1.0) -> None:
        self.dose = dose

    def choose(self, season: Season, culprits: Whole) -> Whole:
        """The accounts whose conduct it decides; by default the culprits."""
        return culprits

    def begin(self, season: Season, own: Whole) -> None:
        """Prepare, with further accounts for example."""

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Change who of the own accounts joins the queue, with whom and with which filter."""

    def accept(self, season: Season, offer: Offer, mine: Flags) -> Flags:
        """Whether each slot accepts its match; those of others are ignored."""
        return np.ones(len(mine), np.bool_)

    def prepare(self, season: Season, play: Play, mine: Flags) -> None:
        """Change skill, score or margin before the matches begin. mine: bool (S,), the slots of own accounts."""

    def during(self, season: Season, play: Play, mine: Flags) -> None:
        """Leave or switch, after each stage but the last."""

    def after(self, season: Season, play: Play, mine: Flags) -> None:
        """React to the new ratings."""
