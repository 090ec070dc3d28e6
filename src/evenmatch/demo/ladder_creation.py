"""The ladders of the demo: each has a simulated history of 75 days, a closed season, and a queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenmatch import rating, tables
from evenmatch.demo.games import GAMES, Game
from evenmatch.demo.population import SimulatedPerson, make_people, swing
from evenmatch.durations import SECOND
from evenmatch.errors import UsageError
from evenmatch.ladders.settings import Settings
from evenmatch.match import Appearance, Match, Team
from evenmatch.operations.service import Service
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.standings.rules import StandingsRules

QUEUE = "main"
RULES = QueueRules(
    accept_within=20.0, heartbeat=25.0, penalty=10.0, penalty_most=120.0, penalty_fades=600.0, longest_match=300.0
)
PLACEMENT = 5  # matches
DAYS = 75.0  # length of the history
SEASON_ENDED = 30.0  # days before the end of the history, when the first season was closed
GONE = 0.05  # share of people who stopped playing half-way
NEW = 0.04  # share of people who have not played yet
REACH = 1.8  # standard deviation of the skill of opponents around the first player of a match
EVENING = 20.0  # the hour of most matches, UTC
Values = NDArray[np.float64]


def missing(path: Path) -> list[Game]:
    """Return the games without a ladder in this database.

    Raises UsageError if it is a database of another site: it has other ladders, and not all of the demo's. Operators
    can create ladders on the pages of a demo, but only once it has all of its own.
    """
    with Service.open(str(path)) as service:
        present = {ladder.name for ladder in service.ladders()}
    lacking = [game for game in GAMES if game.ladder not in present]
    other = sorted(present - {game.ladder for game in GAMES})
    if other and lacking:
        raise UsageError(
            f"{path} contains the ladder {other[0]!r} but not {lacking[0].ladder!r}, so it is not a file of the demo; "
            "use another file"
        )
    return lacking


def play_histories(seed: int, games: Sequence[Game], ends: datetime | None = None) -> dict[str, list[Match]]:
    """Return the simulated matches of each game by ladder, the last at `ends`; None: now."""
    last = datetime.now(UTC).replace(microsecond=0) if ends is None else ends
    people = make_people(seed)
    return {game.ladder: play_history(seed, game, people, last) for game in games}


def make_ladder(path: Path, game: Game, matches: Sequence[Match]) -> None:
    """Create a game's ladder with its queue and these matches; the earlier ones are in a closed season."""
    ends = matches[-1].played_at
    now = ends - timedelta(days=DAYS + 1)
    turn = ends - timedelta(days=SEASON_ENDED)
    settings = Settings(game.title, StandingsRules(placement=PLACEMENT), game.team_size, reset="soft", factor=0.7)
    with Service.open(str(path), lambda: round(now.timestamp() * SECOND)) as service:
        service.create_ladder(game.ladder, game.system, rating.rules(game.system, None, **game.parameters), settings)
        now = turn
        service.import_matches(game.ladder, tables.from_matches([match for match in matches if match.played_at < turn]))
        service.open_season(game.ladder)
        now = ends
        later = [match for match in matches if match.played_at >= turn]
        service.import_matches(game.ladder, tables.from_matches(later))
        policy = {**game.policy, "team_size": game.team_size, "teams": game.teams}
        QueueService(service).set_queue(game.ladder, QUEUE, policy, RULES)


def play_history(seed: int, game: Game, people: Sequence[SimulatedPerson], ends: datetime) -> list[Match]:
    """Return the matches of the DAYS before `ends`, in order of time; reproducible by seed."""
    rng = np.random.default_rng([seed, 1, sum(map(ord, game.ladder))])
    own = [person for person in people if game.ladder in person.skill]
    fate = rng.random(len(own))
    eager = np.array([person.eagerness for person in own])
    skill = np.array([person.skill[game.ladder] for person in own])
    best_hour = np.array([person.best_hour for person in own])
    days_before = _days_before(rng, game.matches, ends)
    early = sum(days >= DAYS / 2 for days in days_before)
    line_ups = chain(
        _line_ups(rng, game, early, np.flatnonzero(fate >= NEW), eager, skill),
        _line_ups(rng, game, game.matches - early, np.flatnonzero((fate >= NEW) & (fate <= 1 - GONE)), eager, skill),
    )
    matches = []
    for number, (days, chosen) in enumerate(zip(days_before, line_ups, strict=True), 1):
        ended = (ends - timedelta(days=days)).astimezone(UTC).replace(microsecond=0)
        now = skill[chosen] + swing(ended.hour + ended.minute / 60, best_hour[chosen])
        teams, length = _play(rng, game, [own[index].name for index in chosen.tolist()], now)
        matches.append(Match(f"{game.ladder}-{number}", ended, teams, ladder=game.ladder, duration=length))
    return matches


def _play(rng: np.random.Generator, game: Game, names: list[str], skill: Values) -> tuple[tuple[Team, ...], float]:
    """Play a match: its teams with their results, and its length in seconds."""
    shape = (game.teams, game.team_size)
    length = float(rng.integers(game.length[0], game.length[1] + 1))
    left = rng.random(shape) < game.quits
    if left.all():
        left[0] = False  # somebody stays
    seconds = np.where(left, np.round(rng.uniform(0.1, 0.95, shape) * length, 1), length)
    result, players = game.end(rng, list(skill.reshape(shape)), list(seconds / length)), iter(names)
    slots = zip(*result[:2], seconds.tolist(), left.tolist(), result.performances, strict=True)
    teams = (Team(tuple(map(Appearance, islice(players, game.team_size), *own)), score=score) for score, *own in slots)
    return tuple(teams), length


def _days_before(rng: np.random.Generator, count: int, ends: datetime) -> list[float]:
    """Random end times of `count` matches, in days before `ends`, descending: more of them in the evenings."""
    days = np.sort(rng.uniform(0, DAYS, 4 * count))[::-1]
    hour = (ends.hour + ends.minute / 60 - 24 * days) % 24
    busy = 0.55 + 0.45 * np.cos((hour - EVENING) / 24 * 2 * np.pi)
    chosen = np.sort(rng.choice(len(days), count, replace=False, p=busy / busy.sum()))
    return [float(day) for day in days[chosen]]


def _line_ups(
    rng: np.random.Generator, game: Game, count: int, people: NDArray[np.int64], eager: Values, skill: Values
) -> Iterator[NDArray[np.int64]]:
    """The players of matches: a random one of these people and others of similar skill, in random order.

    Teams are not balanced: with teams even by true skill, no rating could predict the results.
    """
    weight, skill = eager[people], skill[people]
    for first in rng.choice(len(people), count, p=weight / weight.sum()).tolist():
        near = weight * np.exp(-0.5 * ((skill - skill[first]) / REACH) ** 2)
        time = rng.standard_exponential(len(people)) / near  # the first to arrive: weighted, without replacement
        time[first] = 0.0
        yield rng.permutation(people[np.argpartition(time, game.players)[: game.players]])
