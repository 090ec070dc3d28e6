"""The season that lies behind the demo: matches of a game between people who came at their hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from evenmatch.demo.games import Game
from evenmatch.demo.people import Person
from evenmatch.match import Appearance, Match, Team

DAYS = 75.0
GONE = 0.05  # share of people who stopped playing half-way
NEW = 0.04  # share who have not played yet
REACH = 1.8  # of a skill: how far from the first player of a match the others are
EVENING = 20.0  # the hour, in UTC, at which most play
Values = NDArray[np.float64]


def play_season(seed: int, game: Game, people: Sequence[Person], ends: datetime) -> list[Match]:
    """The matches of a season that ends at this time, in order; the same for the same seed."""
    rng = np.random.default_rng([seed, 1, sum(map(ord, game.ladder))])
    own = [one for one in people if game.ladder in one.skill]
    fate = rng.random(len(own))
    eager = np.log([one.eagerness for one in own])
    eager[fate < NEW] = -np.inf
    skill = np.array([one.skill[game.ladder] for one in own])
    matches = []
    for number, days in enumerate(_days_before(rng, game.matches, ends), 1):
        weight = np.where((fate > 1 - GONE) & (days < DAYS / 2), -np.inf, eager)
        chosen = _line_up(rng, game, weight, skill)
        matches.append(_match(rng, game, [own[at] for at in chosen], number, ends - timedelta(days=days)))
    return matches


def _days_before(rng: np.random.Generator, count: int, ends: datetime) -> list[float]:
    """When so many matches ended, in days before the end, the first one first: more of them in the evenings."""
    days = np.sort(rng.uniform(0, DAYS, 4 * count))[::-1]
    hour = (ends.hour + ends.minute / 60 - 24 * days) % 24
    busy = 0.55 + 0.45 * np.cos((hour - EVENING) / 24 * 2 * np.pi)
    kept = np.sort(rng.choice(len(days), count, replace=False, p=busy / busy.sum()))
    return [float(one) for one in days[kept]]


def _line_up(rng: np.random.Generator, game: Game, weight: Values, skill: Values) -> list[int]:
    """Who meets: somebody, and others not too far from their skill, dealt out as they come.

    That was before there was a matchmaker: teams that were even by true skill would leave nothing to be foretold.
    """
    luck = rng.gumbel(size=len(skill))  # the largest of weight + luck are a draw without replacement
    first = int(np.argmax(weight + luck))
    near = weight + rng.gumbel(size=len(skill)) - 0.5 * ((skill - skill[first]) / REACH) ** 2
    near[first] = np.inf
    chosen = np.argpartition(-near, game.players)[: game.players]
    return [int(one) for one in rng.permutation(chosen)]


def _match(rng: np.random.Generator, game: Game, players: list[Person], number: int, ended: datetime) -> Match:
    hour = ended.hour + ended.minute / 60
    length = float(rng.integers(game.length[0], game.length[1] + 1))
    shape = (game.teams, game.team_size)
    skill = np.array([one.skill_at(game.ladder, hour) for one in players]).reshape(shape)
    left = rng.random(shape) < game.quits
    if left.all():  # somebody stays
        left[0] = False
    seconds = np.where(left, np.round(rng.uniform(0.1, 0.95, shape) * length, 1), length)
    result = game.end(rng, list(skill), list(seconds / length))
    teams = []
    for side in range(game.teams):
        named = players[side * game.team_size : (side + 1) * game.team_size]
        appearances = [
            Appearance(one.name, score, float(time), bool(gone), performance)
            for one, score, time, gone, performance in zip(
                named,
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
