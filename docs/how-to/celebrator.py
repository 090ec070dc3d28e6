"""Celebrators leave when their team is so far ahead that the match looks won."""

from evenmatch.lab.behaviours import Behaviour


class Celebrator(Behaviour):
    name, title, does = "celebrator", "Celebrator", "leaves when the match looks won"

    def during(self, season, play, mine):
        play.leave(mine & (play.whim < self.dose) & (play.lead > 1.0))


BEHAVIOUR = Celebrator
