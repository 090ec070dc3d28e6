"""The match history of the demo: simulated matches of a game over the last 75 days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from evenmatch.demo.games import Game
from evenmatch.demo.population import SimulatedPerson
from evenmatch.match import Appearance, Match, Team

DAYS = 75.0  # length of the history
GONE = 0.05  # share of people who stopped playing half-way
NEW = 0.04  # share of people who have not played yet
REACH = 1.8  # standard deviation of the skill of opponents around the first player of a match
EVENING = 20.0  # the hour of most matches, UTC
Values = NDArray[np.float64]


def play_history(seed: int, game: Game, people: Sequence[SimulatedPerson], ends: datetime) -> list[Match]:
    """Return the matches of the DAYS before `ends`, in order of time; reproducible by seed."""
    rng = np.random.default_rng([seed, 1, sum(map(ord, game.ladder))])
    own = [person for person in people if game.ladder in person.skill]
    fate = rng.random(len(own))
    eager = np.log([person.eagerness for person in own])
    eager[fate < NEW] = -np.inf
    skill = np.array([person.skill[game.ladder] for person in own])
    matches = []
    for number, days in enumerate(_days_before(rng, game.matches, ends), 1):
        weight = np.where((fate > 1 - GONE) & (days < DAYS / 2), -np.inf, eager)
        chosen = _line_up(rng, game, weight, skill)
        matches.append(_match(rng, game, [own[index] for index in chosen], number, ends - timedelta(days=days)))
    return matches


def _days_before(rng: np.random.Generator, count: int, ends: datetime) -> list[float]:
    """Random end times of `count` matches, in days before `ends`, descending: more of them in the evenings."""
    days = np.sort(rng.uniform(0, DAYS, 4 * count))[::-1]
    hour = (ends.hour + ends.minute / 60 - 24 * days) % 24
    busy = 0.55 + 0.45 * np.cos((hour - EVENING) / 24 * 2 * np.pi)
    chosen = np.sort(rng.choice(len(days), count, replace=False, p=busy / busy.sum()))
    return [float(day) for day in days[chosen]]


def _line_up(rng: np.random.Generator, game: Game, weight: Values, skill: Values) -> list[int]:
    """The players of a match: a random one and others of similar skill, in random order.

    Teams are not balanced: with teams even by true skill, no rating could predict the results.
    """
    luck = rng.gumbel(size=len(skill))  # Gumbel top-k trick: weighted sampling without replacement
    first = int(np.argmax(weight + luck))
    near = weight + rng.gumbel(size=len(skill)) - 0.5 * ((skill - skill[first]) / REACH) ** 2
    near[first] = np.inf
    chosen = np.argpartition(-near, game.players)[: game.players]
    return [int(index) for index in rng.permutation(chosen)]


def _match(rng: np.random.Generator, game: Game, players: list[SimulatedPerson], number: int, ended: datetime) -> Match:
    hour = ended.hour + ended.minute / 60
    length = float(rng.integers(game.length[0], game.length[1] + 1))
    shape = (game.teams, game.team_size)
    skill = np.array([person.skill_at(game.ladder, hour) for person in players]).reshape(shape)
    left = rng.random(shape) < game.quits
    if left.all():  # the first team stays
        left[0] = False
    seconds = np.where(left, np.round(rng.uniform(0.1, 0.95, shape) * length, 1), length)
    result = game.end(rng, list(skill), list(seconds / length))
    teams = []
    for side in range(game.teams):
        members = players[side * game.team_size : (side + 1) * game.team_size]
        appearances = [
            Appearance(person.name, score, float(time), bool(quit_early), performance)
            for person, score, time, quit_early, performance in zip(
                members,
                result.scores[side],
                seconds[side],
                left[side],
                result.performances[side],
                strict=True,
            )
        ]
        teams.append(Team(tuple(appearances), score=result.team_scores[side]))
    played_at = ended.astimezone(UTC).replace(microsecond=0)
    return Match(f"{game.ladder}-{number}", played_at, tuple(teams), ladder=game.ladder, duration=length)
