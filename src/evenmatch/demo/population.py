"""The simulated people of the demo: names, hidden true skills, habits, friends and regions.

Their names come from many countries, and some test how pages escape them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evenmatch.demo.games import GAMES

FIRST = (
    *("Ada", "Aiko", "Amara", "Anouk", "Aroha", "Ayşe", "Beatriz", "Björn", "Bogdan", "Chidi", "Chloé", "Dácil"),
    *("Dmitri", "Eilidh", "Elif", "Emeka", "Farid", "Fatou", "Giulia", "Håkon", "Hana", "Ines", "Ioana", "Ivo"),
    *("Jamal", "Jiří", "João", "Kaito", "Kavya", "Keanu", "Kwame", "Lars", "Leila", "Linh", "Łucja", "Luca"),
    *("Mairi", "Malik", "Marit", "Mateo", "Mei", "Milan", "Nadia", "Ngozi", "Niamh", "Noor", "Olu", "Óscar"),
    *("Pavel", "Petra", "Quân", "Rania", "Ravi", "Rosa", "Ruben", "Saoirse", "Selim", "Sigrún", "Sofía", "Soren"),
    *("Tamar", "Tane", "Thandi", "Tomás", "Ulla", "Vera", "Viktor", "Wanjiru", "Xiomara", "Yara", "Yusuf", "Zoë"),
)
LAST = ("Ash", "Bolt", "Crow", "Drift", "Echo", "Fox", "Gale", "Hawk", "Ink", "Jade", "Kite", "Lynx", "Moss", "Nova")
WHOLE = (  # names that are one word
    *("さくら", "龍之介", "민준", "지우", "Νίκος", "Ольга", "Богдана", "ליאור", "ليلى", "यश", "ธนา", "ჯაბა"),
    *("xX_sn1per_Xx", "night.owl", "404", "the_quiet_one", "GG", "mum said one more", "Dr. Lag", "potato-aim"),
)
HOSTILE = (
    "<script>alert('hi')</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "Robert'); DROP TABLE player;--",
    "\u202egnp.ladder",  # reverses the text after it
    "abc\u200f123",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈",
    "../../etc/passwd",
    "a/b?c=d&e#f%20g",
    "W" * 64,
    "javascript:alert(1)",
)


def player_names(count: int, rng: np.random.Generator) -> list[str]:
    """Return `count` different names in random order, including HOSTILE and WHOLE."""
    full_names = [f"{first} {last}" for first in FIRST for last in LAST]
    chosen = rng.permutation(len(full_names))[: max(count - len(WHOLE) - len(HOSTILE), 0)]
    names = [*HOSTILE, *WHOLE, *(full_names[index] for index in chosen)][:count]
    return [names[index] for index in rng.permutation(len(names))]


PEOPLE = 960
LIVES = {"eu": 0.6, "us": 0.28, "asia": 0.12}  # shares of the population by region
OWN_SHARE = 0.6  # weight of the skill in one game, against the talent for all games
WITHIN = (5.0, 10.0, 20.0)  # the opponent filters of tickets, equally frequent
FRIENDS = 3
HOUR_SWING = 0.25  # added to the skill at a player's best hour


@dataclass(frozen=True)
class SimulatedPerson:
    """A simulated person.

    skill      by ladder, standard normal
    eagerness  relative frequency of playing;  best_hour  0..24
    ping       milliseconds by region;  within, loose  the opponent filter of their tickets
    friends    names of possible party members
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
        """Return the skill at an hour of the day, 0..24."""
        return self.skill.get(ladder, 0.0) + float(swing(hour, np.array(self.best_hour)))


def swing(hour: float, best_hour: NDArray[np.float64]) -> NDArray[np.float64]:
    """The deviation of people's skill from their average at an hour of the day, 0..24."""
    swung: NDArray[np.float64] = HOUR_SWING * np.cos((hour - best_hour) / 24 * 2 * np.pi)
    return swung


@cache
def make_people(seed: int, count: int = PEOPLE) -> tuple[SimulatedPerson, ...]:
    """Return `count` people, reproducible by seed; each plays at least one of the games."""
    rng = np.random.default_rng([seed, 0])
    names = player_names(count, rng)
    talent = rng.normal(size=count)
    regions = rng.choice(list(LIVES), count, p=list(LIVES.values())).tolist()
    within = rng.choice(WITHIN, count).tolist()
    people = [_person(rng, *drawn) for drawn in zip(names, talent.tolist(), regions, within, strict=True)]
    return tuple(replace(person, friends=friends) for person, friends in zip(people, _friends(people), strict=True))


def _friends(people: Sequence[SimulatedPerson]) -> list[tuple[str, ...]]:
    """The friends of each person: those of the most similar skill in all games that both play."""
    skill = np.array([[person.skill.get(game.ladder, np.nan) for game in GAMES] for person in people])
    apart = np.abs(skill[:, None] - skill[None])
    farthest = np.where(np.isnan(apart), -np.inf, apart).max(axis=2)
    farthest[farthest < 0] = np.inf  # no game in common
    np.fill_diagonal(farthest, np.inf)
    nearest = np.argsort(farthest, axis=1, kind="stable")[:, :FRIENDS]
    return [tuple(people[other].name for other in row) for row in nearest]


def _person(rng: np.random.Generator, name: str, talent: float, region: str, within: float) -> SimulatedPerson:
    ladders = [game.ladder for game in GAMES if rng.random() < game.share]
    if not ladders:
        ladders = [GAMES[int(rng.integers(len(GAMES)))].ladder]
    own = rng.normal(size=len(GAMES))
    ping = {name: float(rng.integers(15, 60) if name == region else rng.integers(80, 170)) for name in LIVES}
    return SimulatedPerson(
        name=name,
        skill={
            game.ladder: float((1 - OWN_SHARE**2) ** 0.5 * talent + OWN_SHARE * own[number])
            for number, game in enumerate(GAMES)
            if game.ladder in ladders
        },
        eagerness=float(rng.lognormal(sigma=0.8)),
        best_hour=float(rng.uniform(0, 24)),
        region=region,
        ping=ping,
        within=within,
        loose=bool(rng.random() < 0.95),
        ladders=tuple(ladders),
    )
