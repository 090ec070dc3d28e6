"""Standings of a million players in 1 and 4 processes that share them or do not: memory, and processor time.

`python -m benchmarks.shared_standings`. Each process asks for the standings ten times a second, as pages and reports
do, while one of them records a match a second; the pairs are measured in one run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.ledger import CROWD, SYSTEM
from benchmarks.ledger import table_of as crowd_of
from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.match import Match, Team
from evenmatch.operations.open_database import open_served
from evenmatch.operations.service import Service
from evenmatch.standings.rules import StandingsRules

LADDER = "crowd"
WARM, MEASURED = 5.0, 30.0  # seconds
PROCESSES = (1, 4)


def prepare(path: str) -> None:
    """The ladder, all of whose players are listed."""
    with Service.open(path) as service:
        settings = Settings(standings=StandingsRules(placement=1, active_days=36_500))
        service.create_ladder(LADDER, SYSTEM, rules(SYSTEM), settings)
        service.import_matches(LADDER, crowd_of(CROWD))


def proportional_memory() -> int:
    """Bytes of this process; what it shares with others is divided among them (PSS)."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def ask(path: str, views: str, number: int) -> None:
    """One process: ask for a while, then print memory and processor time. views: the shared folder; empty: none."""
    with open_served(path, Path(views) if views else None) as service:
        service.view(LADDER, fresh=False)
        first = time.process_time()  # of the first view, which reads all players
        begin, spent, count = time.monotonic(), first, 0
        while (elapsed := time.monotonic() - begin) < WARM + MEASURED:
            if elapsed < WARM:
                spent = time.process_time()
            service.shown_view(LADDER)
            count += 1
            if number == 0 and count % 10 == 0:
                teams = tuple(Team.of(name, place=place) for place, name in ((1, "ann"), (2, "bob")))
                service.record(Match(f"new-{time.time_ns()}", datetime.now(UTC), teams, LADDER))
            time.sleep(0.1)
        players = len(service.shown_view(LADDER).snapshot.board)
        print(
            json.dumps(
                {
                    "pss": proportional_memory(),
                    "first": first,
                    "seconds": time.process_time() - spent,
                    "players": players,
                }
            ),
            flush=True,
        )
        sys.stdin.read()  # until all have measured: what is shared is divided among those that have it


def measure(path: str, processes: int, *, share: bool) -> tuple[float, float, float]:
    """Megabytes of all processes together, processor seconds until each had a view, and then their share of a core."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        command = [sys.executable, "-m", "benchmarks.shared_standings", path, folder if share else ""]
        started = [
            subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for number in range(processes)
        ]
        told = [json.loads(process.stdout.readline()) for process in started if process.stdout is not None]
        for process in started:
            process.communicate("")
    assert all(each["players"] > 900_000 for each in told)
    memory, first, later = (sum(each[name] for each in told) for name in ("pss", "first", "seconds"))
    return memory / 2**20, first, later / MEASURED


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "evenmatch.db")
        prepare(path)
        for processes in PROCESSES:
            for share in (False, True):
                memory, first, later = measure(path, processes, share=share)
                told = f"{memory:,.0f} MB, {first:.1f} s of a core at the start, {later:.1%} of a core later"
                print(f"{processes} processes, shared: {share}: {told}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
