"""What context columns cost `even` in speed."""

from __future__ import annotations

from functools import partial

import numpy as np

import evenmatch
from benchmarks.figure import Figure, Section, seconds_in_turn
from benchmarks.matches import Season, play
from evenmatch.history import History
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

SEASONS = Season(200_000, 20_000, 1, 2), Season(50_000, 20_000, 5, 2)
VALUES = (8, 3)  # of the columns
ROUNDS = 5


def run() -> Section:
    """The same matches with no context column, with one and with two, in turn."""
    figures = []
    for season in SEASONS:
        history = play(season)
        runs = [partial(loop.replay, rules, one, rules.newcomers(one.players)) for rules, one in _forms(history)]
        for repeated in runs:
            repeated()  # so that none of the timed runs compiles
        plain, *others = (len(history) / seconds / 1e3 for seconds in seconds_in_turn(runs, ROUNDS))
        figures.append(Figure(f"{season.form}, even, no context", plain, "thousand matches/s", None, True, None, ""))
        for columns, rate in enumerate(others, 1):
            text = f"{season.form}, even, {columns} context column{'s' if columns > 1 else ''}"
            within = 1.5 if columns == 2 else None
            figures.append(Figure(text, rate, "thousand matches/s", None, True, plain, "without context", within))
    return Section(
        "Context columns", figures, [f"Columns of {VALUES[0]} and of {VALUES[1]} values; {ROUNDS} runs in turn."]
    )


def _forms(history: History) -> list[tuple[Rules, History]]:
    rules, rng = evenmatch.rules("even"), np.random.default_rng(1)
    first, second = (rng.integers(0, values, len(history)) for values in VALUES)
    base = history.ladders + 1
    one = history.with_context(base + first[:, None])
    two = history.with_context(base + np.column_stack((first, VALUES[0] + second)))
    return [(rules, form) for form in (history, one, two)]
