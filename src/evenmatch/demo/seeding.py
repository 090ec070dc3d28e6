"""The ladders of the demo, made with a season and a half behind them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evenmatch import rating, tables
from evenmatch.demo.games import GAMES, Game
from evenmatch.demo.people import make_people
from evenmatch.demo.seasons import DAYS, play_season
from evenmatch.errors import UsageError
from evenmatch.match import Match
from evenmatch.service.queueing.desk import Desk
from evenmatch.service.queueing.queue_rules import QueueRules
from evenmatch.service.service import Service, microseconds
from evenmatch.service.settings import Settings
from evenmatch.standings.board import StandingsRules

QUEUE = "main"
RULES = QueueRules(
    accept_within=20.0,
    heartbeat=25.0,
    tick=1.0,
    penalty=10.0,
    penalty_most=120.0,
    penalty_fades=600.0,
    longest_match=300.0,
)
SEASON_ENDED = 30.0  # days ago: the first one
SECOND = 1_000_000


class Clock:
    """A clock that is set: what is recorded of the past happened then."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> int:
        """Microseconds since the epoch."""
        return round(self.now.timestamp() * SECOND)


def missing(path: Path) -> list[Game]:
    """The games whose ladders a database does not hold yet. Raises UsageError for a database of other ladders."""
    with Service.open(str(path)) as service:
        there = {ladder.name for ladder in service.ladders()}
    other = sorted(there - {game.ladder for game in GAMES})
    if other:
        raise UsageError(f"{path} holds the ladder {other[0]!r}, which is no demo's; accepted is a file of its own")
    return [game for game in GAMES if game.ladder not in there]


def play_seasons(seed: int, games: Sequence[Game], ends: datetime | None = None) -> dict[str, list[Match]]:
    """The season of each of these games by ladder, until this time; None: now."""
    last = datetime.fromtimestamp(microseconds() // SECOND, UTC) if ends is None else ends
    people = make_people(seed)
    return {game.ladder: play_season(seed, game, people, last) for game in games}


def make_ladder(path: Path, game: Game, matches: Sequence[Match]) -> None:
    """Make a game's ladder with its queue and these matches, the earlier of them in a season that was closed since."""
    ends = matches[-1].played_at
    clock = Clock(ends - timedelta(days=DAYS + 1))
    turn = ends - timedelta(days=SEASON_ENDED)
    settings = Settings(game.title, StandingsRules(placement=game.placement), game.team_size, "soft", 0.7)
    with Service.open(str(path), clock) as service:
        service.create_ladder(game.ladder, game.system, rating.rules(game.system, None, **game.parameters), settings)
        clock.now = turn
        service.import_matches(game.ladder, tables.from_matches([one for one in matches if one.played_at < turn]))
        service.open_season(game.ladder)
        clock.now = ends
        service.import_matches(game.ladder, tables.from_matches([one for one in matches if one.played_at >= turn]))
        policy = {**game.policy, "team_size": game.team_size, "teams": game.teams}
        Desk(service).set_queue(game.ladder, QUEUE, policy, RULES)
