"""The four games of the demo: their ladders, and the random result of a match from the players' skill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Sides = Sequence[NDArray[np.float64]]  # one array per team, one number per player
# The crowd is large enough for even matches within half a minute; later the filters widen.
STEPS = [[0, 5], [8, 10], [16, 25], [30, 40], [60, 100]]
WAITS = {"even_spread": 6, "overdue_after": 90, "newcomer_wait": 2, "rematch_wait": 4, "rematch_fade": 300}
POLICY: Mapping[str, object] = {"steps": STEPS, **WAITS}


class Result(NamedTuple):
    """The result of a match, by team and player; None: this game does not record it."""

    team_scores: list[float]
    scores: list[list[float | None]]
    performances: list[list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Game:
    """A game with its ladder and its queue.

    share    of all people who play it;  crowd  players who are active at the same time
    matches  in its history;  length  shortest and longest match, seconds
    end      simulates a result from skill and presence, the share of the match that each player was there, 0..1
    quits    share of appearances that leave early;  parties  size of the largest party
    """

    ladder: str
    title: str
    system: str
    team_size: int
    teams: int = 2
    share: float
    crowd: int
    matches: int
    length: tuple[int, int]
    end: Callable[[np.random.Generator, Sides, Sides], Result]
    parameters: Mapping[str, object] = field(default_factory=dict)
    quits: float = 0.02
    parties: int = 1
    regions: bool = False
    policy: Mapping[str, object] = field(default_factory=dict)

    @property
    def players(self) -> int:
        """The number of players in a match."""
        return self.teams * self.team_size


def _first_wins(rng: np.random.Generator, skill: Sides, presence: Sides, steep: float) -> tuple[bool, float]:
    """Whether the first of two teams wins, and the probability of that; absent players weaken their team."""
    first, second = (
        float((own * present).mean() + 1.5 * (present.mean() - 1)) for own, present in zip(skill, presence, strict=True)
    )
    chance = float(1 / (1 + np.exp(-steep * (first - second))))
    return bool(rng.random() < chance), chance


def _not_recorded(sides: Sides) -> list[list[float | None]]:
    return [[None] * len(side) for side in sides]


def end_arena(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """The first team with eight rounds wins; 1 % of the matches are drawn at seven."""
    won, _ = _first_wins(rng, skill, presence, 4.0)
    other = float(rng.integers(0, 8))
    scores = [7.0, 7.0] if rng.random() < 0.01 else [8.0, other] if won else [other, 8.0]
    return Result(scores, _not_recorded(skill), _not_recorded(skill))


def end_brawl(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """Free-for-all: points increase with skill and presence."""
    points = [
        float(rng.poisson(18 * np.exp(0.45 * np.clip(own[0], -3, 3)) * present[0]))
        for own, present in zip(skill, presence, strict=True)
    ]
    return Result(points, [[score] for score in points], _not_recorded(skill))


def end_squads(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """The first team with ten rounds wins; each player has a performance, -1..1."""
    won, chance = _first_wins(rng, skill, presence, 3.0)
    other = float(rng.binomial(9, 0.75 - abs(chance - 0.5)))
    middle = float(np.mean(np.concatenate(list(skill))))
    performances: list[list[float | None]] = [
        [round(float(np.clip(0.3 * (own - middle + rng.normal()), -1, 1)), 3) for own in side] for side in skill
    ]
    return Result([10.0, other] if won else [other, 10.0], _not_recorded(skill), performances)


def end_duel(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """The first with five points wins; a player who leaves early loses, unless both leave."""
    left = [float(present[0]) < 1 for present in presence]
    chance = float(1 / (1 + np.exp(-1.1 * (skill[0][0] - skill[1][0]))))
    points = [0, 0]
    while max(points) < 5:
        points[int(rng.random() >= chance)] += 1
    if left[0] != left[1]:
        points = [min(points[0], 4), 5] if left[0] else [5, min(points[1], 4)]
    return Result([float(score) for score in points], _not_recorded(skill), _not_recorded(skill))


GAMES = (
    Game(
        ladder="arena",
        title="Arena 4v4",
        system="wager",
        team_size=4,
        share=0.65,
        crowd=210,
        matches=2800,
        length=(24, 40),
        end=end_arena,
        quits=0.015,
        parties=2,
        policy={**POLICY, "max_odds": 0.6},
    ),
    Game(
        ladder="brawl",
        title="Brawl, free-for-all",
        system="scorefactor",
        team_size=1,
        teams=6,
        share=0.5,
        crowd=110,
        matches=2200,
        length=(18, 30),
        end=end_brawl,
        parameters={"full_time": 20.0, "min_time": 8.0},
        policy={**POLICY, "max_odds": None},
    ),
    Game(
        ladder="squads",
        title="Squads 3v3",
        system="prav",
        team_size=3,
        share=0.55,
        crowd=140,
        matches=2400,
        length=(20, 34),
        end=end_squads,
        parties=2,
        policy={**POLICY, "max_odds": 0.6},
    ),
    Game(
        ladder="duel",
        title="Duels",
        system="battlepoints",
        team_size=1,
        share=0.45,
        crowd=50,
        matches=2600,
        length=(12, 20),
        end=end_duel,
        quits=0.03,
        regions=True,
        policy={**POLICY, "max_odds": 0.65, "max_ping": 120},
    ),
)
LADDERS = {game.ladder: game for game in GAMES}
