"""Tuning and backtests: seconds, and what a second core gains."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import evenmatch
from benchmarks.figure import ROOT, Figure, Section, seconds_in_turn
from benchmarks.matches import DUELS, as_table, play
from benchmarks.rate import texts
from evenmatch import systems
from evenmatch.lab.backtests.backtest import backtest
from evenmatch.lab.backtests.tune import TuningResult, tune
from evenmatch.tables import MatchTable

FOOTBALL = ROOT.parent / "shared" / "data" / "intl_football.parquet"
PASSES = 57  # of trueskill
TRIALS = 12  # of prav
ROUNDS = 3
ENDLESS = 1e9  # seconds: the number of trials ends the search
TUNED = ("trueskill", "prav")


def run() -> Section:
    """Tuning on a million duels, then a backtest of all systems on recorded matches."""
    matches = as_table(play(DUELS), texts(DUELS.matches), texts(DUELS.players))
    for name in TUNED:
        search(matches.take(slice(0, 2)), name, 1, 1)  # compiles
    together, alone = seconds_in_turn([partial(search, matches, "trueskill", PASSES, w) for w in (2, 1)], ROUNDS)
    pair, single = seconds_in_turn([partial(search, matches, "prav", TRIALS, w) for w in (2, 1)], ROUNDS)
    figures = [
        Figure(f"tuning trueskill, {PASSES} passes", together, "s", 10, False, alone, "on one core"),
        Figure(f"tuning prav, {TRIALS} passes: both cores", single / pair, "times as fast", 1.8, True, None, ""),
    ]
    notes = [
        "Tuning: `evenmatch.lab.backtests.tune.tune` on a million duels among 50,000 players; every pass rates all "
        f"of them and judges the last three quarters. {ROUNDS} runs, two workers and one in turn, equal numbers "
        "of passes.",
    ]
    if FOOTBALL.exists():
        football = evenmatch.read(FOOTBALL)
        every = systems.names()
        notes.append(
            f"Backtest: `evenmatch.lab.backtests.backtest.backtest` of {len(football):,} international football "
            f"matches by {len(every)} systems with their defaults and presets, kernels compiled before, "
            f"{ROUNDS} runs. The reference is the time of rating and judging alone, summed over the variants: the "
            "rest is the intervals of all metrics over all parts of the matches."
        )
        figures.append(judge_all(football, every))
    else:
        notes.append(f"**No backtest: {FOOTBALL.name} is not there.**")
    return Section("Tuning and backtests", figures, notes)


def search(matches: MatchTable, system: str, passes: int, workers: int) -> TuningResult:
    """Tuning by so many passes."""
    return tune(matches, systems.find(system), ENDLESS, most=passes, workers=workers)


def judge_all(matches: MatchTable, names: list[str]) -> Figure:
    """A backtest of these systems."""
    backtest(matches, names)
    runs = [timed_backtest(matches, names) for _ in range(ROUNDS)]
    whole, bare = np.array(runs).T
    return Figure(f"backtest of {len(names)} systems, {len(matches):,} matches", whole, "s", 10, False, bare, "rating")


def timed_backtest(matches: MatchTable, names: list[str]) -> tuple[float, float]:
    """Seconds of a backtest, and those of rating and judging, summed over its variants."""
    start = time.perf_counter()
    scores = backtest(matches, names).scores
    return time.perf_counter() - start, float(scores["seconds"].to_numpy().sum())
