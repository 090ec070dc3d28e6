"""Backtest: which rating system would have predicted a game's recorded matches best.

Every match is predicted before it is learned from. Each system is tried with its defaults, with each preset and, if
wanted, tuned on the warm-up part alone; all are judged on the same matches, those after the warm-up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from evenmatch import systems
from evenmatch.compile_notice import compile_notice, is_cached, load_kernels
from evenmatch.errors import InputError, UsageError
from evenmatch.lab import findings
from evenmatch.lab.cells import Cells, divide
from evenmatch.lab.findings import Judged, Resamples, Variant
from evenmatch.lab.judging import rateable_history, replay_and_judge, why_not
from evenmatch.lab.metrics import judge
from evenmatch.lab.order import neutral
from evenmatch.systems.system import Rules, System
from evenmatch.tables import Frame, MatchTable, table_of
from evenmatch.tables.display import as_html

LEAST = 100  # judged matches, below which nothing is ranked
SEED = 1
OUT_OF_RANGE = "its ratings leave the range of numbers on these matches"

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """What a backtest found, as Arrow tables. All but `segments` are over the matches after the warm-up.

    scores       one row per system and variant, best log loss first: system, variant, matches, log_loss, log_loss_low,
                 log_loss_high, brier, accuracy, calibration_slope, seconds, parameters (JSON), then the other intervals
                 and three_way_log_loss (null where the system gives draws no probability)
    segments     the same metrics by `by` (all, warm-up, ladder, experience, period) and `group`
    reliability  predicted, observed, low, high, matches: points of each variant's reliability curve
    against_best difference of log loss to the best variant's on the same matches, with its interval
    trials       what tuning tried: system, trial, log_loss, parameters (JSON), seconds
    left_out     systems that could not rate these matches, and why
    chosen       the variant that stands for each system: tuned, else given, else default, else its best; best first
    warm_up      matches of the warm-up
    """

    matches: MatchTable
    variants: tuple[Variant, ...]
    scores: pa.Table
    segments: pa.Table
    reliability: pa.Table
    against_best: pa.Table
    trials: pa.Table
    left_out: tuple[tuple[str, str], ...]
    chosen: tuple[Variant, ...]
    warm_up: int
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"backtest of {len(self.chosen)} systems on {self.matches!r}: {self.verdict[0]}"

    def _repr_html_(self) -> str:
        """The same for a notebook, with the scores of every variant."""
        columns = ["system", "variant", "log_loss", "log_loss_low", "log_loss_high", "accuracy", "calibration_slope"]
        return as_html(repr(self), self.scores.select(columns))

    @property
    def verdict(self) -> list[str]:
        """The findings in plain words, the most important first."""
        from evenmatch.lab.verdict import verdict

        return verdict(self)

    def report(self, path: Path | str, *, players: Sequence[str] = (), command: str = "") -> None:
        """Write the findings as one HTML file that needs no network.

        players  whose rating paths are drawn; none: those with the most matches
        command  how to reproduce it, as it is shown
        Raises UsageError where the file cannot be written or the extra `lab` is not installed, UnknownNameError for a
        player who is not there.
        """
        from evenmatch.lab.report import write_report

        write_report(self, Path(path), players=players, command=command)


def backtest(
    matches: MatchTable | Frame,
    by: Sequence[str | Rules] | str | Rules | None = None,
    *,
    warm_up: float = 0.5,
    tune: float = 0.0,
    trials: Path | None = None,
    progress: Progress | None = None,
    seed: int = SEED,
    workers: int | None = None,
) -> Backtest:
    """Predict recorded matches with several systems, and judge the predictions.

    matches   a table, or a data frame in the tidy long form
    by        systems by name, by path of a file that defines one, or as rules, whose parameters are then tried besides
              the defaults and presets (as the variant "given"); None: all systems there are
    warm_up   share of the matches, 0 to 0.9, that is learned from but not judged
    tune      seconds of tuning, shared equally by the systems; 0: none. It sees only the warm-up part
    trials    a folder in which tuning keeps what it tried, so that an interrupted run goes on where it was
    progress  called with what is being done and the share of it that is done
    workers   threads; None: one for each core
    Raises UnknownNameError for an unknown system, UsageError for other bad arguments, InputError where so few matches
    are left to judge that a ranking would be noise, or where no system can rate them.
    """
    matches = table_of(matches)
    early = _warm_up(matches, warm_up, tune)
    say = progress or (lambda _what, _share: None)
    matches, word = neutral(matches)
    if by is not None and not by:
        raise UsageError("no system was named; accepted is one or more")
    by = [by] if isinstance(by, str | Rules) else by
    named = [one if isinstance(one, Rules) else Rules.of(systems.find(one)) for one in by or systems.names()]
    found = list(dict.fromkeys(rules.system for rules in named))
    for system in found:
        if any(other.name == system.name for other in found if other is not system):
            raise UsageError(f"two systems are called {system.name!r}; accepted are different names")
    able, left_out = _able(matches, found)
    variants = [
        Variant(system.name, preset or "default", Rules.of(system, preset))
        for system in able
        for preset in (None, *system.presets)
    ]
    variants += _given([one for one in by or () if isinstance(one, Rules) and one.system in able])
    variants, unable = _rateable(matches, variants)
    left_out += unable
    tuned, tried, notes = _tuned(matches, early, able, tune, trials, say, seed, workers)
    cells = divide(matches, early)
    drawn = Resamples.of(cells, seed)
    every = _judge_all(matches, [*variants, *tuned], cells, drawn, say, workers)
    left_out += [(f"{one.variant.system} {one.variant.variant}", OUT_OF_RANGE) for one in every if one.out_of_range]
    judged = sorted((one for one in every if not one.out_of_range), key=lambda one: findings.mean_log_loss(one, cells))
    if not judged:
        raise InputError(f"no system could be judged: {OUT_OF_RANGE}")
    chosen = _chosen([one.variant for one in judged])
    best = next(one for one in judged if one.variant is chosen[0])
    return Backtest(
        matches=matches,
        variants=tuple(one.variant for one in judged),
        scores=pa.Table.from_pylist([one.score for one in judged], schema=findings.SCORES),
        segments=pa.Table.from_pylist([row for one in judged for row in one.segments], schema=findings.SEGMENTS),
        reliability=pa.Table.from_pylist([row for one in judged for row in one.points], schema=findings.RELIABILITY),
        against_best=findings.against_best(judged, best, cells, drawn),
        trials=pa.Table.from_pylist(tried, schema=findings.TRIALS),
        left_out=tuple(left_out),
        chosen=chosen,
        warm_up=early,
        notes=tuple(filter(None, (word, *notes))),
    )


def _warm_up(matches: MatchTable, share: float, tune: float) -> int:
    """How many matches are the warm-up. Raises UsageError or InputError where that leaves nothing to go by."""
    if not 0.0 <= share <= 0.9:
        raise UsageError(f"warm_up={share:g}: accepted is a share from 0 to 0.9")
    if not 0.0 <= tune < float("inf"):
        raise UsageError(f"tune={tune:g}: accepted is a number of seconds, 0 or more")
    early = int(len(matches) * share)
    if len(matches) - early < LEAST:
        raise InputError(
            f"{len(matches):,} match{'' if len(matches) == 1 else 'es'}, {len(matches) - early:,} of them after the "
            f"warm-up: too few to tell systems apart; accepted are {LEAST} or more after the warm-up"
        )
    if tune and early < LEAST:
        raise InputError(f"a warm-up of {early} matches: too few to tune on; accepted are {LEAST} or more")
    return early


def _given(rules: Sequence[Rules]) -> list[Variant]:
    """Variants of parameters that were given."""
    counted: dict[str, int] = {}
    variants = []
    for one in rules:
        number = counted[one.system.name] = counted.get(one.system.name, 0) + 1
        variants.append(Variant(one.system.name, "given" if number == 1 else f"given {number}", one))
    return variants


def _tuned(
    matches: MatchTable,
    early: int,
    able: Sequence[System],
    seconds: float,
    trials: Path | None,
    say: Progress,
    seed: int,
    workers: int | None,
) -> tuple[list[Variant], list[dict[str, object]], list[str]]:
    """Each system tuned on the warm-up part: variants, what was tried, and what to know of it."""
    variants: list[Variant] = []
    tried: list[dict[str, object]] = []
    notes: list[str] = []
    if seconds:
        from evenmatch.lab.tune import tune

        part = matches.take(slice(0, early))
        for at, system in enumerate(able):
            result = tune(
                part,
                system,
                seconds / len(able),
                trials=trials,
                progress=partial(_part_of, say, at, len(able)),
                workers=workers,
                seed=seed,
            )
            variants.append(Variant(system.name, "tuned", result.rules))
            tried += result.trials
            notes += result.notes
    return variants, tried, list(dict.fromkeys(notes))


def _part_of(say: Progress, at: int, count: int, what: str, share: float) -> None:
    """Tell of one of so many equal parts of the work."""
    say(what, (at + share) / count)


def _chosen(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variant that stands for each system: the tuned one, else the given, else the default, else its best."""
    stands: dict[str, Variant] = {}
    for wanted in ("tuned", "given", "default", ""):
        for variant in variants:
            if variant.variant == wanted or not wanted:
                stands.setdefault(variant.system, variant)
    return tuple(variant for variant in variants if stands[variant.system] is variant)


