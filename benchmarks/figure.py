"""What a benchmark reports: a figure, its aim, and a reference that was measured beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent

Runs = NDArray[np.float64]  # one value for each run


class Figure(NamedTuple):
    """One line of a report; `unit` holds for the figure, its aim and its reference.

    measured   one value, or one for each run; the figure is their median
    aim        None: none is set
    more       more is better (matches a second), else less is (seconds)
    reference  what the figure is compared with, measured in the same run; None: could not be measured.
               As many values as `measured` are pairs: each was measured next to the other
    by         what the reference is
    within     the aim is missed, too, where it takes more than so many times the reference
    """

    name: str
    measured: float | Runs
    unit: str
    aim: float | None
    more: bool
    reference: float | Runs | None
    by: str
    within: float | None = None

    @property
    def runs(self) -> Runs:
        """The values of all runs."""
        return np.atleast_1d(np.asarray(self.measured, float))

    @property
    def value(self) -> float:
        """The median of the runs."""
        return float(np.median(self.runs))

    @property
    def reference_runs(self) -> Runs:
        """The values of all runs of the reference; empty if there is none."""
        return np.empty(0) if self.reference is None else np.atleast_1d(np.asarray(self.reference, float))

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
        """How much longer it takes than the reference, or how much more it is: the median over the pairs."""
        ours, theirs = self.runs, self.reference_runs
        if not len(theirs):
            return None
        if len(ours) != len(theirs):
            ours, theirs = np.atleast_1d(np.median(ours)), np.atleast_1d(np.median(theirs))
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.median(theirs / ours if self.more else ours / theirs))


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


def seconds_in_turn(runs: Sequence[Callable[[], object]], rounds: int) -> Runs:
    """Seconds of several runs, (runs, rounds); taken in turn, so that a busy moment of the machine hits them all."""
    return np.array([[seconds(run) for run in runs] for _ in range(rounds)]).T


def values_in_turn(runs: Sequence[Callable[[], float]], rounds: int) -> Runs:
    """What several measurements return, (runs, rounds), taken in turn."""
    return np.array([[run() for run in runs] for _ in range(rounds)]).T


def python(*arguments: str, **variables: str) -> str:
    """What a fresh Python prints."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def python_json(*arguments: str, **variables: str) -> dict[str, float]:
    """The numbers by name that a fresh Python prints as JSON."""
    told: dict[str, float] = json.loads(python(*arguments, **variables))
    return told
