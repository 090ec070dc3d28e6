"""Behaviours: what players do to win, or to win rating, besides playing well.

Each file of this folder defines one as BEHAVIOUR, a subclass of Behaviour; a user's own comes from a Python file.
"""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np

from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.history import Flags
from evenmatch.lab.seasons.games import Play, Whole
from evenmatch.lab.seasons.season import Offer, Plan, Season, SeasonRecord
from evenmatch.systems import is_file, load_file

__all__ = ["Behaviour", "find", "is_file", "names"]


class Behaviour:
    """The conduct of some players. A subclass overrides the hooks it needs; each is called once per round.

    name    how commands call it;  title, does  for people: "Rage quitter", "leaves when the team is behind"
    games   games in which it makes sense, the most telling first
    doses   intensities that are searched for the most profitable one; 0 is honest play
    index   its number among the behaviours of the season, as in `Season.crew`

    A season of dose 0 equals the season of honest players in every bit. A behaviour draws random numbers only with
    `acts` and `Play.whim`, which do not depend on who is present.
    """

    name = "honest"
    title = "Honest player"
    does = "plays to win, and to the end"
    games: tuple[str, ...] = ("team", "duel", "brawl")
    doses: tuple[float, ...] = (0.25, 0.5, 1.0)

    def __init__(self, dose: float = 1.0) -> None:
        self.dose = dose
        self.index = 0

    def acts(self, season: Season) -> Flags:
        """Draw for each account whether it acts now, with probability `dose`; bool (A,)."""
        return season.rng.random(season.accounts) < self.dose

    def judged(self, record: SeasonRecord) -> Flags:
        """The accounts by which the players who are to gain are judged, bool (A,); of several the best counts.

        By default each player's first account. A player without such an account helps others, like a booster.
        """
        judged: Flags = (record.crew == self.index) & (record.person == np.arange(len(record.person)))
        return judged

    def choose(self, season: Season, culprits: Whole) -> Whole:
        """Return the accounts whose conduct it decides; by default the culprits. It must not depend on the dose."""
        return culprits

    def begin(self, season: Season, own: Whole) -> None:
        """Prepare, for example by opening further accounts."""

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Change who of the own accounts joins the queue, with whom and with which filter."""

    def accept(self, season: Season, offer: Offer, mine: Flags) -> Flags:
        """Whether each slot accepts its match; the values of slots that are not `mine` are ignored."""
        return np.ones(len(mine), np.bool_)

    def prepare(self, season: Season, play: Play, mine: Flags) -> None:
        """Change skill, score or margin before the matches begin. mine: bool (S,), the slots of own accounts."""

    def during(self, season: Season, play: Play, mine: Flags) -> None:
        """Leave or switch, after each stage but the last."""

    def after(self, season: Season, play: Play, mine: Flags) -> None:
        """React to the new ratings."""


def names() -> list[str]:
    """The names of all behaviours of this package, honest play first."""
    return sorted((module.name for module in pkgutil.iter_modules(__path__)), key=lambda name: (name != "honest", name))


def find(name: str) -> type[Behaviour]:
    """The behaviour with this name, or the one that a Python file (a path ending in .py) defines as BEHAVIOUR.

    Raises UnknownNameError for an unknown name, UsageError for a file without a behaviour.
    """
    if not is_file(name) and name not in names():
        raise UnknownNameError("behaviour", name, names())
    module = load_file(name, "behaviour") if is_file(name) else importlib.import_module(f"{__name__}.{name}")
    found = getattr(module, "BEHAVIOUR", None)
    if not (isinstance(found, type) and issubclass(found, Behaviour)):
        raise UsageError(f"{name} defines no BEHAVIOUR; expected a module with a subclass of Behaviour of that name")
    return found
