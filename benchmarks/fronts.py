"""Our matchmaker beside simple ones at many rates, shapes and populations: `python -m benchmarks.fronts --help`.

Every matchmaker decides over the same arrivals, under the same policy. A cell is a shape of matches, a population and
a rate of arrival. A matchmaker that keeps all filters lies below ours in a cell if its waits (half and 95 of 100) and
its spread (95 of 100) are nowhere worse beyond noise and somewhere better beyond noise: by more than 1 % and by more
than the 95 % interval of the differences over the seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student  # type: ignore[import-untyped]

from benchmarks.figure import Figure, Section
from evenmatch.lab.queue.rival_matchmakers import KEEPING, others
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.scenario import REGION_MIXES, Scenario, party_mix
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking import Policy, propose
from evenmatch.policy import presets

OURS = "evenmatch"
SHAPES: dict[str, dict[str, int]] = {
    "duels": {"team_size": 1},
    "3v3": {"team_size": 3},
    "5v5": {"team_size": 5},
    "6v6": {"team_size": 6},
    "8v8": {"team_size": 8},
    "3x4": {"team_size": 4, "teams": 3},
    "ffa8": {"team_size": 1, "teams": 8},
}
POPULATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "loose": {"share_strict": 0.0},
    "strict": {"share_strict": 0.6},
    "parties": {"parties": "some"},
    "regions": {"regions": REGION_MIXES["four"]},
    "bursts": {"kind": "bursts"},
    "nights": {"kind": "daily", "period": 7200.0, "minutes": 120.0},
    "returning": {"players": 400, "return_share": 0.8},
}
JUDGED = ("wait_p50", "wait_p95", "spread_p95")  # less is better
TOLD = (*JUDGED, "spread_p50", "law", "wait_max", "unmatched", "violations", "matches")
ARRIVALS = 3000  # in a run at least
SHORTEST, LONGEST = 20.0, 360.0  # minutes
NOTICED = 0.01  # smaller differences are noise


class Run(NamedTuple):
    """One run: a cell, a policy, a matchmaker and a seed."""

    shape: str
    population: str
    rate: float
    preset: str
    options: tuple[tuple[str, Any], ...]
    matchmaker: str
    seed: int

    @property
    def cell(self) -> str:
        """What all matchmakers of a comparison share, without the seed."""
        return f"{self.shape} {self.population} {self.rate:g}/s {self.preset}"

    def measure(self) -> dict[str, float]:
        """Simulate it; the figures of TOLD."""
        changes = SHAPES[self.shape] | dict(self.options)
        policy = Policy.from_data({"preset": self.preset} | changes)
        values = dict(POPULATIONS[self.population])
        if "parties" in values:
            values["parties"] = party_mix(values["parties"], policy.team_size)
        minutes = min(max(ARRIVALS / self.rate / 60, SHORTEST, values.pop("minutes", 0.0)), LONGEST)
        scenario = Scenario(
            arrivals=self.rate, minutes=minutes, seed=self.seed, tick=1.0 if self.rate >= 1 else 2.0, **values
        )
        matchmaker = propose if self.matchmaker == OURS else others()[self.matchmaker].propose
        summary = summary_of(simulate(scenario, matchmaker, policy, name=self.matchmaker))
        return {name: np.nan if summary[name] is None else float(str(summary[name])) for name in TOLD}


def measured(runs: Sequence[Run], processes: int) -> Iterator[tuple[Run, dict[str, float]]]:
    """The runs with their figures, as they come."""
    with get_context("spawn").Pool(processes) as pool:
        yield from zip(runs, pool.imap(Run.measure, runs), strict=True)


class Compared(NamedTuple):
    """One matchmaker in one cell: mean and 95 % interval of each figure, and whether it lies below ours."""

    cell: str
    matchmaker: str
    mean: dict[str, float]
    interval: dict[str, float]
    below: bool


def compared(results: Sequence[tuple[Run, dict[str, float]]]) -> list[Compared]:
    """The results by cell and matchmaker."""
    by: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run, told in results:
        own = by.setdefault((run.cell, run.matchmaker), {name: [] for name in TOLD})
        for name, value in told.items():
            own[name].append(value)
    rows = []
    for (cell, matchmaker), own in by.items():
        mean = {name: float(np.mean(values)) for name, values in own.items()}
        interval = {name: _interval(np.array(values)) for name, values in own.items()}
        ours = by.get((cell, OURS))
        below = ours is not None and matchmaker in KEEPING and lies_below(own, ours)
        rows.append(Compared(cell, matchmaker, mean, interval, below))
    return rows


def lies_below(one: dict[str, list[float]], ours: dict[str, list[float]]) -> bool:
    """Whether one matchmaker is nowhere worse than ours beyond noise, and somewhere better beyond noise."""
    signs = [_sign(np.array(one[name]) - np.array(ours[name]), float(np.mean(ours[name]))) for name in JUDGED]
    return min(signs) < 0 and max(signs) <= 0


def _sign(differences: np.ndarray[Any, Any], scale: float) -> int:
    mean = float(differences.mean())
    noise = max(_interval(differences), NOTICED * abs(scale))
    return 0 if abs(mean) <= noise else int(np.sign(mean))


def _interval(values: np.ndarray[Any, Any]) -> float:
    """Half the 95 % interval of the mean; without limit for a single value."""
    if len(values) < 2:
        return np.inf
    return float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def line_of(row: Compared) -> str:
    """One line of the printed table."""
    mean, interval = row.mean, row.interval
    return (
        f"{row.cell:30s} {row.matchmaker:10s} wait {mean['wait_p50']:6.1f} ±{interval['wait_p50']:<5.1f}"
        f"{mean['wait_p95']:7.1f} ±{interval['wait_p95']:<6.1f} spread {mean['spread_p50']:5.2f} "
        f"{mean['spread_p95']:5.2f} ±{interval['spread_p95']:<5.2f} law {mean['law']:6.2f} "
        f"longest {mean['wait_max']:5.0f} left {mean['unmatched']:4.0f} broken {mean['violations']:g}"
        f"{' LIES BELOW' if row.below else ''}"
    )


def run() -> Section:
    """6v6 at four rates of arrival, three seeds."""
    runs = [
        Run("6v6", "default", rate, "balanced", (), matchmaker, seed)
        for rate, matchmaker, seed in product((0.2, 1.0, 5.0, 20.0), (OURS, *KEEPING), (101, 102, 103))
    ]
    rows = compared(list(measured(runs, 2)))
    figures = []
    for ours in (row for row in rows if row.matchmaker == OURS):
        same = [row for row in rows if row.cell == ours.cell and row.matchmaker in KEEPING]
        for name, unit in (("wait_p50", "s"), ("wait_p95", "s"), ("spread_p95", "percentiles"), ("law", "")):
            best = min(same, key=lambda row: row.mean[name])
            figures.append(
                Figure(f"{ours.cell}: {name}", ours.mean[name], unit, None, False, best.mean[name], best.matchmaker)
            )
        below = sum(row.below for row in same)
        figures.append(Figure(f"{ours.cell}: matchmakers that lie below", below, "", 0.0, False, None, ""))
    return Section("Waits and spreads beside simple matchmakers", figures, [str(__doc__).replace("\n", " ")])


def main() -> None:
    """Run the cells that were asked for, and print a line for each matchmaker."""
    parser = argparse.ArgumentParser(prog="benchmarks.fronts", description=__doc__)
    listed = partial(str.split, sep=",")
    parser.add_argument("--shapes", type=listed, default=["6v6"], help=f"of {', '.join(SHAPES)}; default: 6v6")
    parser.add_argument("--populations", type=listed, default=["default"], help=f"of {', '.join(POPULATIONS)}")
    parser.add_argument("--rates", type=listed, default=["0.2", "1", "5", "20"], help="players a second")
    parser.add_argument("--presets", type=listed, default=["balanced"], help=f"of {', '.join(presets())}")
    parser.add_argument(
        "--matchmakers", type=listed, default=[OURS, *KEEPING], help=f"of {OURS}, {', '.join(others())}"
    )
    parser.add_argument("--policy", type=json.loads, default={}, help="options of the policy as JSON")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first-seed", type=int, default=101)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args()
    options = tuple(given.policy.items())
    runs = [
        Run(shape, population, float(rate), preset, options, matchmaker, seed)
        for shape, population, rate, preset, matchmaker, seed in product(
            *(given.shapes, given.populations, given.rates, given.presets, given.matchmakers),
            range(given.first_seed, given.first_seed + given.seeds),
        )
    ]
    results = []
    for result in measured(runs, given.processes):
        results.append(result)
        if len(results) % given.seeds == 0:
            print(line_of(compared(results[-given.seeds :])[0]), flush=True)
    rows = compared(results)
    below = [f"{row.matchmaker} in {row.cell}" for row in rows if row.below]
    print(f"lie below {OURS}: {', '.join(below) or 'none'}")
    if given.json:
        given.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
