"""Odds of a match between two teams, from the mean ratings of their players."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenmatch.history import Floats
from evenmatch.policy import Policy


class OddsFunction(Protocol):
    """Function that predicts a match of two teams with the rating system of a ladder."""

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """The chance that the first team wins, 0..1, for arrays of mean team ratings; it increases with `first`."""
        ...


@dataclass(frozen=True)
class Logistic:
    """Odds by Elo's curve: ten to one for a difference of `scale` points between the teams' means."""

    scale: float = 400.0

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """Return the chance that the first team wins."""
        logits = (np.asarray(first) - second) / self.scale * math.log(10)
        chance: Floats = 0.5 + 0.5 * np.tanh(logits / 2)  # equals 1 / (1 + exp(-logits)), without overflow
        return chance


def predicted_odds(policy: Policy, first: Floats, second: Floats) -> Floats:
    """The chance that the first of two teams wins, from their mean ratings: the policy's odds, or Elo's curve."""
    return Logistic(policy.odds_scale)(first, second) if policy.odds is None else policy.odds(first, second)
