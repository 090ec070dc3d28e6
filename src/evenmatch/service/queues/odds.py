"""Predicted odds for the matchmaker from the ladder's rating system, as a curve over the rating difference of teams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch import online
from evenmatch.errors import EvenmatchError
from evenmatch.history import Floats
from evenmatch.matchmaking import OddsFunction
from evenmatch.service.queues.join_profiles import JoinProfiles
from evenmatch.systems.system import Rules

POINTS = 17  # points of the curve, including the one at difference 0
SURE = 0.99  # the curve ends where the predicted odds reach this
DOUBLINGS = 12  # at most, of the first distance in the search for that end


@dataclass(frozen=True, eq=False)
class Curve:
    """Predicted odds of a team as a function of its lead in mean rating; symmetric for both teams.

    ahead, chance  float64 (N,)  lead and odds, ascending from (0, 0.5)
    """

    ahead: Floats
    chance: Floats

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """The predicted odds of the first team, for the mean ratings of both teams."""
        gap = np.asarray(first, np.float64) - second
        above: Floats = np.interp(np.abs(gap), self.ahead, self.chance) - 0.5
        return 0.5 + np.sign(gap) * above


def odds_function(levels: JoinProfiles, team_size: int, at: int) -> OddsFunction | None:
    """The curve of a ladder's system around its mean rating, for two teams of this size.

    at  time of the match, microseconds since the epoch
    Returns None if the system cannot predict such a match.
    """
    rules, ratings = levels.plan.last_rules, levels.view.snapshot.against.rating
    if rules.system.teams not in (None, 2):
        return None
    middle = float(ratings.mean()) if len(ratings) else float(rules.newcomers(1)["rating"][0])
    spread = float(ratings.std()) if len(ratings) else 0.0
    try:
        return _curve(rules, middle, spread or max(abs(middle) / 10, 1.0), team_size, at)
    except EvenmatchError:  # ratings far from the middle are outside the system's range
        return None


def _curve(rules: Rules, middle: float, first: float, size: int, at: int) -> Curve | None:
    """The curve up to odds of SURE. first: the first distance to try."""
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
    leads = [_lead(rules, middle, float(gap), size, at) for gap in ahead]
    chance = np.maximum.accumulate(0.5 + np.array([0.0, *leads[1:]]))
    if not np.isfinite(chance).all():
        return None
    return Curve(ahead, np.clip(chance, 0.5, 1.0))


def _lead(rules: Rules, middle: float, gap: float, size: int, at: int) -> float:
    """Predicted odds minus 0.5 of a team that leads by `gap`: the mean of playing first and second (home and away)."""
    teams = np.repeat([middle + gap / 2, middle - gap / 2], size)
    state = rules.starting(teams)
    home = online.odds(rules, state, [size, size], at).expected[0]
    away = online.odds(rules, state[::-1].copy(), [size, size], at).expected[1]
    return (home + away) / 2 - 0.5
