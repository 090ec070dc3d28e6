"""What each part of `even` brings on the recorded matches, and what its defaults are worth on a game they never saw.

Prints two tables in Markdown, from the Parquet files in ../shared/data (ARGS: --data FOLDER, --only NAMES):

- ablations: the second half's log loss of each game, as `even` is and with one part of it taken out;
- leave one game out: multipliers of its parameters chosen on all games but one, and scored on that one.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np

import evenmatch
from evenmatch.calibration import calibration_slopes
from evenmatch.lab.backtests.evaluation import DECIDED, HITS, LOG_LOSS, MATCHES, replay_and_judge
from evenmatch.systems import even
from evenmatch.systems.experts import records
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
EXPERTS = ("STEADY", "QUICK", "WIDE", "RESULTS")
GRID = {"deviation": (0.8, 1.0, 1.25), "drift": (0.7, 1.0, 1.4), "idle_drift": (0.5, 1.0, 2.0), "margin": (0.8, 1.0)}


@contextmanager
def replaced(module: ModuleType, values: Mapping[str, object]) -> Iterator[None]:
    """Give globals of a module other values while the context lasts."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def experts(**values: float) -> AbstractContextManager[None]:
    """Give all four experts these values."""
    return replaced(even, {name: getattr(even, name)._replace(**values) for name in EXPERTS})


def constants(**values: float) -> AbstractContextManager[None]:
    """Give ladders other beginnings."""
    return replaced(records, values)


PARTS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "no margin": lambda: experts(margin=0.0),
    "no first side": lambda: constants(SIDE_VARIANCE=0.0),
    "no worth of players more": lambda: constants(BODY=0.0, BODY_VARIANCE=0.0),
    "no mean of newcomers": lambda: constants(ENTRY_VARIANCE=0.0),
    "no experience": lambda: constants(EXPERIENCE_VARIANCE=0.0),
    "no offsets by ladder": lambda: constants(OFFSET=0.0),
    "margins always trusted": lambda: constants(TRUST_VARIANCE=0.0),
    "no pull of a pause (π 0)": lambda: experts(pull=0.0),
    "no shared error (ρ 0)": lambda: experts(shared=0.0),
    "teams by their sum (α 0)": lambda: experts(share=0.0),
    "teams by their mean (α 1)": lambda: experts(share=1.0),
    "experts in equal parts": lambda: constants(WEIGHT_VARIANCE=0.0),
}


class Score:
    """The predictions of the second half: log loss, accuracy, calibration slope."""

    def __init__(self, matches: MatchTable, rules: Rules) -> None:
        count = len(matches)
        cell = np.where(np.arange(count) < count // 2, -1, 0).astype(np.int32)
        sums, bins = replay_and_judge(rules, matches.history, cell, 1)
        self.loss = float(sums[0, LOG_LOSS] / sums[0, MATCHES])
        self.accuracy = float(sums[0, HITS] / sums[0, DECIDED])
        self.slope = float(calibration_slopes(bins)[0])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of Parquet files")
    parser.add_argument("--only", default="", help="games, by name without ending, separated by commas")
    parser.add_argument("--skip-leave-out", action="store_true", help="only the ablations")
    given = parser.parse_args()
    files = [
        file for file in sorted(given.data.glob("*.parquet")) if not given.only or file.stem in given.only.split(",")
    ]
    if not files:
        parser.error(f"no Parquet file in {given.data}")
    games = {file.stem: evenmatch.read(file).pooled() for file in files}
    ablations(games)
    if not given.skip_leave_out:
        leave_out(games)


def ablations(games: Mapping[str, MatchTable]) -> None:
    """Log loss as it is, and the rise without each part, in ten-thousandths."""
    print("|  |", " | ".join(games), "|\n| --- |", " | ".join("---:" for _ in games), "|")
    whole = {name: Score(matches, evenmatch.rules("even")) for name, matches in games.items()}
    print("| log loss |", " | ".join(f"{score.loss:.4f}" for score in whole.values()), "|")
    print("| accuracy |", " | ".join(f"{score.accuracy:.1%}" for score in whole.values()), "|")
    print("| calibration slope |", " | ".join(f"{score.slope:.2f}" for score in whole.values()), "|")
    for preset in ("plain", "results", "performance"):
        rules = evenmatch.rules("even", preset)
        print(f"| preset `{preset}` |", " | ".join(rises(games, rules, whole)), "|")
    for part, without in PARTS.items():
        with without():
            print(f"| {part} |", " | ".join(rises(games, evenmatch.rules("even"), whole)), "|", flush=True)
    print()


def rises(games: Mapping[str, MatchTable], rules: Rules, whole: Mapping[str, Score]) -> list[str]:
    """By how much the log loss of each game is above that of the whole, in ten-thousandths."""
    return [f"{1e4 * (Score(matches, rules).loss - whole[name].loss):+.0f}" for name, matches in games.items()]


def leave_out(games: Mapping[str, MatchTable]) -> None:
    """Choose the multipliers on the other games, by the mean relative log loss, and score them on each."""
    choices = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]
    losses = {
        name: np.array([Score(matches, evenmatch.rules("even", None, **choice)).loss for choice in choices])
        for name, matches in games.items()
    }
    middle = choices.index(dict.fromkeys(GRID, 1.0))
    print("| game | chosen on the others | log loss | with the defaults |\n| --- | --- | ---: | ---: |")
    for name in games:
        others = np.mean([losses[other] / losses[other][middle] for other in games if other != name], axis=0)
        best = int(others.argmin())
        chosen = ", ".join(f"{key} {value:g}" for key, value in choices[best].items() if value != 1) or "the defaults"
        print(f"| {name} | {chosen} | {losses[name][best]:.4f} | {losses[name][middle]:.4f} |")


if __name__ == "__main__":
    main()
