"""Matches in which the first side and each player more have an advantage that is known."""

import numpy as np

from evenmatch import Match, Team, from_matches
from ledger.sample_matches import after


def sided_season(count=2000):
    """Matches of 1 to 3 players a side: each player more is worth 150 points, the first side 60."""
    rng = np.random.default_rng(11)
    skill = rng.normal(0, 150, 60)
    matches = []
    for number in range(count):
        size, rivals = rng.integers(1, 4, 2)
        chosen = rng.permutation(60)[: size + rivals]
        lead = skill[chosen[:size]].mean() - skill[chosen[size:]].mean() + 60 + 150 * (size - rivals)
        won = rng.random() < 1 / (1 + 10 ** (-lead / 400))
        names = [f"p{index}" for index in chosen]
        teams = (Team.of(*names[:size], place=2 - won), Team.of(*names[size:], place=1 + won))
        matches.append(Match(f"m{number}", after(number), teams, "default"))
    return from_matches(matches)
