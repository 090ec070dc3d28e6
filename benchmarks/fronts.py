"""Wait against closeness of evenmatch and of the comparison matchmakers, cell by cell: `python -m benchmarks.fronts`.

A cell is a shape of match, a rate of arrivals, a population and a policy. All matchmakers get the same arrivals, and a
rival uses the policy of the cell. Figures are means over the seeds with a 95 % interval by Student's t.

A rival dominates a cell if it keeps all filters, is worse by more than 1 % in none of wait p50, wait p95 and spread
p95, and better beyond noise in at least one of them: the 95 % interval of the paired differences over the seeds
excludes 0, and the difference is more than 1 %. Its name has a + if it leaves more players waiting at the end, beyond
noise: waits are those of players who found a match.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks.figure import Figure, Section
from benchmarks.fronts_cell import (
    FIXED_RATES,
    POPULATIONS,
    Cell,
    Task,
    matchmakers,
    measure,
    read_shape,
)
from evenmatch.calibration import student
from evenmatch.matchmaking import presets

SHAPES = "duel,3v3,5v5,6v6,8v8,3x4,ffa8"
RATES = "0.1,0.2,0.5,1,2,5,10,20"
FIGURES = ("wait_p50", "wait_p95", "spread_p50", "spread_p95", "law", "longest", "unmatched", "violations", "matches")
JUDGED = ("wait_p50", "wait_p95", "spread_p95")
WORTH_IT = 0.01  # smallest difference that counts, as a share
OURS = "evenmatch"

Measured = dict[str, list[float | None]]  # the values of each figure, by seed


class Interval(NamedTuple):
    """Mean over the seeds, and half of the width of its 95 % interval; None where there is none."""

    mean: float | None
    half: float | None


class Front(NamedTuple):
    """What the matchmakers came to in one cell. runs: by matchmaker; dominating: names, with a + as the module says."""

    cell: Cell
    runs: dict[str, Measured]
    dominating: list[str]


def run() -> Section:
    """A short selection for the page of benchmarks: 6v6 at four rates."""
    cells = [Cell("6v6", rate, "default", "balanced") for rate in (0.2, 1.0, 5.0, 20.0)]
    figures = []
    for front in fronts(cells, keeping_filters(), range(1, 4), 3000, {}, 2):
        ours = front.runs[OURS]
        rival = best_rival(front)
        for name, unit in (("wait_p50", "s"), ("wait_p95", "s"), ("spread_p95", "percentiles"), ("law", "")):
            reference = None if rival is None else interval(front.runs[rival][name]).mean
            value = interval(ours[name]).mean
            if value is not None:
                label = f"{front.cell.shape}, {front.cell.rate:g} a second: {name.replace('_', ' ')}"
                figures.append(Figure(label, value, unit, None, False, reference, rival or ""))
        label = f"{front.cell.shape}, {front.cell.rate:g} a second"
        violations = float(sum(value or 0 for value in ours["violations"]))
        figures.append(Figure(f"{label}: filters broken", violations, "players", 0.0, False, None, ""))
        figures.append(Figure(f"{label}: rivals that dominate", len(front.dominating), "rivals", 0.0, False, None, ""))
    notes = [
        "Policy `balanced`, default scenario, means of three seeds; at least 3,000 players and 20 minutes each. The "
        "reference is the matchmaker of `simulate-queue --compare` with the lowest law among those that keep all "
        "filters. A rival dominates if it is nowhere worse in wait p50, wait p95 and spread p95, and somewhere better "
        "beyond noise. All cells: `python -m benchmarks.fronts`.",
    ]
    return Section("Wait against closeness", figures, notes)


def fronts(
    cells: Iterable[Cell],
    names: Sequence[str],
    seeds: Sequence[int],
    players: int,
    options: Mapping[str, object],
    processes: int,
) -> Iterator[Front]:
    """Measure the cells in parallel, and yield each when it is complete."""
    tasks = [Task(cell, name, seed, players, dict(options)) for cell in cells for name in names for seed in seeds]
    with ProcessPoolExecutor(processes) as pool:
        results = zip(tasks, pool.map(measure, tasks), strict=True)
        for cell, of_cell in groupby(results, key=lambda pair: pair[0].cell):
            runs: dict[str, Measured] = {}
            for task, figures in of_cell:
                measured = runs.setdefault(task.matchmaker, {figure: [] for figure in FIGURES})
                for figure in FIGURES:
                    measured[figure].append(figures[figure])
            yield Front(cell, runs, dominating(runs))


def dominating(runs: Mapping[str, Measured]) -> list[str]:
    """The rivals that dominate evenmatch, as the module says."""
    if OURS not in runs:
        return []
    ours, found = runs[OURS], []
    for name, rival in runs.items():
        if (
            name == OURS
            or any(rival["violations"])
            or any(None in side[key] for side in (ours, rival) for key in JUDGED)
        ):
            continue
        differences = [_difference(ours[key], rival[key]) for key in JUDGED]
        if all(relative <= WORTH_IT for relative, _ in differences) and any(
            relative < -WORTH_IT and sure for relative, sure in differences
        ):
            more, sure = _difference(ours["unmatched"], rival["unmatched"])
            found.append(name + ("+" if more > WORTH_IT and sure else ""))
    return found


def _difference(ours: Sequence[float | None], rival: Sequence[float | None]) -> tuple[float, bool]:
    """Mean difference as a share of our mean, and whether the interval of the paired differences excludes 0."""
    pairs = [(one, other) for one, other in zip(ours, rival, strict=True) if one is not None and other is not None]
    change = interval([other - one for one, other in pairs])
    base = statistics.fmean(one for one, _ in pairs)
    if not change.mean:
        return 0.0, False
    relative = change.mean / base if base else float("inf") * change.mean
    return relative, change.half is not None and abs(change.mean) > change.half


def interval(values: Sequence[float | None]) -> Interval:
    """Mean and 95 % interval over the seeds that have a value."""
    known = [value for value in values if value is not None]
    if not known:
        return Interval(None, None)
    if len(known) == 1:
        return Interval(known[0], None)
    error = statistics.stdev(known) / len(known) ** 0.5
    return Interval(statistics.fmean(known), student(len(known) - 1) * error)


def best_rival(front: Front) -> str | None:
    """The rival with the lowest law among those that broke no filter."""
    laws = {
        name: mean
        for name, measured in front.runs.items()
        if name != OURS and not any(measured["violations"]) and (mean := interval(measured["law"]).mean) is not None
    }
    return min(laws, key=laws.__getitem__) if laws else None


def keeping_filters() -> list[str]:
    """evenmatch and the rivals that keep all filters."""
    return [name for name, maker in matchmakers().items() if maker.keeps_filters]


def lines_of(front: Front) -> Iterator[str]:
    """A line for each matchmaker of a cell, and one that names those that dominate."""
    cell = front.cell
    for name, measured in front.runs.items():
        texts = [_text(interval(measured[figure])) for figure in FIGURES]
        cells = [text.rjust(width) for text, width in zip(texts, WIDTHS, strict=True)]
        print_name = name + ("!" if any(measured["violations"]) else "")
        yield f"{cell.name:<30} {print_name:<10} {' '.join(cells)}"
    yield f"{cell.name:<30} dominating evenmatch: {', '.join(front.dominating) or 'none'}"


WIDTHS = (12, 12, 11, 11, 11, 12, 12, 10, 10)


def _text(value: Interval) -> str:
    if value.mean is None:
        return "–"
    digits = 1 if abs(value.mean) < 100 else 0
    half = "" if value.half is None or not value.half else f"±{value.half:.{digits}f}"
    return f"{value.mean:,.{digits}f}{half}"


def data_of(front: Front) -> dict[str, object]:
    """A cell for the JSON file: means, intervals and the values of each seed."""
    runs = {}
    for name, measured in front.runs.items():
        figures = {figure: (*interval(values), values) for figure, values in measured.items()}
        runs[name] = {
            figure: {"mean": mean, "half": half, "values": values} for figure, (mean, half, values) in figures.items()
        }
    return {**front.cell._asdict(), "runs": runs, "best_rival": best_rival(front), "dominating": front.dominating}


def cells_of(
    shapes: Sequence[str], rates: Sequence[float], populations: Sequence[str], policies: Sequence[str]
) -> list[Cell]:
    """All cells of a grid; a population with its own rate has one for all rates."""
    cells = [
        Cell(shape, FIXED_RATES.get(population, rate), population, preset)
        for population in populations
        for shape in shapes
        for rate in rates
        for preset in policies
    ]
    return list(dict.fromkeys(cells))


def _listed(parser: argparse.ArgumentParser, what: str, text: str, known: Iterable[str]) -> list[str]:
    names, all_known = text.split(","), list(known)
    if unknown := [name for name in names if name not in all_known]:
        parser.error(f"--{what}: {unknown[0]!r}; expected some of {', '.join(all_known)}")
    return names


def main() -> None:
    """Measure the cells that the options describe, and print and store their figures."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.fronts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default="6v6", help=f"such as {SHAPES}; 3x4 are four teams of three")
    parser.add_argument("--rates", default=RATES, help="players a second")
    parser.add_argument("--populations", default="default", help=f"of {','.join(POPULATIONS)}")
    parser.add_argument("--presets", default="balanced", help=f"of {','.join(presets())}")
    parser.add_argument("--matchmakers", default=",".join(keeping_filters()), help=f"of {','.join(matchmakers())}")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=1, metavar="N")
    parser.add_argument("--minutes-for-players", type=int, default=3000, metavar="N", help="arrivals in each run")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parser.add_argument("--policy", default="{}", metavar="JSON", help="options of the policy to replace")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures of all cells and seeds")
    given = parser.parse_args()
    names = _listed(parser, "matchmakers", given.matchmakers, matchmakers())
    cells = cells_of(
        [shape for shape in given.shapes.split(",") if read_shape(shape)],
        [float(rate) for rate in given.rates.split(",")],
        _listed(parser, "populations", given.populations, POPULATIONS),
        _listed(parser, "presets", given.presets, presets()),
    )
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    options = json.loads(given.policy)
    heads = [figure.replace("_", " ").rjust(width) for figure, width in zip(FIGURES, WIDTHS, strict=True)]
    print(f"{'cell':<30} {'matchmaker':<10} {' '.join(heads)}", flush=True)
    done = []
    for front in fronts(cells, names, seeds, given.minutes_for_players, options, given.processes):
        print("\n".join(lines_of(front)), flush=True)
        done.append(data_of(front))
        if given.json is not None:  # after each cell, since a large grid takes hours
            facts = {"seeds": list(seeds), "players": given.minutes_for_players, "policy": options}
            given.json.write_text(json.dumps(facts | {"cells": done}, indent=1) + "\n", encoding="utf-8")
    broken = [cell for cell in done if _broken_by_us(cell)]
    print(f"{len(done)} cells; filters broken by evenmatch in {len(broken)}", file=sys.stderr)


def _broken_by_us(cell: Mapping[str, object]) -> bool:
    runs = cell["runs"]
    assert isinstance(runs, dict)
    return OURS in runs and bool(runs[OURS]["violations"]["mean"])


if __name__ == "__main__":
    main()
