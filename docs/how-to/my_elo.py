"""Elo as a chess club would write it: two methods, and a step that shrinks with experience."""

from evenmatch import DuelSystem, number


class ClubElo(DuelSystem):
    """Elo whose step is halved after the first matches"""

    k = number(32.0, 0, 200, "most points a match moves", search=(5, 100))
    fresh = number(20.0, 0, 1000, "matches with the full step")
    newcomer = {"rating": 1500.0, "matches": 0}

    def expected(self, a, b):
        return 1 / (1 + 10 ** ((b.rating - a.rating) / 400))

    def update(self, a, b, result):
        step = self.k if a.matches < self.fresh else self.k / 2
        a.rating += step * (result - self.expected(a, b))
        a.matches += 1