def _able(matches: MatchTable, found: Sequence[System]) -> tuple[list[System], list[tuple[str, str]]]:
    """The systems that can rate (nearly) all of these matches, and why the others cannot."""
    able, left_out = [], []
    for system in found:
        reason = why_not(matches.history, Rules.of(system))
        if reason:
            left_out.append((system.name, reason))
        else:
            able.append(system)
    if not able:
        told = "; ".join(f"{name} {reason}" for name, reason in left_out)
        raise InputError(f"{matches.source.name}: no system that was named can rate these matches: {told}")
    return able, left_out


def _rateable(matches: MatchTable, variants: Sequence[Variant]) -> tuple[list[Variant], list[tuple[str, str]]]:
    """The variants whose parameters can rate (nearly) all of these matches, and why the others cannot."""
    reasons = [why_not(matches.history, one.rules) for one in variants]
    told = zip(variants, reasons, strict=True)
    left_out = [(f"{one.system} {one.variant}", reason) for one, reason in told if reason]
    return [one for one, reason in zip(variants, reasons, strict=True) if not reason], left_out


def _judge_all(
    matches: MatchTable,
    variants: Sequence[Variant],
    cells: Cells,
    drawn: Resamples,
    say: Progress,
    workers: int | None,
) -> list[Judged]:
    """Every variant's predictions."""
    _compile(matches, variants, say)
    done = 0

    def run(variant: Variant) -> Judged:
        nonlocal done
        history = rateable_history(matches.history, variant.rules)
        start = time.perf_counter()
        sums, bins = replay_and_judge(variant.rules, history, cells.of, len(cells))
        seconds = time.perf_counter() - start
        one = findings.judged(variant, sums, bins, seconds, cells, drawn)
        done += 1
        say(f"judged {variant.system} {variant.variant}", done / len(variants))
        return one

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return list(pool.map(run, variants))


def _compile(matches: MatchTable, variants: Sequence[Variant], say: Progress) -> None:
    """Have every system's kernels loaded, so that the seconds of its variants are those of rating."""
    first = matches.history.take(slice(0, 1))
    every = list({variant.system: variant.rules for variant in variants}.values())
    for rules in every:
        say(f"compiling {rules.system.name}", 0.0)
        load_kernels(rules)
    with nullcontext() if is_cached(judge) else compile_notice("the measures"):
        replay_and_judge(every[0], first, np.zeros(1, np.int32), 1)
