"""Booster crews queue with a player on throwaway accounts and leave when the win is all but secured."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play, Whole
from evenmatch.lab.seasons.season import Plan, Season, SeasonRecord

SECURE = 0.7  # probits ahead: enough to win without the boosters


class BoosterCrew(Behaviour):
    """In a share `dose` of the rounds, a party of throwaway accounts plays with the boosted player.

    The article's exploit: when the win is all but secured, the boosters leave, and the boosted player wins for a team
    that is three players short. Cost: the boosters' time on their own accounts, and a low mean rating of the team.

    is_party    whether they queue as one party
    with_at     share of the match after which boosters leave the boosted player's team, if its lead is secure
    against_at  share of the match after which they leave the other team
    """

    name = "booster_crew"
    title = "Booster crew"
    does = "plays with a friend on throwaway accounts, and leaves when the win is all but secured"
    games: tuple[str, ...] = ("team",)
    is_party = True
    with_at, against_at = 7 / 8, 1 / 2

    def judged(self, record: SeasonRecord) -> Flags:
        """The boosted players."""
        return np.isin(np.arange(len(record.person)), self.boosted)

    def begin(self, season: Season, own: Whole) -> None:
        """Divide the players into crews of one boosted player and up to a team of boosters, who open accounts."""
        size = max(season.game.team_size, 2)
        self.boosted = own[: max(len(own) // size, 1)]
        self.boosters = own[len(self.boosted) : len(self.boosted) * size] if self.dose else own[:0]
        self.throwaway = np.array([season.open_account(person) for person in self.boosters.tolist()], np.int64)
        self.boosters, self.throwaway = self.boosters[self.throwaway >= 0], self.throwaway[self.throwaway >= 0]
        self.friend = np.full(season.accounts, -1)
        if len(self.throwaway):
            self.friend[self.throwaway] = np.resize(self.boosted, len(self.throwaway))

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Come when the boosted player comes."""
        friend = self.friend[self.throwaway]
        come = plan.joins[friend] & self.acts(season)[friend] & (season.begins[self.boosters] <= season.round)
        throwaway, friend = self.throwaway[come], friend[come]
        plan.joins[throwaway] = True
        if self.is_party:
            plan.party[friend] = season.accounts + friend
            plan.party[throwaway] = season.accounts + friend
        else:
            plan.within[friend] = plan.within[throwaway] = 100.0
            if season.game.players == 2:
                plan.hour[friend] = plan.hour[throwaway] = 1 + friend

    def during(self, season: Season, play: Play, mine: Flags) -> None:
        """Leave at the chosen moment."""
        team = np.full(season.accounts + 1, -1)  # of each account; the last stands for no friend
        team[play.account] = play.team
        own, other = play.team, team[self.friend[play.account]]
        booster = mine & (other >= 0)
        rivals = booster & (own != other) & (own // play.game.teams == other // play.game.teams)
        play.leave(booster & (own == other) & (play.lead >= SECURE) & (play.done >= self.with_at))
        play.leave(rivals & (play.done >= self.against_at))


BEHAVIOUR = BoosterCrew
