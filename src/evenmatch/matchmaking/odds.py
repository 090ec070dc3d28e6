"""The predicted odds of proposed matches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenmatch.errors import BadParameterError
from evenmatch.history import Floats
from evenmatch.matchmaking.tickets import Whole, starts
from evenmatch.policy import Policy

DIGITS = 9  # decimal digits of odds: the last bits of exp and tanh differ between processors


@dataclass(frozen=True, eq=False)
class LineUps:
    """M possible matches with the same number of teams and S players in all. No team is empty.

    teams   number of teams of each match
    start   int64 (M * teams + 1,)  first player of each team, match after match
    player  int64 (S,)  number;  rating  float64 (S,)  see matchmaking.Member
    """

    teams: int
    start: Whole
    player: Whole
    rating: Floats

    @classmethod
    def of(cls, players: Sequence[Sequence[int]], ratings: Sequence[Sequence[float]]) -> LineUps:
        """One match: the players and the ratings of its teams."""
        return cls(
            len(players),
            starts([len(team) for team in players]),
            np.array([player for team in players for player in team], np.int64),
            np.array([rating for team in ratings for rating in team], np.float64),
        )

    def __len__(self) -> int:
        return (len(self.start) - 1) // self.teams

    def means(self) -> Floats:
        """The mean rating of each team; float64 (M, teams)."""
        if not len(self.rating):
            return np.empty((0, self.teams))
        mean: Floats = np.add.reduceat(self.rating, self.start[:-1]) / np.diff(self.start)
        return mean.reshape(-1, self.teams)


class OddsFunction(Protocol):
    """A function that predicts matches, usually with a ladder's rating system."""

    def __call__(self, line_ups: LineUps) -> Floats:
        """The chance of the first team of each match; with three or more teams, of the strongest against the weakest.

        float64 (M,), 0..1; a draw counts half; NaN: the system cannot predict such a match.
        """
        ...


@dataclass(frozen=True)
class Logistic:
    """Odds by Elo's curve. A difference of `scale` points between the teams' means gives ten to one."""

    scale: float = 400.0

    def __call__(self, line_ups: LineUps) -> Floats:
        """The chance of the first team, or of the strongest against the weakest."""
        means = line_ups.means()
        return self.chance(*(means.T if line_ups.teams == 2 else (means.max(1), means.min(1))))

    def chance(self, first: Floats, second: Floats) -> Floats:
        """The chance of a team with mean rating `first` against a team with mean rating `second`."""
        logits = (np.asarray(first) - second) / self.scale * math.log(10)
        chance: Floats = 0.5 + 0.5 * np.tanh(logits / 2)  # equals 1 / (1 + exp(-logits)), without overflow
        return chance


def predicted_odds(policy: Policy, line_ups: LineUps) -> Floats:
    """The odds of matches by the policy's function, or by Elo's curve if it has none; see OddsFunction.

    Raises BadParameterError if the function returns anything but chances.
    """
    function = Logistic(policy.odds_scale) if policy.odds is None else policy.odds
    odds: Floats = np.asarray(function(line_ups), np.float64)
    if odds.shape != (len(line_ups),) or not (((odds >= 0) & (odds <= 1)) | np.isnan(odds)).all():
        raise BadParameterError("the policy's odds returned invalid values; expected chances from 0 to 1, or NaN")
    return np.round(odds, DIGITS)


def exceeds(odds: Floats, policy: Policy) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mask of the odds beyond the policy's cap. Unknown odds (NaN) never are."""
    if policy.max_odds is None:
        return np.zeros(len(odds), np.bool_)
    return np.asarray(np.maximum(odds, 1.0 - odds) > policy.max_odds)
