"""A hundred million duels from partitioned Parquet: seconds and memory, and what ten billion would take."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.figure import ROOT, Figure, Section
from benchmarks.matches import SEED, START, hidden_skill

MILLION = 1_000_000
PLAYERS = MILLION
SIZES = (10, 30, 100)  # million duels
FILE = 5 * MILLION  # duels
GROUP = MILLION // 2  # duels, a million rows
AIM_SECONDS, AIM_MEMORY = 60.0, 2.0  # for the largest size; GB
READ = """
import sys, pyarrow.parquet as pq
for name in sys.argv[1:]:
    file = pq.ParquetFile(name, read_dictionary=["team"])
    for group in range(file.num_row_groups):
        file.read_row_group(group, use_threads=False)
"""


class Cost(NamedTuple):
    """What a process took: seconds of wall and of all cores, and peak memory in GB."""

    wall: float
    cpu: float
    memory: float


def run() -> Section:
    """The command on three sizes, each beside Arrow alone on the same files."""
    figures: list[Figure] = []
    costs: dict[int, Cost] = {}
    with tempfile.TemporaryDirectory(prefix="evenmatch-bench-") as folder:
        files = list(write_duels(Path(folder, "season"), SIZES[-1] * MILLION))
        cost(
            [sys.executable, "-m", "evenmatch", "rate", files[0], "--system", "elo"]
        )  # compiles, once per installation
        for size in SIZES:
            part = link(Path(folder, f"season{size}"), files[: size * MILLION // FILE])
            out = Path(folder, f"ratings{size}")
            costs[size] = cost(
                [sys.executable, "-m", "evenmatch", "rate", str(part), "--system", "elo", "--out", str(out)]
            )
            alone = cost([sys.executable, "-c", READ, *sorted(map(str, part.iterdir()))])
            largest = size == SIZES[-1]
            name = f"{size} million duels, {PLAYERS:,} players"
            by = "Arrow reading the same files"
            wall, cpu, memory = costs[size]
            figures += [
                Figure(f"{name}: wall", wall, "s", AIM_SECONDS if largest else None, False, alone.wall, by),
                Figure(f"{name}: all cores", cpu, "s", None, False, alone.cpu, by),
                Figure(f"{name}: memory", memory, "GB", AIM_MEMORY if largest else None, False, alone.memory, by),
            ]
    figures += paper(costs)
    notes = [
        f"`evenmatch rate FOLDER --system elo --out FOLDER` in a process of its own, {FILE // MILLION} million duels a "
        "file, row groups of a million rows, ids and names as text. Other load on the machine changes wall time; "
        "seconds of all cores measure the work itself.",
        "Ten billion: computed from the slope between the smallest and the largest size; memory grows with players.",
    ]
    return Section("Histories larger than memory", figures, notes)


def paper(costs: dict[int, Cost]) -> list[Figure]:
    """What ten billion duels would take, from the slope."""
    low, high = costs[SIZES[0]], costs[SIZES[-1]]
    more = 10_000 - SIZES[-1]
    step = SIZES[-1] - SIZES[0]
    wall = high.wall + more * (high.wall - low.wall) / step
    cpu = high.cpu + more * (high.cpu - low.cpu) / step
    return [
        Figure("ten billion duels on paper: wall", wall / 60, "minutes", None, False, None, ""),
        Figure("ten billion duels on paper: all cores", cpu / 60, "minutes", None, False, None, ""),
    ]


def cost(command: list[str]) -> Cost:
    """Run a process and measure it; CalledProcessError if it fails."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / MILLION)


def link(folder: Path, files: list[str]) -> Path:
    """A folder with the first of the files."""
    folder.mkdir()
    for file in files:
        os.link(file, folder / Path(file).name)
    return folder


def write_duels(folder: Path, duels: int) -> Iterator[str]:
    """Write so many duels as partitions, in order of time; who wins follows from a hidden skill."""
    folder.mkdir()
    skill = hidden_skill(PLAYERS)
    names = pa.array([f"player{number * 7919 % PLAYERS:07d}" for number in range(PLAYERS)])
    rng, now = np.random.default_rng((SEED, duels)), START
    for first in range(0, duels, FILE):
        path = folder / f"{first // FILE:04d}.parquet"
        with pq.ParquetWriter(path, SCHEMA) as writer:
            for start in range(first, first + FILE, GROUP):
                rows, now = duel_rows(rng, skill, names, start, now)
                writer.write_table(rows, row_group_size=2 * GROUP)
        yield str(path)


SCHEMA = pa.schema(
    {
        "match_id": pa.string(),
        "played_at": pa.timestamp("us", "UTC"),
        "team": pa.string(),
        "player": pa.string(),
        "place": pa.int32(),
    }
)


def duel_rows(
    rng: np.random.Generator, skill: NDArray[np.float64], names: pa.Array, start: int, now: int
) -> tuple[pa.Table, int]:
    """GROUP duels from number `start` on, after the time `now`; and the time of the last."""
    home = rng.integers(PLAYERS, size=GROUP)
    away = (home + 1 + rng.integers(PLAYERS - 1, size=GROUP)) % PLAYERS
    wins = rng.random(GROUP) < 1 / (1 + np.exp(skill[away] - skill[home]))
    time_ = now + np.cumsum(rng.integers(1, 2 * MILLION, GROUP))
    match = pa.array(np.repeat(np.arange(GROUP), 2))
    columns = {
        "match_id": pa.array(np.arange(start, start + GROUP) + 10**9).cast(pa.string()).take(match),
        "played_at": pa.array(np.repeat(time_, 2)).cast(pa.timestamp("us", "UTC")),
        "team": pa.array(["home", "away"] * GROUP),
        "player": names.take(pa.array(np.stack((home, away), 1).ravel())),
        "place": pa.array(np.stack((2 - wins, 1 + wins), 1).ravel().astype(np.int32)),
    }
    return pa.table(columns, schema=SCHEMA), int(time_[-1])
