"""Why simulated players leave the game for good: losses in a row, hopeless matches and long waits.

The direction of each effect is published; its size is a default that a studio replaces by its own numbers.

- Losses in a row: players of a game by Electronic Arts were about twice as likely to stay away for a week after three
  losses as after a win (Chen, Xue, Kolen and others, "EOMM: An Engagement Optimized Matchmaking Framework", WWW 2017).
- Stronger opponents: in six million matches of Everybody's Marble, meeting stronger opponents made players leave, and
  meeting weaker ones kept them (Kang, Suh and Kim, Heliyon 10(3), 2024).
- Wide matches: with looser matching by skill, 90 % of the players of Call of Duty: Modern Warfare III came back less
  often, and 80 % more matches were quit (Activision, "The Role of Skill in Matchmaking", 2024).
- Waiting: the target of 90 s is what operators recommend; no published size is known to us.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.seasons.games import Whole


class Annoyance(NamedTuple):
    """What makes a player leave after a match, or after waiting in vain.

    base      chance to leave after a match that was won, fair and found at once
    losses    factor of that chance for each loss in a row, up to three
    hopeless  factor after a lost match in which the true chance was 0; 1 at a chance of one half
    patience  seconds that a player waits gladly
    waiting   factor for each further minute, up to ten minutes
    in_vain   factor if no match was found at all
    """

    base: float = 0.002
    losses: float = 1.26
    hopeless: float = 3.0
    patience: float = 90.0
    waiting: float = 1.25
    in_vain: float = 2.0

    def chances(self, losses: Whole, truth: Floats, waited: Floats, lost: Flags, in_vain: Flags) -> Floats:
        """The chance of each player to leave now.

        losses  int64 (N,)    losses in a row, this match included
        truth   float64 (N,)  the team's true chance to win;  lost  bool (N,)
        waited  float64 (N,)  seconds;  in_vain  bool (N,)  without finding a match
        """
        minutes = np.clip((waited - self.patience) / 60.0, 0.0, 10.0)
        unfair = np.where(lost, np.maximum(1.0 - 2.0 * truth, 0.0), 0.0)
        factor = self.losses ** np.minimum(losses, 3) * self.hopeless**unfair * self.waiting**minutes
        factor *= np.where(in_vain, self.in_vain, 1.0)
        return np.minimum(self.base * factor, 1.0)
