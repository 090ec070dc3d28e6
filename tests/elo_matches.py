"""Matches whose truth is known: made by Elo's own law with parameters that a backtest or a search must find again."""

import random
from datetime import UTC, datetime, timedelta

from evenmatch import from_matches
from evenmatch.match import Appearance, Match, Team

START = datetime(2024, 1, 1, tzinfo=UTC)


def duels(seed, matches, *, k=0.0, spread=0.0, home=0.0, draws=0.0, players=12, ladders=("duel",), hours=6.0):
    """Duels between players whose true ratings move by K after each result, as Elo's do.

    spread  standard deviation of the true ratings at first; home is worth so many points to the first-listed
    """
    rng = random.Random(seed)
    rating = [rng.gauss(0, spread) for _ in range(players)]
    played = []
    for number in range(matches):
        a, b = rng.sample(range(players), 2)
        chance = 1 / (1 + 10 ** ((rating[b] - rating[a] - home) / 400))
        result = 0.5 if rng.random() < draws else float(rng.random() < chance)
        rating[a] += k * (result - chance)
        rating[b] -= k * (result - chance)
        played.append(duel(number, f"p{a}", f"p{b}", result, ladders[number % len(ladders)], hours))
    return played


def duel(number, a, b, result, ladder="duel", hours=6.0):
    """`result` is 1 where the first-listed wins, 0.5 for a draw, 0 where they lose."""
    places = {1.0: (1, 2), 0.5: (1, 1), 0.0: (2, 1)}[result]
    teams = tuple(Team((Appearance(name),), place) for name, place in zip((a, b), places, strict=True))
    return Match(f"m{number}", START + timedelta(hours=hours * number), teams, ladder=ladder)


def duels_table(*arguments, **truth):
    """The same as a table of the package."""
    return from_matches(duels(*arguments, **truth))
