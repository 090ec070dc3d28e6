"""Win traders meet at odd hours and let each other win in turn."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play, Whole
from evenmatch.lab.seasons.season import Plan, Season

WORSE = 8.0  # standard deviations of skill that the loser holds back


class WinTrader(Behaviour):
    """Pairs who, in a share `dose` of the rounds, queue for a duel when nobody else does; each loses every other one.

    Both stand to gain, which needs a system that pays the winner more than it charges the loser. Cost: the time.
    They play no other match in such a round. Games of more than two players cannot be traded.
    """

    name = "win_trader"
    title = "Win trader"
    does = "meets a partner at odd hours, and they let each other win in turn"
    games = ("duel",)

    def begin(self, season: Season, own: Whole) -> None:
        """Pair players of about the same skill; an odd one stays alone."""
        by_skill = own[np.argsort(season.talent[own])]
        self.pairs = by_skill[: len(by_skill) // 2 * 2].reshape(-1, 2)
        self.partner = np.full(season.accounts, -1)
        self.partner[self.pairs] = self.pairs[:, ::-1]
        self.loses = np.zeros(season.accounts, np.bool_)
        self.loses[self.pairs[:, 0]] = True
        self.trades = np.zeros(season.accounts, np.bool_)

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Meet at the pair's own hour, with a filter that reaches the partner."""
        self.trades[:] = False
        if season.game.players != 2:
            return
        come = (season.active & self.acts(season))[self.pairs[:, 0]] & season.active[self.pairs[:, 1]]
        come &= plan.joins[self.pairs[:, 0]] & (season.begins[self.pairs[:, 1]] <= season.round)
        meeting = self.pairs[come].ravel()
        self.trades[meeting] = plan.joins[meeting] = True
        plan.party[meeting] = meeting
        plan.within[meeting] = 100.0
        plan.hour[meeting] = 1 + self.pairs[come, 0].repeat(2)

    def prepare(self, season: Season, play: Play, mine: Flags) -> None:
        """Lose if it is the partner's turn to win."""
        play.skill[self._meets(play, mine) & self.loses[play.account]] -= WORSE

    def after(self, season: Season, play: Play, mine: Flags) -> None:
        """Change turns."""
        traded = play.account[self._meets(play, mine)]
        self.loses[traded] = ~self.loses[traded]

    def _meets(self, play: Play, mine: Flags) -> Flags:
        """Whether each slot plays against its partner in a round in which they trade."""
        if play.game.players != 2:
            return np.zeros(len(mine), np.bool_)
        rival = play.account.reshape(-1, 2)[:, ::-1].ravel()
        meets: Flags = mine & self.trades[play.account] & (self.partner[play.account] == rival)
        return meets


BEHAVIOUR = WinTrader
