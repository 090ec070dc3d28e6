"""A large ladder: a correction by a worker process, other ladders' requests meanwhile, and the start after a kill."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
from evenmatch_client import Client, calls

from benchmarks.figure import Figure, Section
from benchmarks.ledger import table_of
from benchmarks.matches import Season
from benchmarks.serve import memory, running, served
from benchmarks.start import import_seconds
from evenmatch import rules
from evenmatch.operations.service import Service

# A smaller ladder by environment variable, to try it out.
DUELS = Season(int(os.environ.get("EVENMATCH_BENCH_DUELS", "1000000")), 50_000, 1)
LARGE, OTHER, FIRST = "large", "other", 3  # FIRST: the position of the match to void
PAUSE = 0.02  # seconds between two requests of one sort
PREVIEWS = 16
KILLS = 3


def run() -> Section:
    """Reports and reads alone, while sixteen previews are asked for, and while a match is voided."""
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder, "corrections.db"))
        match_id = seeded(db)
        with served(db) as (address, key, pid):
            figures = measured(address, key, pid, match_id)
        figures.append(restart(db, key))
    notes = [
        f"SQLite, {DUELS.matches:,} duels of {DUELS.players:,} players by `elo`, an early one of which is voided; one "
        "report and one read of standings every 20 ms on another ladder, from one client each on the same cores. The "
        "reference is the same load without a correction. The void is measured from the request to the end of its "
        "job, which yields to reports. The first report after the process is killed is one on the large ladder.",
    ]
    return Section("Corrections of a large ladder", figures, notes)


def seeded(db: str) -> str:
    """Make both ladders; the id of the match to void."""
    with Service.open(db) as service:
        for name in (LARGE, OTHER):
            service.create_ladder(name, "elo", rules("elo"))
        table = table_of(DUELS)
        service.import_matches(LARGE, table)
        return str(table.match_id[FIRST - 2].as_py())


def measured(address: str, key: str, pid: int, match_id: str) -> list[Figure]:
    """The figures of one service."""
    with Client(address, key, timeout=60) as client:
        with loaded(address, key) as alone:
            time.sleep(10)
        before = memory(pid)
        with loaded(address, key) as previewed:
            threads = [threading.Thread(target=preview, args=(address, key, match_id)) for _ in range(PREVIEWS)]
            begun = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            previews = time.monotonic() - begun
        grown = memory(pid) - before
        with loaded(address, key) as voided:
            begun = time.monotonic()
            client.finish(calls.post(f"/v1/ladders/{LARGE}/voids", {"match_id": match_id, "id": "void"}))
            void = time.monotonic() - begun
    figures = [
        Figure(f"{PREVIEWS} equal previews at once", previews, "s", None, False, None, ""),
        Figure("memory of the service after them", grown, "MB", 100, False, None, ""),
        Figure("void of an early match", void, "s", None, False, previews, "the previews, s"),
    ]
    for what, aim in (("reports", 100.0), ("reads", 200.0)):
        for when, times in (("previews", previewed), ("the void", voided)):
            name = f"{what} of another ladder during {when}, 99 of 100 within"
            figures.append(Figure(name, p99(times[what]), "ms", aim, False, p99(alone[what]), "alone, ms"))
    return figures


def restart(db: str, key: str) -> Figure:
    """Seconds from a kill of the service to the first report that the next process answers."""
    times = []
    for _ in range(KILLS):
        with running(db) as (address, pid):
            first_report(address, key)
            os.kill(pid, signal.SIGKILL)
            begun = time.monotonic()
            with running(db) as (again, _):
                first_report(again, key)
                times.append(time.monotonic() - begun)
    imports = np.array([import_seconds("import evenmatch.http.server") for _ in range(KILLS)])
    return Figure("first report after a kill", np.array(times), "s", 5, False, imports, "its imports, s")


def first_report(address: str, key: str) -> None:
    """Report a duel of the large ladder."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{address}/v1/ladders/{LARGE}", headers=headers, timeout=60) as client:
        report(client, 0).raise_for_status()


def p99(times: list[float]) -> float:
    """Milliseconds within which 99 of 100 were answered."""
    return float(np.percentile(times, 99)) * 1000


def preview(address: str, key: str, match_id: str) -> None:
    """One preview, until its job has ended."""
    with Client(address, key, timeout=60) as client:
        client.finish(calls.post(f"/v1/ladders/{LARGE}/voids?preview=true", {"match_id": match_id}))


@contextmanager
def loaded(address: str, key: str) -> Iterator[dict[str, list[float]]]:
    """Report and read on the other ladder while the block runs; the seconds that each request took."""
    times: dict[str, list[float]] = {"reports": [], "reads": []}
    stop = threading.Event()
    asks: dict[str, Callable[[httpx.Client, int], httpx.Response]] = {"reports": report, "reads": read}

    def ask(what: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=f"{address}/v1/ladders/{OTHER}", headers=headers, timeout=60) as client:
            while not stop.wait(PAUSE):
                begun = time.perf_counter()
                asks[what](client, len(times[what])).raise_for_status()
                times[what].append(time.perf_counter() - begun)

    threads = [threading.Thread(target=ask, args=(what,)) for what in asks]
    for thread in threads:
        thread.start()
    try:
        yield times
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def report(client: httpx.Client, number: int) -> httpx.Response:
    """Report a duel."""
    teams = [{"place": place, "players": [{"player": f"p{(number + place) % 500}"}]} for place in (1, 2)]
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return client.post("/matches", json={"id": f"d-{time.time_ns()}", "played_at": moment, "teams": teams})


def read(client: httpx.Client, _: int) -> httpx.Response:
    """Read the first page of the standings."""
    return client.get("/standings")
