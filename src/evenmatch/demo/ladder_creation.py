"""Create the ladders of the demo, each with a closed season and the matches of the present one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evenmatch import rating, tables
from evenmatch.demo.games import GAMES, Game
from evenmatch.demo.match_history import DAYS, play_history
from evenmatch.demo.population import make_people
from evenmatch.durations import SECOND
from evenmatch.errors import UsageError
from evenmatch.match import Match
from evenmatch.service.queue_rules import QueueRules
from evenmatch.service.queues.queue_service import QueueService
from evenmatch.service.service import Service
from evenmatch.service.settings import Settings
from evenmatch.standings.rules import StandingsRules

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
SEASON_ENDED = 30.0  # days before the end of the history: when the first season was closed


class Clock:
    """A clock that can be set, so that past events are recorded with their own time."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> int:
        """Return the set time, microseconds since the epoch."""
        return round(self.now.timestamp() * SECOND)


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
    clock = Clock(ends - timedelta(days=DAYS + 1))
    turn = ends - timedelta(days=SEASON_ENDED)
    settings = Settings(game.title, StandingsRules(placement=game.placement), game.team_size, reset="soft", factor=0.7)
    with Service.open(str(path), clock) as service:
        service.create_ladder(game.ladder, game.system, rating.rules(game.system, None, **game.parameters), settings)
        clock.now = turn
        service.import_matches(game.ladder, tables.from_matches([match for match in matches if match.played_at < turn]))
        service.open_season(game.ladder)
        clock.now = ends
        later = [match for match in matches if match.played_at >= turn]
        service.import_matches(game.ladder, tables.from_matches(later))
        policy = {**game.policy, "team_size": game.team_size, "teams": game.teams}
        QueueService(service).set_queue(game.ladder, QUEUE, policy, RULES)
