"""Sandbaggers lose on purpose and then climb back."""

from __future__ import annotations

from evenmatch.history import Flags
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import Play
from evenmatch.lab.seasons.season import Season

CYCLE = 10  # matches
THROWN = 5  # of them lost on purpose at dose 1
WORSE = 3.0  # standard deviations of skill held back in a team
IDLE = 8.0  # in a game without team-mates, where whoever does nothing loses
CLIMB = 2 / 3  # share of the season after which nobody throws a match


class Sandbagger(Behaviour):
    """Throws the first THROWN · `dose` of every CYCLE matches and plays the others to win; at last only plays to win.

    Cost: a thrown duel is lost; in a team of four the team loses three quarters of a standard deviation of mean skill.
    Rivals and team-mates are paid or charged for a strength that is not shown.
    """

    name = "sandbagger"
    title = "Sandbagger"
    does = "loses on purpose to meet weaker players, then climbs back"
    games = ("duel", "team", "brawl")

    def prepare(self, season: Season, play: Play, mine: Flags) -> None:
        """Hold back in the matches to be lost."""
        if season.round < CLIMB * season.rounds:
            throws = season.played[play.account] % CYCLE < round(THROWN * self.dose)
            play.skill[mine & throws] -= WORSE if season.game.team_size > 1 else IDLE


BEHAVIOUR = Sandbagger
