"""Upset attackers beat a top player with a fresh account, to take the rank away."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play, Whole
from evenmatch.lab.seasons.season import Plan, Season, SeasonRecord

WORSE = 3.0  # standard deviations of skill held back against everybody else
KNOWN = 10  # matches of a player before anybody attacks the rank


class UpsetAttacker(Behaviour):
    """Strong players who, each in a share `dose` of the rounds, wait for the best other player at a quiet hour.

    A quiet hour has just as many players as a match needs: the target, the best attackers on fresh accounts, up to a
    team of them, and passers-by, all with open filters. At busy hours the matchmaker keeps newcomers away from the top.
    The account loses to everybody else on purpose, so that it stays a newcomer's, and is replaced once it has gained.
    Half of them attack, for friends who play honestly, are never the target, and are the ones judged: they rise if the
    top falls. Cost: the attackers' rounds on their own accounts.
    """

    name = "upset_attacker"
    title = "Upset attacker"
    does = "beats top players with a fresh account, to take their rank away for a friend"
    games = ("duel", "team")
    doses = (0.1, 0.3, 1.0)

    def choose(self, season: Season, culprits: Whole) -> Whole:
        """Return the stronger half of the culprits."""
        return season.strongest(culprits)

    def judged(self, record: SeasonRecord) -> Flags:
        """The friends of the attackers."""
        return super().judged(record) & np.isin(record.person, self.friends)

    def begin(self, season: Season, own: Whole) -> None:
        """Open the fresh accounts of every other player by skill; the others are the friends."""
        self.target = -1
        self.fresh = np.full(season.settings.players, -1)
        by_skill = own[np.argsort(-season.talent[own])]
        self.friends = by_skill[::2]
        if self.dose:
            self.fresh[by_skill[1::2]] = [season.open_account(person) for person in by_skill[1::2].tolist()]

    def queue(self, season: Season, plan: Plan, own: Whole) -> None:
        """Meet the best present player at a quiet hour."""
        others = plan.joins & (season.crew != self.index)
        known = others & (season.played >= KNOWN)
        self.target = int(np.where(known, season.percentile, -1.0).argmax())
        person = own[own < len(self.fresh)]
        person = person[np.argsort(-season.talent[person])]
        ready = plan.joins[person] & (self.fresh[person] >= 0) & self.acts(season)[person]
        account = self.fresh[person[ready]][: season.game.team_size]
        others[self.target] = False
        passing = season.rng.permutation(season.accounts)
        passing = passing[others[passing]][: season.game.players - 1 - len(account)]
        quiet = np.concatenate((account, [self.target], passing))
        if known.any() and len(account) and len(quiet) == season.game.players:
            plan.joins[account] = True
            plan.party[quiet], plan.hour[quiet], plan.within[quiet] = quiet, 1 + account[0], 100.0

    def prepare(self, season: Season, play: Play, mine: Flags) -> None:
        """Play well only against the target."""
        at = np.flatnonzero(play.account == self.target)
        match, team = (play.match[at[0]], play.team[at[0]]) if len(at) else (-1, -1)
        throws = mine & (play.account >= len(self.fresh)) & ((play.match != match) | (play.team == team))
        play.skill[throws] -= WORSE

    def after(self, season: Season, play: Play, mine: Flags) -> None:
        """Replace accounts that are no newcomer's any more."""
        start = float(season.rules.newcomers(1)["rating"][0])
        for account in play.account[mine & (play.account >= len(self.fresh))].tolist():
            if season.rating[account] > start:
                fresh = season.open_account(int(season.person[account]))
                if fresh >= 0:
                    season.retire(np.array([account]))
                    self.fresh[season.person[account]] = fresh


BEHAVIOUR = UpsetAttacker
