"""Many ladders on all processors of this machine (`--cluster local`) against one: `python -m benchmarks cluster`.

Each run is a process of its own, in turn: one bound to one processor that rates ladder after ladder, and one that gives
tasks to Ray. The time that Ray takes to start is measured and does not grow with the work: there is a figure without
it and one with it.
Sizes: EVENMATCH_BENCH_LADDERS (1,000), EVENMATCH_BENCH_MATCHES (100,000 each), EVENMATCH_BENCH_ROUNDS (3).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.figure import Figure, Section, python_json
from evenmatch import rules
from evenmatch.cluster.connection import connect
from evenmatch.cluster.ladders import rate_ladders
from evenmatch.partitioned import rate_partitions
from evenmatch.tables.partitions import find_partitions

LADDERS = int(os.environ.get("EVENMATCH_BENCH_LADDERS", "1000"))
MATCHES = int(os.environ.get("EVENMATCH_BENCH_MATCHES", "100000"))
ROUNDS = int(os.environ.get("EVENMATCH_BENCH_ROUNDS", "3"))
SEASONS = 10  # different ones; the files of further ladders are links to them
PLAYERS = 5000
MINUTE = 60_000_000
SYSTEM = "elo"
AIM = 1.8


def run() -> Section:
    """Measure one processor and all of them in turn, and compare what they wrote."""
    ones, alls = list[dict[str, float]](), list[dict[str, float]]()
    prints = set[str]()
    with tempfile.TemporaryDirectory(prefix="evenmatch-") as name:
        folder = Path(name)
        write_ladders(folder / "in")
        for turn in range(ROUNDS):
            for kind, told in (("one", ones), ("all", alls)):
                out = folder / f"{kind}-{turn}"
                told.append(python_json("-m", "benchmarks.cluster", kind, str(folder / "in"), str(out)))
                prints.add(digest(out))
    speed = [one["seconds"] / both["seconds"] for one, both in zip(ones, alls, strict=True)]
    started = [one["seconds"] / (both["seconds"] + both["start"]) for one, both in zip(ones, alls, strict=True)]
    figures = [
        Figure("all processors against one", np.array(speed), "times", AIM, True, None, ""),
        Figure("all processors against one, Ray's start included", np.array(started), "times", None, True, None, ""),
        Figure("one processor", each(ones, "seconds"), "s", None, False, None, ""),
        Figure("all processors, Ray's start left out", each(alls, "seconds"), "s", None, False, None, ""),
        Figure(
            "CPU seconds of all processors",
            each(alls, "cpu"),
            "s",
            None,
            False,
            each(ones, "cpu"),
            "s of one processor",
        ),
        Figure("start of Ray and check of its node", each(alls, "start"), "s", None, False, None, ""),
    ]
    notes = [
        f"{LADDERS:,} ladders of {MATCHES:,} duels of {PLAYERS:,} players, rated by {SYSTEM}, on {processors()} "
        f"processors; {ROUNDS} rounds in turn, ratios {', '.join(f'{ratio:.2f}' for ratio in speed)}.",
        "All runs wrote the same bytes." if len(prints) == 1 else "THE RUNS WROTE DIFFERENT RESULTS.",
    ]
    return Section("Ladders on many processors", figures, notes)


def each(runs: list[dict[str, float]], name: str) -> NDArray[np.float64]:
    """A number that was measured in each run."""
    return np.array([run[name] for run in runs])


def write_ladders(folder: Path) -> None:
    """A folder per ladder, with one file each."""
    rng = np.random.default_rng(1)
    for number in range(LADDERS):
        own = folder / f"ladder=ladder {number:04}"
        own.mkdir(parents=True)
        if number < SEASONS:
            pq.write_table(duels(rng), own / "1.parquet")
        else:
            os.link(folder / f"ladder=ladder {number % SEASONS:04}" / "1.parquet", own / "1.parquet")


def duels(rng: np.random.Generator) -> pa.Table:
    """A ladder's matches, a row per player, by the odds of hidden skills."""
    skill = rng.normal(0, 200, PLAYERS)
    first = rng.integers(0, PLAYERS, MATCHES)
    second = (first + rng.integers(1, PLAYERS, MATCHES)) % PLAYERS
    wins = rng.random(MATCHES) < 1 / (1 + 10 ** ((skill[second] - skill[first]) / 400))
    players = pa.array([f"player {index}" for index in range(PLAYERS)])
    time_of = 1_767_225_600_000_000 + MINUTE * np.arange(MATCHES)
    place = np.where(wins, 1, 2)
    return pa.table(
        {
            "match_id": pa.array([f"m{index}" for index in range(MATCHES)]).take(
                pa.array(np.arange(MATCHES).repeat(2))
            ),
            "played_at": pa.array(time_of.repeat(2), pa.timestamp("us", "UTC")),
            "team": pa.array(["1", "2"] * MATCHES),
            "player": players.take(pa.array(np.stack((first, second), 1).ravel())),
            "place": pa.array(np.stack((place, 3 - place), 1).ravel(), pa.int32()),
        }
    )


def digest(folder: Path) -> str:
    """A hash over all files of a result."""
    hashed = hashlib.sha256()
    for path in sorted(folder.rglob("*.*")):
        if path.is_file():
            hashed.update(f"{path.relative_to(folder)}\n".encode())
            hashed.update(path.read_bytes())
    return hashed.hexdigest()


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def measure(kind: str, source: str, out: str) -> dict[str, float]:
    """Rate once: by one processor, or by all of them. Seconds, and CPU seconds of this process and its descendants."""
    by, partitions = rules(SYSTEM), find_partitions(source)
    if kind == "one":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        rate_partitions(partitions[:1], by)  # loads the kernels
        begin, used = time.perf_counter(), cpu_seconds()
        rate_partitions(partitions, by, out=out)
        return {"start": 0.0, "seconds": time.perf_counter() - begin, "cpu": cpu_seconds() - used}
    begin = time.perf_counter()
    with connect("local", [SYSTEM]) as cluster:
        start = time.perf_counter() - begin
        begin, used = time.perf_counter(), cpu_seconds()
        rate_ladders(cluster, partitions, by, out=out)
        return {"start": start, "seconds": time.perf_counter() - begin, "cpu": cpu_seconds() - used}


def cpu_seconds() -> float:
    """CPU seconds of this process and all that it started, Ray's own included."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
