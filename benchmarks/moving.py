"""A database of a million duels is moved while a game server reports to its service, and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import HTTPError

from benchmarks.figure import ROOT, Figure, Section
from benchmarks.ledger import DUELS, SYSTEM, postgres, table_of
from benchmarks.matches import Season
from benchmarks.serve import SECRET, evenmatch, running, send
from evenmatch import rules
from evenmatch.operations.service import Service

BETWEEN = 0.01  # seconds from an acknowledgement to the next report
AGAIN = 0.02  # seconds after which a report that was not acknowledged is sent again


class Reports(threading.Thread):
    """A game server that reports a match, waits for the receipt, and reports the next one.

    pause  the longest time between two receipts, in seconds;  received  their number
    """

    def __init__(self, address: str, key: str, name: str) -> None:
        super().__init__(daemon=True)
        self.pause, self.received = 0.0, 0
        self._address, self._key, self._name = f"{address}/v1/ladders/duels/matches", key, name
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(BETWEEN):
            teams = [{"place": place, "players": [{"player": f"reported {place}"}]} for place in (1, 2)]
            match = {"id": f"{self._name} {self.received}", "played_at": datetime.now(UTC).isoformat(), "teams": teams}
            while not self._is_received(match):
                time.sleep(AGAIN)
            now = time.monotonic()
            self.pause, last = max(self.pause, now - last), now
            self.received += 1

    def _is_received(self, match: object) -> bool:
        try:
            send(self._address, self._key, match)
        except HTTPError as error:
            if error.code != 503:
                raise
            return False
        except OSError:  # the connection was closed by a process that changes its database
            return False
        return True


def run(season: Season = DUELS) -> Section:
    """From SQLite to PostgreSQL, then back."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder, postgres() as server:
        first, last = str(Path(folder, "first.db")), str(Path(folder, "last.db"))
        with Service.open(first) as service:
            service.create_ladder("duels", SYSTEM, rules(SYSTEM))
            service.import_matches("duels", table_of(season))
        key = json.loads(evenmatch("key", "create", "all", "--scope", "admin", "--json", db=first))["text"]
        figures += moved(first, server, key, f"{season.matches:,} duels to PostgreSQL")
        figures += moved(server, last, key, "back to SQLite")
    notes = [
        f"A game server reports to `evenmatch serve --next-db` {BETWEEN * 1000:.0f} ms after each receipt, and sends a "
        f"report that is refused again after {AGAIN * 1000:.0f} ms; the move, the service, the game server and both "
        "databases share the cores."
    ]
    return Section("Moving house", figures, notes)


def moved(source: str, target: str, key: str, what: str) -> list[Figure]:
    """Move while reports come in: how long it takes, and the pauses that the command and the game server see."""
    with running(source, EVENMATCH_NEXT_DB=target) as (address, _):
        reports = Reports(address, key, what)
        reports.start()
        time.sleep(5.0)
        usual, before, began = reports.pause, reports.received, time.monotonic()
        command = [sys.executable, "-m", "evenmatch", "move", "--from", source, "--to", target, "--json"]
        ended = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **SECRET}
        )
        taken = time.monotonic() - began
        after = reports.received
        time.sleep(5.0)
        reports.end()
    told = json.loads(ended.stdout)
    print(f"{what}: {taken:.0f} s, {told['changed']} rows changed meanwhile", file=sys.stderr, flush=True)
    return [
        Figure(f"moving {what}", taken, "s", None, False, None, ""),
        Figure("reports taken meanwhile", (after - before) / taken, "a second", None, True, None, ""),
        Figure("of which no writes were taken", told["pause"], "s", 3, False, None, ""),
        Figure("longest wait for a receipt", reports.pause, "s", 5, False, usual, "before the move"),
    ]


if __name__ == "__main__":
    from benchmarks import report

    print(report.plain(run(DUELS._replace(matches=int(sys.argv[1])) if sys.argv[1:] else DUELS)))
