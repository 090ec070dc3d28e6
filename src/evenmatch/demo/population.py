"""The simulated people of the demo: names, hidden true skills, habits and regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from evenmatch.demo.games import GAMES
from evenmatch.history import Floats

PEOPLE = 960
LIVES = {"eu": 0.6, "us": 0.28, "asia": 0.12}  # shares of the population by region
OWN_SHARE = 0.6  # weight of the skill in one game, against the talent for all games
WITHIN = (5.0, 10.0, 20.0)  # the opponent filters of tickets, equally frequent
HOUR_SWING = 0.25  # added to the skill at a player's best hour
FIRST = (
    *("Ada", "Aiko", "Amara", "Aroha", "Ayşe", "Björn", "Chidi", "Chloé", "Dácil", "Dmitri", "Eilidh", "Emeka"),
    *("Fatou", "Giulia", "Håkon", "Hana", "Ines", "Ivo", "Jamal", "Jiří", "João", "Kaito", "Kavya", "Leila"),
    *("Linh", "Łucja", "Mairi", "Mateo", "Mei", "Nadia", "Ngozi", "Noor", "Olu", "Óscar", "Quân", "Ravi"),
)
LAST = (
    *("Adeyemi", "Berg", "Costa", "Dubois", "Eriksen", "Fischer", "García", "Haddad", "Ito", "Jansen", "Kaya"),
    *("Lindqvist", "Moreau", "Novák", "Okafor", "Petrov", "Quispe", "Rossi", "Singh", "Tanaka", "Usman", "Vargas"),
    *("Wójcik", "Yılmaz", "Zhang", "Murphy", "Nguyen"),
)
WHOLE = (  # names that are one word
    *("さくら", "龍之介", "민준", "지우", "Νίκος", "Ольга", "Богдана", "ליאור", "ليلى", "यश", "ธนา", "ჯაბა"),
)


@dataclass(frozen=True)
class SimulatedPerson:
    """A simulated person.

    skill      by ladder, standard normal
    eagerness  relative frequency of playing;  best_hour  0..24
    ping       milliseconds by region;  within, loose  the opponent filter of their tickets
    """

    name: str
    skill: Mapping[str, float]
    eagerness: float
    best_hour: float
    ping: Mapping[str, float]
    within: float
    loose: bool

    def skill_at(self, ladder: str, hour: float) -> float:
        """Return the skill at an hour of the day, 0..24."""
        return self.skill.get(ladder, 0.0) + float(swing(hour, np.array(self.best_hour)))


def swing(hour: float | Floats, best_hour: Floats) -> Floats:
    """The deviation of people's skill from their average at an hour of the day, 0..24."""
    swung: Floats = HOUR_SWING * np.cos((hour - best_hour) / 24 * 2 * np.pi)
    return swung


def player_names(count: int, rng: np.random.Generator) -> list[str]:
    """Return `count` different names in random order, including WHOLE."""
    full_names = rng.permutation([f"{first} {last}" for first in FIRST for last in LAST]).tolist()
    names = [*WHOLE, *full_names][:count]
    return [names[index] for index in rng.permutation(len(names))]


@cache
def make_people(seed: int) -> tuple[SimulatedPerson, ...]:
    """Return the people of a demo, reproducible by seed; each plays at least one of the games."""
    rng = np.random.default_rng([seed, 0])
    return tuple(_person(rng, name) for name in player_names(PEOPLE, rng))


def _person(rng: np.random.Generator, name: str) -> SimulatedPerson:
    played = [game.name for game in GAMES if rng.random() < game.share]
    talent, region = float(rng.normal()), rng.choice(list(LIVES), p=list(LIVES.values()))
    return SimulatedPerson(
        name=name,
        skill={
            ladder: (1 - OWN_SHARE**2) ** 0.5 * talent + OWN_SHARE * float(rng.normal())
            for ladder in played or [GAMES[int(rng.integers(len(GAMES)))].name]
        },
        eagerness=float(rng.lognormal(sigma=0.8)),
        best_hour=float(rng.uniform(0, 24)),
        ping={other: float(rng.integers(*(15, 60) if other == region else (80, 170))) for other in LIVES},
        within=float(rng.choice(WITHIN)),
        loose=bool(rng.random() < 0.95),
    )
