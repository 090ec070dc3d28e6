"""Who plays in the demo: true skills, which nobody is told, habits, friends, and where they live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenmatch.demo.games import GAMES
from evenmatch.demo.names import player_names

PEOPLE = 960
LIVES = {"eu": 0.6, "us": 0.28, "asia": 0.12}  # shares
OWN_SHARE = 0.6  # of a skill that is the game's own
FRIENDS = 3
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
    friends: tuple[str, ...] = field(default=(), repr=False)

    def skill_at(self, ladder: str, hour: float) -> float:
        """Their skill at an hour of the day, 0..24."""
        away = (hour - self.best_hour) / 24 * 2 * np.pi
        return self.skill.get(ladder, 0.0) + HOUR_SWING * float(np.cos(away))


def make_people(seed: int, count: int = PEOPLE) -> list[Person]:
    """So many people, the same for the same seed; each plays one to all of the games."""
    rng = np.random.default_rng([seed, 0])
    names = player_names(count, rng)
    talent = rng.normal(size=count)
    people = [_person(rng, names[at], talent[at]) for at in range(count)]
    return [replace(one, friends=friends) for one, friends in zip(people, _friends(people), strict=True)]


def _friends(people: Sequence[Person]) -> list[tuple[str, ...]]:
    """Of each the friends, who are about as good at all that both play: parties of the best and the worst are rare."""
    skill = np.array([[one.skill.get(game.ladder, np.nan) for game in GAMES] for one in people])
    apart = np.abs(skill[:, None] - skill[None])
    farthest = np.where(np.isnan(apart), -np.inf, apart).max(axis=2)
    farthest[farthest < 0] = np.inf  # no game in common
    np.fill_diagonal(farthest, np.inf)
    nearest = np.argsort(farthest, axis=1, kind="stable")[:, :FRIENDS]
    return [tuple(people[other].name for other in row) for row in nearest]


def _person(rng: np.random.Generator, name: str, talent: float) -> Person:
    ladders = [game.ladder for game in GAMES if rng.random() < game.share]
    if not ladders:
        ladders = [GAMES[int(rng.integers(len(GAMES)))].ladder]
    own = rng.normal(size=len(GAMES))
    region = str(rng.choice(list(LIVES), p=list(LIVES.values())))
    near = {one: float(rng.integers(15, 60) if one == region else rng.integers(80, 170)) for one in LIVES}
    return Person(
        name=name,
        skill={
            game.ladder: float((1 - OWN_SHARE**2) ** 0.5 * talent + OWN_SHARE * own[number])
            for number, game in enumerate(GAMES)
            if game.ladder in ladders
        },
        eagerness=float(rng.lognormal(sigma=0.8)),
        best_hour=float(rng.uniform(0, 24)),
        region=region,
        ping=near,
        within=float(rng.choice([5, 10, 20])),
        loose=bool(rng.random() < 0.95),
        ladders=tuple(ladders),
    )
