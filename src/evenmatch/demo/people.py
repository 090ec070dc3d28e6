"""Who plays in the demo: true skills, which nobody is told, habits, friends, and where they live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evenmatch.demo.games import GAMES
from evenmatch.demo.names import player_names

PEOPLE = 360
LIVES = {"eu": 0.5, "us": 0.35, "asia": 0.15}  # shares
OWN_SHARE = 0.6  # of a skill that is the game's own
FRIENDS = 4  # at most
HOUR_SWING = 0.25  # between a player's usual and best hour


@dataclass(frozen=True)
class Person:
    """Somebody who plays.

    skill      by ladder, a standard normal
    eagerness  how often they play, relative to others;  best_hour  0..24
    ping       milliseconds by region;  within, loose  the filter they queue with
    friends    whom they may ask into a party
    """

    name: str
    skill: Mapping[str, float]
    eagerness: float
    best_hour: float
    region: str
    ping: Mapping[str, float]
    within: float
    loose: bool
    ladders: tuple[str, ...]
    friends: tuple[str, ...] = field(repr=False)

    def skill_at(self, ladder: str, hour: float) -> float:
        """Their skill at an hour of the day, 0..24."""
        away = (hour - self.best_hour) / 24 * 2 * np.pi
        return self.skill.get(ladder, 0.0) + HOUR_SWING * float(np.cos(away))


def make_people(seed: int, count: int = PEOPLE) -> list[Person]:
    """So many people, the same for the same seed; each plays one to all of the games."""
    rng = np.random.default_rng([seed, 0])
    names = player_names(count, rng)
    talent = rng.normal(size=count)
    return [_person(rng, names, talent, at) for at in range(count)]


def _person(rng: np.random.Generator, names: list[str], talent: np.ndarray, at: int) -> Person:
    ladders = [game.ladder for game in GAMES if rng.random() < game.share]
    if not ladders:
        ladders = [GAMES[int(rng.integers(len(GAMES)))].ladder]
    own = rng.normal(size=len(GAMES))
    region = str(rng.choice(list(LIVES), p=list(LIVES.values())))
    near = {one: float(rng.integers(15, 60) if one == region else rng.integers(90, 180)) for one in LIVES}
    others = rng.choice(len(names), FRIENDS, replace=False)
    return Person(
        name=names[at],
        skill={
            game.ladder: float((1 - OWN_SHARE**2) ** 0.5 * talent[at] + OWN_SHARE * own[number])
            for number, game in enumerate(GAMES)
            if game.ladder in ladders
        },
        eagerness=float(rng.lognormal(sigma=0.8)),
        best_hour=float(rng.uniform(0, 24)),
        region=region,
        ping=near,
        within=float(rng.choice([2, 5, 10, 20])),
        loose=bool(rng.random() < 0.93),
        ladders=tuple(ladders),
        friends=tuple(names[other] for other in others if other != at),
    )
