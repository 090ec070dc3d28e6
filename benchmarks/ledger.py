"""A ledger on disk: recording by group commit, bulk import, removing a cheater; on SQLite and on PostgreSQL."""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.figure import ROOT, Figure, Section, seconds, seconds_in_turn
from benchmarks.matches import Season, as_table, line_ups, play
from evenmatch import rules
from evenmatch.corrections.corrections import Ban
from evenmatch.ladders.settings import Settings
from evenmatch.match import Match, Team
from evenmatch.operations.service import Service
from evenmatch.standings.rules import StandingsRules
from evenmatch.tables import MatchTable

SYSTEM = "trueskill"
CALLERS = (64, 128)  # threads, each of which waits for its receipt before it sends the next match
LIVE = Season(9_000, 5_000, 6)
ALONE = 300  # matches recorded one after the other
BULK = Season(40_000, 20_000, 6)
DUELS = Season(1_000_000, 100_000, 1)
CROWD = Season(500_000, 1_000_000, 1)  # two players each, so that a million are active
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SYNCED = ("journal_mode=WAL", "synchronous=FULL")  # as the ledger has it


def run() -> Section:
    """SQLite first, then PostgreSQL."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        with Service.open(str(Path(folder, "ledger.db"))) as service:
            figures += recording(service, "SQLite") + importing(service, "SQLite", 10_000, bare(Path(folder)))
            figures += duels(service)
        with Service.open(str(Path(folder, "crowd.db"))) as service:
            figures += crowd(service)
    with postgres() as url, Service.open(url) as service:
        figures += recording(service, "PostgreSQL") + importing(service, "PostgreSQL", 5_000, None)
    notes = [
        f"Ratings by {SYSTEM}, every commit durable (`synchronous=FULL`, `fsync=on`), database, callers and ledger on "
        f"the same cores. Recording: {LIVE.matches:,} 6v6 matches from threads that each wait for the receipt, half of "
        "them from fewer; the reference is one thread, so one commit for each match. "
        f"Import: {BULK.matches:,} 6v6 matches; the reference is the driver alone, which writes each match "
        "as JSON and its twelve appearances, and rates nothing.",
        f"Removing a cheater: the player with the most matches among {DUELS.matches:,} duels is banned, first as a "
        "preview, then permanently, with the rebuild. `verify` replays all of it and compares bit for bit.",
    ]
    return Section("The ledger", figures, notes)


def recording(service: Service, where: str) -> list[Figure]:
    """Matches that end one after the other, from many callers at once and from one."""
    service.create_ladder("live", SYSTEM, rules(SYSTEM))
    made = matches_of(LIVE, "live")
    for match in made[:20]:  # compiles, and fills the caches
        service.record(match)
    alone = seconds(lambda: [service.record(match) for match in made[20 : 20 + ALONE]])
    figures, rest = [], made[20 + ALONE :]
    for callers, part in zip(CALLERS, (rest[: len(rest) // 2], rest[len(rest) // 2 :]), strict=True):
        together = seconds(lambda part=part, callers=callers: record_at_once(service, part, callers))  # type: ignore[misc]
        name = f"{where}: recording 6v6, {callers} callers"
        figures.append(Figure(name, len(part) / together, "matches/s", 1500, True, ALONE / alone, "one caller"))
    found = service.verify("live")
    assert found.is_equal, found.differences[:3]
    assert found.matches == len(made), "a match was lost"
    return figures


def record_at_once(service: Service, made: list[Match], callers: int) -> None:
    """Every caller takes the next match and waits for its receipt."""
    waiting, guard = iter(made), threading.Lock()

    def call() -> None:
        while True:
            with guard:
                match = next(waiting, None)
            if match is None:
                return
            service.record(match)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def importing(
    service: Service, where: str, aim: float, reference: Callable[[MatchTable], float] | None
) -> list[Figure]:
    """A season in one go."""
    service.create_ladder("bulk", SYSTEM, rules(SYSTEM))
    table = table_of(BULK)
    took = seconds(lambda: service.import_matches("bulk", table))
    assert service.verify("bulk").is_equal
    beside = None if reference is None else BULK.matches / reference(table)
    return [Figure(f"{where}: import of 6v6", BULK.matches / took, "matches/s", aim, True, beside, "bare rows")]


def bare(folder: Path) -> Callable[[MatchTable], float]:
    """How long SQLite's driver takes to write the matches as JSON rows, with an index by player, and nothing else."""

    def write(table: MatchTable) -> float:
        connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
        for setting in SYNCED:
            connection.execute(f"PRAGMA {setting}")
        connection.execute("CREATE TABLE match (number INTEGER PRIMARY KEY, id TEXT UNIQUE, told TEXT)")
        connection.execute(
            "CREATE TABLE seen (player INTEGER, number INTEGER, PRIMARY KEY (player, number)) WITHOUT ROWID"
        )
        players = table.history.columns.player.reshape(len(table), -1).tolist()
        places = table.history.columns.place.reshape(len(table), -1).tolist()
        ids = table.match_id.to_pylist()

        def put() -> None:
            for first in range(0, len(ids), 25_000):
                part = range(first, min(first + 25_000, len(ids)))
                connection.execute("BEGIN IMMEDIATE")
                told = ((at, ids[at], json.dumps([players[at], places[at]])) for at in part)
                connection.executemany("INSERT INTO match VALUES (?, ?, ?)", told)
                seen = sorted((player, at) for at in part for player in players[at])
                connection.executemany("INSERT INTO seen VALUES (?, ?)", seen)
                connection.execute("COMMIT")

        took = seconds(put)
        connection.close()
        return took

    return write


