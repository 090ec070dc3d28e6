"""What `map_choice` gains and costs: `python tools/even_maps.py`, some minutes; a table of docs/matchmaking.md.

Players have a true skill, and on each map an advantage of their own. A history with drawn maps is rated by `even` with
the context column `map`. Then the same matches of neighbours in rating are played once on drawn maps, once on the most
even ones. Measured are the true chance of the favourite on the map, the share of matches in which it exceeds 60 %, the
true chance of the side that is better over all maps, and the shares of the least and the most played map. The first
lines say how maps rotate: their shares, and how often a map comes twice in a row.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np

from evenmatch import Match, Rater, Team, from_matches, rate
from evenmatch.history import Floats
from evenmatch.matchmaking import choose_map

PLAYERS, MATCHES = 200, 1000  # MATCHES are compared
MAPS = ["dust", "nuke", "mirage", "train", "inferno"]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
Sides = list[list[int]]


class Ladder:
    """Players with true skills on each map, after a history of so many matches each."""

    def __init__(self, size: int, advantage: float, played: int, seed: int) -> None:
        self.size, self.draw = size, np.random.default_rng(seed)
        skill = self.draw.normal(1500, 200, PLAYERS)
        self.skill = skill[:, None] + self.draw.normal(0, advantage, (PLAYERS, len(MAPS)))
        near = skill + self.draw.normal(0, 200, (played, PLAYERS))  # a history of wide matches
        history = [
            self._played(number, sides) for number, sides in enumerate(s for row in near for s in self._sides(row))
        ]
        self.rater = Rater.after(rate(from_matches(history), "even"))
        known = np.array([self.rater.rating(f"{player}") for player in range(PLAYERS)])
        rounds = -(-MATCHES * 2 * size // PLAYERS)
        self.next = [sides for _ in range(rounds) for sides in self._sides(known + self.draw.normal(0, 10, PLAYERS))]

    def _sides(self, rating: Floats) -> list[Sides]:
        """Matches of neighbours, with teams that are about as strong."""
        order = np.argsort(rating)[: PLAYERS // (2 * self.size) * 2 * self.size].reshape(-1, 2 * self.size)
        first = np.arange(2 * self.size) % 4 % 3 == 0
        matches = [[row[first].tolist(), row[~first].tolist()] for row in order]
        return [matches[place] for place in self.draw.permutation(len(matches)).tolist()]

    def chances(self, sides: Sides) -> Floats:
        """The first team's true chance on each map."""
        first, second = (self.skill[team].mean(axis=0) for team in sides)
        chances: Floats = 1 / (1 + 10 ** ((second - first) / 400))
        return chances

    def predicted(self, sides: Sides) -> list[float]:
        """The favourite's predicted chance on each map."""
        names = [[f"{player}" for player in team] for team in sides]
        return [max(self.rater.odds(names, context={"map": name}).expected) for name in MAPS]

    def _played(self, number: int, sides: Sides) -> Match:
        place = int(self.draw.integers(len(MAPS)))
        lost = int(self.draw.random() >= self.chances(sides)[place])
        teams = (
            Team.of(*(f"{player}" for player in team), place=1 + (lost != side)) for side, team in enumerate(sides)
        )
        context = {"map": MAPS[place]}
        return Match(f"{number}", BEGIN + timedelta(minutes=number), tuple(teams), context=context)


def measure(ladder: Ladder, *, even: bool) -> list[float]:
    """The figures of a row, percent."""
    played: list[str] = []
    favourites, better = [], []
    for number, sides in enumerate(ladder.next[:MATCHES]):
        played.append(choose_map(MAPS, played, 1, number, ladder.predicted(sides) if even else None))
        true = ladder.chances(sides)
        chance = true[MAPS.index(played[-1])]
        favourites.append(max(chance, 1 - chance))
        better.append(chance if true.mean() > 0.5 else 1 - chance)
    shares = [count / len(played) for count in Counter(played).values()]
    one_sided = np.mean(np.array(favourites) > 0.6)
    return [100 * float(share) for share in (np.mean(favourites), one_sided, np.mean(better), min(shares), max(shares))]


def rotation() -> None:
    """Print how 10,000 matches rotate if maps are drawn, if each suits another map, and if one map suits all."""
    draw, same = np.random.default_rng(1), [0.5 + 0.03 * place for place in range(len(MAPS))]
    cases: dict[str, Callable[[], Sequence[float] | None]] = {
        "balanced": lambda: None,
        "each another": lambda: draw.uniform(0.5, 0.8, len(MAPS)).tolist(),
        "one": lambda: same,
    }
    for name, favourite in cases.items():
        played: list[str] = []
        for number in range(10_000):
            played.append(choose_map(MAPS, played[-100:], 1, number, favourite()))
        shares = [count / len(played) for count in Counter(played).values()]
        again = sum(one == other for one, other in pairwise(played)) / len(played)
        print(f"{name}: {min(shares):.0%} to {max(shares):.0%}, again {again:.0%}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    rotation()
    print("| match | maps differ by | matches known | map | favourite | over 60 % | better side | least, most played |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for size, advantage, played in ((1, 50, 100), (1, 100, 20), (1, 100, 100), (1, 200, 100), (5, 100, 100)):
        ladders = [Ladder(size, advantage, played, seed) for seed in range(given.seeds)]
        for even in (False, True):
            mean, one_sided, better, least, most = np.mean([measure(one, even=even) for one in ladders], axis=0)
            print(
                f"| {size}v{size} | {advantage} | {played} | {'even' if even else 'balanced'} | {mean:.1f} % | "
                f"{one_sided:.0f} % | {better:.1f} % | {least:.0f} %, {most:.0f} % |",
                flush=True,
            )


if __name__ == "__main__":
    main()
