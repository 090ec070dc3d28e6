"""Odds for the matchmaker from the ladder's own rating system, as a curve over the distance of two teams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch import online
from evenmatch.errors import EvenmatchError
from evenmatch.history import Floats
from evenmatch.matchmaking import Odds
from evenmatch.service.queueing.levels import Levels
from evenmatch.systems.system import Rules

POINTS = 17  # of the curve to each side, the middle among them
SURE = 0.99  # beyond a chance like this the curve is flat
DOUBLINGS = 12  # of the first distance, in search of it


@dataclass(frozen=True, eq=False)
class Curve:
    """The chance of the first team over how far its mean rating is above the other's; the same for both teams.

    ahead, chance  float64 (N,)  rising from (0, 0.5)
    """

    ahead: Floats
    chance: Floats

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """The chance that the first team wins."""
        gap = np.asarray(first, np.float64) - second
        above: Floats = np.interp(np.abs(gap), self.ahead, self.chance) - 0.5
        return 0.5 + np.sign(gap) * above


def foretell(levels: Levels, team_size: int, at: int) -> Odds | None:
    """The curve of a ladder's system around its mean rating, for two teams of this size at a time (microseconds).

    None where the system foretells no such match.
    """
    rules, ratings = levels.plan.last_rules, levels.view.snapshot.against.rating
    if rules.system.teams not in (None, 2):
        return None
    middle = float(ratings.mean()) if len(ratings) else float(rules.newcomers(1)["rating"][0])
    spread = float(ratings.std()) if len(ratings) else 0.0
    try:
        return _curve(rules, middle, spread or max(abs(middle) / 10, 1.0), team_size, at)
    except EvenmatchError:  # ratings far from the middle are none of this system's
        return None


def _curve(rules: Rules, middle: float, first: float, size: int, at: int) -> Curve | None:
    """The curve up to where the better team is sure to win."""
    reach = first
    for _ in range(DOUBLINGS):
        if _lead(rules, middle, reach, size, at) >= SURE - 0.5:
            break
        try:
            _lead(rules, middle, 2 * reach, size, at)
        except EvenmatchError:
            break
        reach *= 2
    ahead = np.linspace(0.0, reach, POINTS)
    lead = [_lead(rules, middle, float(one), size, at) for one in ahead]
    chance = np.maximum.accumulate(0.5 + np.array([0.0, *lead[1:]]))
    if not np.isfinite(chance).all():
        return None
    return Curve(ahead, np.clip(chance, 0.5, 1.0))


def _lead(rules: Rules, middle: float, gap: float, size: int, at: int) -> float:
    """How much likelier than even a team wins whose mean rating is so far above; home or not, half a draw a win."""
    teams = np.repeat([middle + gap / 2, middle - gap / 2], size)
    state = rules.starting(teams)
    home = online.odds(rules, state, [size, size], at).expected[0]
    away = online.odds(rules, state[::-1].copy(), [size, size], at).expected[1]
    return (home + away) / 2 - 0.5