def duels(service: Service) -> list[Figure]:
    """A million duels, from which a cheater is removed."""
    service.create_ladder("duels", SYSTEM, rules(SYSTEM))
    table = table_of(DUELS)
    most = int(np.bincount(table.history.columns.player).argmax())
    cheater = table.player_names[most]
    filled = seconds(lambda: service.import_matches("duels", table))
    previewed = seconds(lambda: service.preview("duels", Ban(cheater)))
    banned = seconds(lambda: service.correct("duels", Ban(cheater)))
    verified = seconds(lambda: _equal(service, "duels"))
    total = previewed + banned
    return [
        Figure(f"SQLite: import of {DUELS.matches:,} duels", filled, "s", 60, False, None, ""),
        Figure("removing a cheater from them: preview", previewed, "s", None, False, None, ""),
        Figure("preview, event and rebuild", total, "s", 30, False, filled, "importing them again"),
        Figure("verify", verified, "s", None, False, filled, "importing them again"),
    ]


def _equal(service: Service, ladder: str) -> None:
    found = service.verify(ladder)
    assert found.is_equal, found.differences[:3]


def crowd(service: Service) -> list[Figure]:
    """A million active players in a database: from cold, and after a match."""
    settings = Settings(standings=StandingsRules(placement=1, active_days=36_500))
    service.create_ladder("crowd", SYSTEM, rules(SYSTEM), settings)
    service.import_matches("crowd", table_of(CROWD))
    service._boards.forget("crowd")
    cold = seconds(lambda: service.view("crowd"))
    later = datetime(2026, 6, 1, tzinfo=UTC)
    taken = []
    for at in range(5):
        teams = (Team.of(f"player {at}", place=1), Team.of(f"player {at + 10}", place=2))
        service.record(Match(f"later {at}", later + timedelta(minutes=at), teams, ladder="crowd"))
        taken.append(seconds(lambda: service.view("crowd")))
    view = service.view("crowd")
    one = int(view.snapshot.board.player[view.snapshot.order[len(view.snapshot) // 2]])
    asked = 1e6 * seconds_in_turn([lambda: view.snapshot.standing(one)], 25)[0]
    count = len(view.snapshot)
    return [
        Figure(f"standings of {count:,} after a match: refresh", np.array(taken), "s", 0.5, False, cold, "from cold"),
        Figure("percentile and rank of a player", asked, "µs", 1000, False, None, ""),
    ]


def matches_of(season: Season, ladder: str) -> list[Match]:
    """The season as Match objects, a second apart."""
    players = line_ups(np.random.default_rng(6), season).tolist()
    won = np.random.default_rng(7).integers(0, 2, season.matches).tolist()
    half = season.team
    return [
        Match(
            f"m{at}",
            BEGIN + timedelta(seconds=at),
            (
                Team.of(*(f"player {one}" for one in who[:half]), place=1 + first),
                Team.of(*(f"player {one}" for one in who[half:]), place=2 - first),
            ),
            ladder=ladder,
        )
        for at, (who, first) in enumerate(zip(players, won, strict=True))
    ]


def table_of(season: Season, player: NDArray[np.int32] | None = None) -> MatchTable:
    """The season as a table, as though it had been read from a file. player: of each slot; None: as they were drawn."""
    if season is CROWD:
        history = play(season._replace(players=season.players))
        pairs = np.random.default_rng(8).permutation(season.players).astype(np.int32)
        history = type(history)(history.columns._replace(player=pairs))
    else:
        history = play(season)
        if player is not None:
            history = type(history)(history.columns._replace(player=player))
    ids = pa.array([f"{season.form} {at}" for at in range(season.matches)], pa.large_string())
    names = pa.array([f"player {at}" for at in range(season.players)], pa.large_string())
    return as_table(history, ids, names)


@contextmanager
def postgres(*, durable: bool = True) -> Iterator[str]:
    """A real server of our own, as the tests start it; durable: with fsync on."""
    sys.path.insert(0, str(ROOT / "tests"))
    server = importlib.import_module("postgres").Postgres(durable=durable)
    with server as running:
        yield running.fresh_database()
