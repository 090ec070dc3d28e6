"""The web site's pages on a ladder of a million players: time on the server, and weight."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.figure import Figure, Runs, Section
from benchmarks.ledger import CROWD, SYSTEM, matches_of, table_of
from benchmarks.matches import Season
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.rating import rules
from evenmatch.standings.rules import StandingsRules
from evenmatch.tables import from_matches

BIG, SMALL = "crowd", "small"
FEW = Season(3_000, 200, 1)  # players of the small ladder, who play on the large one, too: busy people among many
ROUNDS = 15
AIM_MS, AIM_KB = 200.0, 150.0
BUSY = "player 7"  # who has matches on both
PAGES = {
    "the ladder at a glance": "",
    "standings": "/standings",
    "standings, page 9,000": "/standings?page=9000",
    "standings around a player": f"/standings?around={quote(BUSY)}",
    "standings, a search": f"/standings?search={quote('player 77')}",
    "standings, a search that finds nobody": "/standings?search=zzq",
    "a player of 30 matches": f"/players/{quote(BUSY)}",
    "the latest matches": "/matches",
    "a match": "/matches/later-2990",
    "distribution": "/distribution",
    "distribution, its figure": "/distribution/figure",
    "rating path, its figure": f"/players/{quote(BUSY)}/path",
    "seasons": "/seasons",
    "rules": "/rules",
    "the queue": "/queue",
    "the lab": "/lab",
}
OPEN = {"EVENMATCH_OPEN_RATE": "100000", "EVENMATCH_OPEN_BURST": "1000000", "EVENMATCH_LOG_LEVEL": "warning"}


def run() -> Section:
    """Every page of the large ladder, and of a small one beside it."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "evenmatch.db"
        _seed(str(db))
        with _served(db) as base:
            figures = [_figure(base, name, path) for name, path in PAGES.items()]
            figures.insert(0, _weight(base))
    return Section(
        "Pages of the web site",
        figures,
        [
            "Time from the request to the last byte of the answer over loopback, on a ladder of a million active "
            "players "
            f"in SQLite, {ROUNDS} times after one that is not counted; the reference is the same page of a "
            f"ladder of {FEW.players} players with {FEW.matches:,} matches, in the same process. Standings are "
            "served from a cached view. Building it takes longest, happens once after the process starts, and is "
            "not included in these figures."
        ],
    )


def _seed(db: str) -> None:
    settings = Settings(standings=StandingsRules(placement=1, active_days=36_500))
    with Service.open(db) as service:
        for name in (BIG, SMALL):
            service.create_ladder(name, SYSTEM, rules(SYSTEM), settings)
            if name == BIG:
                service.import_matches(name, table_of(CROWD))
            later = [replace(one, id=f"later-{at}") for at, one in enumerate(matches_of(FEW, name))]
            service.import_matches(name, from_matches(later))


@contextmanager
def _served(db: Path) -> Iterator[str]:
    command = (sys.executable, "-m", "evenmatch", "serve", "--port", "0", "--open-reads", "--db", str(db))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **OPEN})
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[2]
    finally:
        process.terminate()
        process.wait(60)


def _figure(base: str, name: str, path: str) -> Figure:
    big, small = (_milliseconds(f"{base}/ladders/{ladder}{path}") for ladder in (BIG, SMALL))
    return Figure(name, big, "ms", AIM_MS, False, small, "ms, 200 players")


def _weight(base: str) -> Figure:
    body, _ = _get(f"{base}/ladders/{BIG}/standings")
    total = len(body)
    for part in ("evenmatch.css", "evenmatch.js", "icon.svg"):
        at = body.decode().split(f"/{part}")[0].rpartition('"')[2]
        total += len(_get(f"{base}{at}/{part}")[0])
    return Figure(
        "weight of the standings page, with style and script, not packed", total / 1000, "kB", AIM_KB, False, None, ""
    )


def _milliseconds(address: str) -> Runs:
    _get(address)
    return np.array([1000 * _get(address)[1] for _ in range(ROUNDS)])


def _get(address: str) -> tuple[bytes, float]:
    begin = time.perf_counter()
    with urllib.request.urlopen(address, timeout=120) as answer:  # loopback
        body: bytes = answer.read()
    return body, time.perf_counter() - begin
