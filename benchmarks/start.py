"""Seconds of whole processes: importing, and rating two matches with an empty cache and with a warm one.

python -m benchmarks.start wager    rate two matches with this system, as the timed processes do
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Runs, Section, python, seconds, values_in_turn

SYSTEMS = ("wager", "battlepoints", "scorefactor", "prav", "even")
IMPORTS = 9
ROUNDS = 3
WARM = 5
TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
EVERYTHING = "from evenmatch import Rater, rate, read, rules"


def run() -> Section:
    """Imports, then the first and the later processes of every system."""
    statements = ("import evenmatch", EVERYTHING, "import numpy", "import numba, pyarrow")
    runs = [partial(import_seconds, statement) for statement in statements]
    for imported in runs:
        imported()
    bare, everything, numpy, required = values_in_turn(runs, IMPORTS)
    figures = [
        Figure("import evenmatch", bare, "s", 0.3, False, numpy, "import numpy"),
        Figure(
            "import evenmatch and all it rates with", everything, "s", None, False, required, "import numba, pyarrow"
        ),
    ]
    for name in SYSTEMS:
        first, later = process_seconds(name)
        (nothing,) = values_in_turn([partial(process, "-c", statements[-1])], WARM)
        by = "import numba, pyarrow"
        figures += [
            Figure(f"{name}: first process", first, "s", 5, False, nothing, by),
            Figure(f"{name}: later process", later, "s", 0.5, False, nothing, by),
        ]
    notes = [
        f"Imports are timed inside a fresh process, {IMPORTS} times; evenmatch imports what it needs when a "
        "name is first used, so the second line is the cost for a program that rates matches. A process is timed "
        "from start to "
        f"end: it makes two matches and rates them. First: with an empty cache of compiled kernels, {ROUNDS} "
        f"times; later: with the cache left by that process, {WARM} times. pandas and scipy are hidden from these "
        "processes, because pyarrow and numba import them if they are installed (half a second), although evenmatch "
        "does not need them.",
    ]
    return Section("Starting", figures, notes)


def import_seconds(statement: str) -> float:
    """How long an import takes in a fresh process."""
    return float(python("-c", TIMED.format(statement)))


def process(*arguments: str, **variables: str) -> float:
    """How long a fresh Python lives."""
    return seconds(partial(python, *arguments, **variables))


def process_seconds(system: str) -> tuple[Runs, Runs]:
    """Seconds of the first and of later processes that rate two matches; numba's cache is a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="evenmatch-bench-") as folder:

        def first() -> float:
            with tempfile.TemporaryDirectory(dir=folder) as empty:
                return process("-m", "benchmarks.two", system, NUMBA_CACHE_DIR=empty)

        warm = partial(process, "-m", "benchmarks.two", system, NUMBA_CACHE_DIR=str(Path(folder) / "warm"))
        warm()
        return values_in_turn([first], ROUNDS)[0], values_in_turn([warm], WARM)[0]
