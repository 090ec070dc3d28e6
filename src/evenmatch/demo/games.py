"""The four games of the demo: what a match of each is, and how it ends by the skill of who plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Sides = Sequence[NDArray[np.float64]]  # a number for each player, team by team


class Result(NamedTuple):
    """How a match ended, in the order of its teams and players; None: not recorded in this game."""

    team_scores: list[float]
    scores: list[list[float | None]]
    performances: list[list[float | None]]


class Rule(Protocol):
    """How a match of a game ends."""

    def __call__(self, rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
        """The result; `presence` is the share of the match in which each player was there."""
        ...


@dataclass(frozen=True)
class Game:
    """A game, its ladder, and its queue.

    share    of all people who play it;  crowd  how many of them are about at a time
    length   shortest and longest match, seconds;  quits  share of appearances that leave early
    parties  the largest party that queues
    """

    ladder: str
    title: str
    system: str
    team_size: int
    teams: int
    share: float
    crowd: int
    matches: int
    length: tuple[int, int]
    end: Rule
    parameters: Mapping[str, object] = field(default_factory=dict)
    placement: int = 5
    quits: float = 0.02
    parties: int = 1
    regions: bool = False
    policy: Mapping[str, object] = field(default_factory=dict)

    @property
    def players(self) -> int:
        """Players in a match."""
        return self.teams * self.team_size


def _strength(skill: Sides, presence: Sides) -> list[float]:
    """What each team is worth: its mean skill, and what it lacks for those who were away."""
    return [float((own * there).mean() + 1.5 * (there.mean() - 1)) for own, there in zip(skill, presence, strict=True)]


def _first_wins(rng: np.random.Generator, skill: Sides, presence: Sides, steep: float) -> tuple[bool, float]:
    """Whether the first of two teams wins, and the chance of that."""
    first, second = _strength(skill, presence)
    chance = float(1 / (1 + np.exp(-steep * (first - second))))
    return bool(rng.random() < chance), chance


def _nothing(sides: Sides) -> list[list[float | None]]:
    return [[None] * len(side) for side in sides]


def end_arena(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """First to eight rounds; few matches are drawn."""
    won, _ = _first_wins(rng, skill, presence, 4.0)
    other = float(rng.integers(0, 8))
    scores = [7.0, 7.0] if rng.random() < 0.01 else [8.0, other] if won else [other, 8.0]
    return Result(scores, _nothing(skill), _nothing(skill))


def end_brawl(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """Everybody for themselves: the better and the longer there, the more points."""
    points = [
        float(rng.poisson(18 * np.exp(0.45 * np.clip(own[0], -3, 3)) * there[0]))
        for own, there in zip(skill, presence, strict=True)
    ]
    return Result(points, [[one] for one in points], _nothing(skill))


def end_squads(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """First to ten rounds, and each player's performance beside it."""
    won, chance = _first_wins(rng, skill, presence, 3.0)
    close = 1 - abs(2 * chance - 1)
    other = float(rng.binomial(9, 0.25 + 0.5 * close))
    middle = float(np.mean(np.concatenate(list(skill))))
    performances: list[list[float | None]] = [
        [round(float(np.clip(0.3 * (one - middle) + 0.3 * rng.normal(), -1, 1)), 3) for one in side] for side in skill
    ]
    return Result([10.0, other] if won else [other, 10.0], _nothing(skill), performances)


def end_duel(rng: np.random.Generator, skill: Sides, presence: Sides) -> Result:
    """First to five; 5:0 is lopsided. Who leaves gives up the rest."""
    gone = [float(there[0]) < 1 for there in presence]
    chance = float(1 / (1 + np.exp(-1.1 * (skill[0][0] - skill[1][0]))))
    points = [0, 0]
    while max(points) < 5:
        points[int(rng.random() >= chance)] += 1
    if gone[0] != gone[1]:
        points = [min(points[0], 4), 5] if gone[0] else [5, min(points[1], 4)]
    return Result([float(one) for one in points], _nothing(skill), _nothing(skill))


# The crowd is large enough for even matches within half a minute; filters that are still unmet then are widened.
_EVEN = {
    "steps": [[0, 5], [8, 10], [16, 25], [30, 40], [60, 100]],
    "even_spread": 6,
    "spread_share": 0.3,
    "overdue_after": 90,
    "newcomer_wait": 2,
    "rematch_wait": 4,
    "rematch_fade": 300,
}

GAMES = (
    Game(
        ladder="arena",
        title="Arena 4v4",
        system="wager",
        team_size=4,
        teams=2,
        share=0.65,
        crowd=210,
        matches=2800,
        length=(24, 40),
        end=end_arena,
        quits=0.015,
        parties=2,
        policy={**_EVEN, "max_odds": 0.6},
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
        policy={**_EVEN, "max_odds": None},
    ),
    Game(
        ladder="squads",
        title="Squads 3v3",
        system="prav",
        team_size=3,
        teams=2,
        share=0.55,
        crowd=140,
        matches=2400,
        length=(20, 34),
        end=end_squads,
        parties=2,
        policy={**_EVEN, "max_odds": 0.6},
    ),
    Game(
        ladder="duel",
        title="Duels",
        system="battlepoints",
        team_size=1,
        teams=2,
        share=0.45,
        crowd=50,
        matches=2600,
        length=(12, 20),
        end=end_duel,
        quits=0.03,
        regions=True,
        policy={**_EVEN, "max_odds": 0.65, "max_ping": 120},
    ),
)
LADDERS = {game.ladder: game for game in GAMES}
