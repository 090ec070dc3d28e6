"""What a benchmark reports: a figure, what it should be, and a reference that was measured beside it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Figure(NamedTuple):
    """One line of a report; `unit` holds for the figure, its aim and its reference.

    aim        None: none is set
    more       more is better (matches a second), else less is (seconds)
    reference  what the figure is held against, measured in the same run; None: could not be
    by         what the reference is
    within     the aim is missed, too, where it takes more than so many times the reference
    """

    name: str
    value: float
    unit: str
    aim: float | None
    more: bool
    reference: float | None
    by: str
    within: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the aim is reached; None where there is none."""
        ratio = self.ratio
        near = None if self.within is None or ratio is None else ratio <= self.within
        if self.aim is None:
            return near
        return near is not False and (self.value >= self.aim if self.more else self.value <= self.aim)

    @property
    def ratio(self) -> float | None:
        """How much longer it takes than the reference, or how much more it is."""
        if self.reference is None:
            return None
        return self.reference / self.value if self.more else self.value / self.reference


class Section(NamedTuple):
    """The figures of one benchmark, and what a reader must know of them."""

    title: str
    figures: list[Figure]
    notes: list[str]


def seconds(run: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best_in_turn(runs: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The least seconds of each of several runs, taken in turn so that a busy moment hits them all."""
    return [min(times) for times in zip(*([seconds(run) for run in runs] for _ in range(rounds)), strict=True)]


def median_in_turn(runs: Sequence[Callable[[], float]], rounds: int) -> list[float]:
    """The median of what each of several measurements returns, taken in turn."""
    return [statistics.median(told) for told in zip(*([run() for run in runs] for _ in range(rounds)), strict=True)]


def python(*arguments: str, **variables: str) -> str:
    """What a fresh Python prints."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def python_json(*arguments: str, **variables: str) -> dict[str, float]:
    """The numbers by name that a fresh Python prints as JSON."""
    told: dict[str, float] = json.loads(python(*arguments, **variables))
    return told
