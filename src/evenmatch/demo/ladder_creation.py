"""The ladders of the demo: each has a simulated history of 75 days, a closed season, and a queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenmatch import rating
from evenmatch.demo.games import GAMES, DemoGame, play
from evenmatch.demo.population import SimulatedPerson, make_people, swing
from evenmatch.durations import SECOND
from evenmatch.errors import UsageError
from evenmatch.history import History
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.standings.rules import StandingsRules
from evenmatch.tables import MatchTable

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


def missing(path: Path) -> list[DemoGame]:
    """Return the games without a ladder in this database.

    Raises UsageError if it is a database of another site: it has other ladders, and not all of the demo's. Operators
    can create ladders on the pages of a demo, but only once it has all of its own.
    """
    with Service.open(str(path)) as service:
        present = {ladder.name for ladder in service.ladders()}
    lacking = [game for game in GAMES if game.name not in present]
    other = sorted(present - {game.name for game in GAMES})
    if other and lacking:
        raise UsageError(
            f"{path} contains the ladder {other[0]!r} but not {lacking[0].name!r}, so it is not a file of the demo; "
            "use another file"
        )
    return lacking


def play_histories(seed: int, games: Sequence[DemoGame], ends: datetime | None = None) -> dict[str, MatchTable]:
    """Return the simulated matches of each game by ladder, the last at `ends`; None: now."""
    last = datetime.now(UTC).replace(microsecond=0) if ends is None else ends
    people = make_people(seed)
    return {game.name: play_history(seed, game, people, last) for game in games}


def make_ladder(path: Path, game: DemoGame, matches: MatchTable) -> None:
    """Create a game's ladder with its queue and these matches; the earlier ones are in a closed season."""
    time = matches.history.columns.time
    ends = datetime.fromtimestamp(int(time[-1]) / SECOND, UTC)
    now = ends - timedelta(days=DAYS + 1)
    turn = ends - timedelta(days=SEASON_ENDED)
    settings = Settings(game.title, StandingsRules(placement=PLACEMENT), game.team_size, reset="soft", factor=0.7)
    with Service.open(str(path), lambda: round(now.timestamp() * SECOND)) as service:
        service.create_ladder(game.name, game.system, rating.rules(game.system, None, **game.parameters), settings)
        now = turn
        service.import_matches(game.name, matches.take(time < turn.timestamp() * SECOND))
        service.open_season(game.name)
        now = ends
        service.import_matches(game.name, matches.take(time >= turn.timestamp() * SECOND))
        policy = {**game.policy, "team_size": game.team_size, "teams": game.teams}
        QueueService(service).set_queue(game.name, QUEUE, policy, RULES)


def play_history(seed: int, game: DemoGame, people: Sequence[SimulatedPerson], ends: datetime) -> MatchTable:
    """Return the matches of the DAYS before `ends`, in order of time; reproducible by seed."""
    rng = np.random.default_rng([seed, 1, sum(map(ord, game.name))])
    own = [person for person in people if game.name in person.skill]
    fate = rng.random(len(own))
    eager = np.array([person.eagerness for person in own])
    skill = np.array([person.skill[game.name] for person in own])
    best_hour = np.array([person.best_hour for person in own])
    time = np.floor(ends.timestamp() - 86_400 * _days_before(rng, game.matches, ends))
    early = int((time <= ends.timestamp() - 86_400 * DAYS / 2).sum())
    line_ups = chain(
        _line_ups(rng, game, early, np.flatnonzero(fate >= NEW), eager, skill),
        _line_ups(rng, game, game.matches - early, np.flatnonzero((fate >= NEW) & (fate <= 1 - GONE)), eager, skill),
    )
    chosen = np.concatenate(list(line_ups))
    now = skill[chosen] + swing(np.repeat(time % 86_400 / 3600, game.players), best_hour[chosen])
    presence = np.where(rng.random(len(chosen)) < game.quit, rng.uniform(0.1, 0.95, len(chosen)), 1.0)
    presence[:: game.players] = 1.0  # somebody stays
    columns = play(game, rng, chosen, now, presence)._replace(time=(time * SECOND).astype(np.int64))
    return MatchTable.of(History(columns), game.name, [person.name for person in own])


def _days_before(rng: np.random.Generator, count: int, ends: datetime) -> Values:
    """Random end times of `count` matches, in days before `ends`, descending: more of them in the evenings."""
    days = np.sort(rng.uniform(0, DAYS, 4 * count))[::-1]
    hour = (ends.hour + ends.minute / 60 - 24 * days) % 24
    busy = 0.55 + 0.45 * np.cos((hour - EVENING) / 24 * 2 * np.pi)
    return days[np.sort(rng.choice(len(days), count, replace=False, p=busy / busy.sum()))]


def _line_ups(
    rng: np.random.Generator, game: DemoGame, count: int, people: NDArray[np.int64], eager: Values, skill: Values
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
