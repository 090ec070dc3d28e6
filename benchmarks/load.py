"""Ten million rows of Parquet to a History: seconds, and the peak memory of the process.

    python -m benchmarks.load write 1v1 PATH    write the file
    python -m benchmarks.load read PATH         load it with evenmatch.read and print what it took, as JSON
    python -m benchmarks.load plain PATH        the same with pyarrow.parquet.read_table

Each is a process of its own, so that one's memory is not counted for another.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import evenmatch
from benchmarks.figure import Figure, Section, python, python_json, seconds
from benchmarks.matches import SEED, Season, as_table, play

SEASONS = {season.form: season for season in (Season(5_000_000, 500_000, 1), Season(1_000_000, 200_000, 5))}
ROUNDS = 3
GIGABYTE = 1e9


def write_season(season: Season, path: Path) -> None:
    """The season as a Parquet file: match ids of 16 characters, players' of 8, two labels of teams."""
    rng = np.random.default_rng((SEED, 2, *season))
    evenmatch.write(as_table(play(season), names(rng, season.matches, 16), names(rng, season.players, 8)), path)


def names(rng: np.random.Generator, count: int, length: int) -> pa.Array:
    """So many distinct texts of hexadecimal digits, in no order."""
    span = 16**length // count
    numbers = rng.permutation(count).astype(np.uint64) * np.uint64(span) + rng.integers(
        span, size=count, dtype=np.uint64
    )
    digits = numbers.astype(">u8").tobytes().hex()
    texts = np.frombuffer(digits.encode(), "S1").reshape(count, 16)[:, -length:]
    offsets = np.arange(count + 1, dtype=np.int64) * length
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts.tobytes()))


def peak_memory() -> float:
    """Bytes this process held at most. getrusage alone would also count the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def measure(read: Callable[[Path], object], path: Path) -> dict[str, float]:
    """Seconds and bytes of one reading in this process."""
    return {"seconds": seconds(lambda: read(path)), "bytes": peak_memory()}


def run() -> Section:
    """Write, load and remove a file for each form of match."""
    figures: list[Figure] = []
    sizes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="evenmatch-bench-") as folder:
        for form, season in SEASONS.items():
            path = Path(folder) / f"{form}.parquet"
            python("-m", "benchmarks.load", "write", form, str(path))
            sizes.append(
                f"{form}: {season.matches:,} matches, {season.players:,} players, {path.stat().st_size / 1e6:.0f} MB"
            )
            told = [
                [python_json("-m", "benchmarks.load", how, str(path)) for how in ("read", "plain")]
                for _ in range(ROUNDS)
            ]
            ours, plain = (
                {what: np.array([turn[at][what] for turn in told]) for what in ("seconds", "bytes")} for at in (0, 1)
            )
            by = "pyarrow.parquet.read_table"
            figures += [
                Figure(f"10 M rows, {form}: time", ours["seconds"], "s", 10, False, plain["seconds"], by),
                Figure(
                    f"10 M rows, {form}: memory",
                    ours["bytes"] / GIGABYTE,
                    "GB",
                    3,
                    False,
                    plain["bytes"] / GIGABYTE,
                    by,
                ),
            ]
    notes = [
        f"Files of ten million rows ({'; '.join(sizes)}), read by `evenmatch.read` in a fresh process, {ROUNDS} "
        f"times. Time is that of the call, memory the peak of the whole process, imports included."
    ]
    return Section("Loading", figures, notes)


def main(task: str, *rest: str) -> None:
    """What one of the processes does."""
    path = Path(rest[-1])
    if task == "write":
        write_season(SEASONS[rest[0]], path)
    else:
        print(json.dumps(measure(evenmatch.read if task == "read" else pq.read_table, path)))


if __name__ == "__main__":
    main(*sys.argv[1:])
