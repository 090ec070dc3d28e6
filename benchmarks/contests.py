"""Contests of hundreds: what bounding the rivals or the sweeps of a free-for-all gains in speed, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

import evenmatch
from benchmarks.figure import Figure, Section, seconds_in_turn
from benchmarks.matches import Season, play
from evenmatch.history import History
from evenmatch.lab.backtests.evaluation import LOG_LOSS, MATCHES, replay_and_judge
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

LARGE, SMALL = Season(200, 3_000, 1, 700), Season(20_000, 4_000, 1, 8)
ROUNDS = 2
# By contest and system, a parameter and its values; the first is no bound.
BOUNDS: Mapping[Season, Mapping[str, tuple[str, Sequence[int]]]] = {
    LARGE: {
        "elommr": ("rivals", (100_000, 500, 200, 100, 32)),
        "even": ("rivals", (100_000, 500, 100, 32)),
        "trueskill": ("sweeps", (1000, 5, 2)),
    },
    SMALL: {"trueskill": ("sweeps", (1000, 5, 2, 1))},
}


def run() -> Section:
    """Each system without a bound and with several."""
    figures = [figure for season, systems in BOUNDS.items() for figure in bounded(season, systems)]
    notes = [
        f"{LARGE.matches} free-for-alls of {LARGE.teams} among {LARGE.players:,} players, and {SMALL.matches:,} of "
        f"{SMALL.teams} among {SMALL.players:,}, on one core, from newcomers, expected scores included (for which all "
        f"pairs count); {ROUNDS} runs in turn. The log loss is that of the pairs of the second half, predicted "
        "before each contest.",
    ]
    return Section("Free-for-alls with a bound", figures, notes)


def bounded(season: Season, systems: Mapping[str, tuple[str, Sequence[int]]]) -> Iterator[Figure]:
    """Speed and log loss of each system with each of its values."""
    history = play(season)
    for name, (parameter, values) in systems.items():
        every = [evenmatch.rules(name, None, **{parameter: value}) for value in values]
        runs = [partial(loop.replay, rules, history, rules.newcomers(history.players)) for rules in every]
        for repeated in runs:
            repeated()  # so that none of the timed runs compiles
        rates = [len(history.columns.player) / seconds / 1e3 for seconds in seconds_in_turn(runs, ROUNDS)]
        for value, rules, rate in zip(values, every, rates, strict=True):
            is_bound = value != values[0]
            title = f"{season.form}, {name}, {f'{value} {parameter}' if is_bound else 'no bound'}"
            text = f"{title}: log loss {log_loss(rules, history):.4f}"
            reference = (rates[0], "without a bound") if is_bound else (None, "")
            yield Figure(text, rate, "thousand players/s", None, True, *reference)


def log_loss(rules: Rules, history: History) -> float:
    """Mean log loss of the pairs of the second half, every contest with weight one."""
    cell = np.where(np.arange(len(history)) < len(history) // 2, -1, 0).astype(np.int32)
    sums, _ = replay_and_judge(rules, history, cell, 1, with_bins=False)
    return float(sums[0, LOG_LOSS] / sums[0, MATCHES])
