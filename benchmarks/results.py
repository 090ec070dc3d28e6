"""Results that are kept, the last one of each kind of machine, in benchmarks/results; and how a new one differs."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from benchmarks.figure import ROOT, Figure, Section
from benchmarks.machine import processor, versions

FOLDER = ROOT / "benchmarks" / "results"
WORSE = 1.2  # times the committed figure: what is worse than that is reported


class Result(NamedTuple):
    """A section as it was measured.

    machine   the processor and the number of cores: figures are compared only on the same
    measured  the date, and the versions of what was used
    """

    name: str
    machine: str
    measured: str
    section: Section


class Decline(NamedTuple):
    """A figure that is worse than the committed one.

    times      how many times worse
    reference  how many times worse its reference is than it was; None: there is none
    """

    name: str
    unit: str
    before: float
    now: float
    times: float
    reference: float | None


def result_of(name: str, section: Section) -> Result:
    """What was just measured, here."""
    return Result(name, this_machine(), f"{datetime.now(UTC):%Y-%m-%d}; {versions()}", section)


def this_machine() -> str:
    """The kind of this machine."""
    return f"{processor()}, {os.cpu_count()} cores"


def keep(result: Result) -> None:
    """Write a result in the place of the last one of this kind of machine."""
    stored = _read_working_tree(result.name)
    stored[result.machine] = _as_json(result)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{result.name}.json").write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")


def kept(name: str) -> Result | None:
    """The last result of a benchmark, on whatever machine; None if it was never kept."""
    stored = _read_working_tree(name)
    if not stored:
        return None
    machine = max(stored, key=lambda kind: str(stored[kind]["measured"]))
    return _of_json(name, machine, stored[machine])


def committed(name: str) -> Result | None:
    """The last result of a benchmark on this kind of machine that is committed; None if there is none."""
    command = ["git", "show", f"HEAD:benchmarks/results/{name}.json"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    stored = json.loads(shown.stdout) if shown.returncode == 0 else {}
    machine = this_machine()
    return _of_json(name, machine, stored[machine]) if machine in stored else None


def declines(before: Section, now: Section) -> list[Decline]:
    """The figures that are more than WORSE times worse than before, the worst first."""
    earlier = {(figure.name, figure.unit): figure for figure in before.figures}
    found = []
    for figure in now.figures:
        other = earlier.get((figure.name, figure.unit))
        if other is None or (times := _times_worse(other.value, figure.value, figure.more)) <= WORSE:
            continue
        reference = None
        if len(other.reference_runs) and len(figure.reference_runs):
            was, is_now = (float(np.median(one.reference_runs)) for one in (other, figure))
            reference = _times_worse(was, is_now, figure.more)
        found.append(Decline(figure.name, figure.unit, other.value, figure.value, times, reference))
    return sorted(found, key=lambda decline: -decline.times)


def _times_worse(before: float, now: float, more: bool) -> float:
    small, large = (now, before) if more else (before, now)
    if small <= 0:
        return 1.0 if large <= 0 else float("inf")
    return large / small


def _read_working_tree(name: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.json"
    stored: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return stored


def _as_json(result: Result) -> dict[str, Any]:
    figures = []
    for figure in result.section.figures:
        told = figure._asdict() | {"measured": _rounded(figure.runs), "reference": _rounded(figure.reference_runs)}
        figures.append({key: value for key, value in told.items() if value not in (None, "", [])})
    return {
        "measured": result.measured,
        "title": result.section.title,
        "notes": result.section.notes,
        "figures": figures,
    }


def _of_json(name: str, machine: str, stored: dict[str, Any]) -> Result:
    figures = [
        Figure(
            one["name"],
            np.array(one["measured"]),
            one["unit"],
            one.get("aim"),
            one["more"],
            np.array(one["reference"]) if "reference" in one else None,
            one.get("by", ""),
            one.get("within"),
        )
        for one in stored["figures"]
    ]
    return Result(name, machine, stored["measured"], Section(stored["title"], figures, stored["notes"]))


def _rounded(values: np.ndarray[Any, Any]) -> list[float]:
    """Six digits: more would be noise that every run changes."""
    return [float(f"{value:.6g}") for value in values.tolist()]
