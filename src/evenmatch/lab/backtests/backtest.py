"""Backtest: measure which rating system would have predicted recorded matches best.

Each match is predicted before it changes the ratings. Each system runs with its defaults, with each preset and, on
request, with parameters tuned on the warm-up part alone. All are scored on the same matches, those after the warm-up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evenmatch import systems
from evenmatch.compile_notice import compile_notice, is_cached, load_kernels
from evenmatch.errors import InputError, RowProblem, UsageError, needing
from evenmatch.history import Floats, History, Integers
from evenmatch.lab.backtests import scoring, without_context
from evenmatch.lab.backtests.evaluation import judge, rateable_history, replay_and_judge, why_not
from evenmatch.lab.backtests.match_cells import MatchCells, divide
from evenmatch.lab.backtests.scoring import Resamples, ScoredVariant, Variant
from evenmatch.lab.backtests.team_order import neutral
from evenmatch.lab.backtests.workers import Threads, Workers
from evenmatch.progress import shown_progress
from evenmatch.systems.duel import DuelSystem
from evenmatch.systems.system import Rules, System
from evenmatch.tables import Frame, MatchTable, table_of
from evenmatch.tables.display import as_html

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LEAST = 100  # fewest scored matches for a ranking
SEED = 1
OUT_OF_RANGE = "its ratings leave the range of numbers on these matches"

Progress = Callable[[str, float], None]
One = str | type[DuelSystem] | Rules
By = Sequence[One] | One | None


@dataclass(frozen=True)
class StreamedMatches:
    """Matches that were read in chunks and are not kept: their number and names.

    name     address of the matches;  count: number of matches;  players: number of players on all ladders
    skipped  the first reasons why matches were left out;  skipped_matches: number of these matches
    """

    name: str
    count: int
    players: int
    ladders: tuple[str, ...]
    skipped: tuple[RowProblem, ...] = ()
    skipped_matches: int = 0

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """Results of a backtest as Arrow tables. All but `segments` are over the matches after the warm-up.

    scores       one row per system and variant, best log loss first: system, variant, matches, log_loss, log_loss_low,
                 log_loss_high, brier, accuracy, calibration_slope, seconds, parameters (JSON), then the other intervals
                 and three_way_log_loss (null if the system does not predict draws)
    segments     metrics as in `scores` by `by` (all, warm-up, ladder, experience, period) and `group`
    reliability  predicted, observed, low, high, matches: points of each variant's reliability curve
    against_best difference of log loss to that of chosen[0] on the same matches, with its interval
    against_best_default  the same to the best of the systems with their defaults; empty if none ran with them
    trials       trials of tuning: system, trial, log_loss, parameters (JSON), seconds
    left_out     systems that could not rate these matches, with the reason
    chosen       one variant per system: tuned, else given, else default, else its best; best first
    warm_up      number of matches in the warm-up
    context      what context columns are worth to the systems that read them: system, variant, matches (without, with
                 one alone, with a ladder for each value), log_loss, and the difference to that with all columns
    """

    matches: MatchTable | StreamedMatches
    variants: tuple[Variant, ...]
    scores: pa.Table
    segments: pa.Table
    reliability: pa.Table
    against_best: pa.Table
    against_best_default: pa.Table
    trials: pa.Table
    left_out: tuple[tuple[str, str], ...]
    chosen: tuple[Variant, ...]
    warm_up: int
    notes: tuple[str, ...] = field(default=())
    context: pa.Table = field(default_factory=without_context.CONTEXT.empty_table)

    def __repr__(self) -> str:
        best = self.chosen[0]
        return f"backtest of {len(self.chosen)} systems on {self.matches!r}; best: {best.system}, {best.variant}"

    def plot(self) -> Figure:
        """Plotly figure of the log loss of every variant with its interval, the best on top. Needs the extra `lab`."""
        with needing("lab", "a plot"):
            from evenmatch.lab import charts
        return charts.log_losses(self.scores)

    def _repr_html_(self) -> str:
        """HTML for notebooks: summary and scores of every variant."""
        columns = ["system", "variant", "log_loss", "log_loss_low", "log_loss_high", "accuracy", "calibration_slope"]
        return as_html(repr(self), self.scores.select(columns))


def backtest(
    matches: MatchTable | Frame,
    by: By = None,
    *,
    warm_up: float = 0.5,
    tune: float = 0.0,
    trials: Path | None = None,
    progress: Progress | None = None,
    seed: int = SEED,
    workers: int | Workers | None = None,
) -> Backtest:
    """Predict recorded matches with several systems and score the predictions.

    matches   a table, or a data frame in the tidy long form
    by        systems by name, by path of a file that defines one, as a DuelSystem, or as rules, whose parameters are
              scored as the variant "given" in addition to defaults and presets; None: all systems
    warm_up   share of the matches, 0 to 0.9, that is rated but not scored
    tune      seconds of tuning on the warm-up part, shared equally by the systems; 0: none
    trials    folder for the trials of tuning, so that an interrupted run can be resumed
    progress  called with the name of a step and the share of it that is done; None: shown on terminals, in notebooks
    workers   number of threads (None: one per core), or Workers that replay the matches elsewhere, such as a cluster's
    Raises UnknownNameError for an unknown system, UsageError for other invalid arguments, InputError if too few
    matches remain for a ranking or no system can rate them.
    """
    matches = table_of(matches)
    warm_up_matches = warm_up_of(len(matches), warm_up, tune)
    matches, note = neutral(matches)
    variants = variants_of(named_systems(by), by)
    reasons = [why_not(matches.history, variant.rules) for variant in variants]
    variants, left_out = rateable_variants(variants, reasons, matches.source.name)
    able = list(dict.fromkeys(variant.rules.system for variant in variants))
    pool = Threads(workers) if workers is None or isinstance(workers, int) else workers
    try:
        with nullcontext(progress) if progress else shown_progress() as report:
            tuned, tried, notes = _tuned(matches, warm_up_matches, able, tune, trials, report, seed, pool)
            cells = divide(matches, warm_up_matches)
            resamples = Resamples.of(cells, seed)
            results = _judge_all(matches, [*variants, *tuned], cells, resamples, report, pool)

            def judge_form(variant: Variant, history: History) -> ScoredVariant:
                sums, bins, seconds = replay_variant(variant.rules, (history, cells.of, len(cells)))
                return scoring.judged(variant, sums, bins, seconds, cells, resamples)

            context = without_context.compare(matches, results, judge_form, cells, resamples)
    finally:
        if pool is not workers:
            pool.shutdown(cancel_futures=True)
    found = summed_up(matches, warm_up_matches, results, cells, resamples, left_out, tried, (note, *notes))
    return replace(found, context=context)


def named_systems(by: By) -> list[System]:
    """The systems to score, each once. Raises UsageError if none is given, or if two have the same name."""
    if by is not None and not by:
        raise UsageError("no system was named: at least one is needed")
    given = [by] if isinstance(by, str | type | Rules) else by
    named = [item if isinstance(item, Rules) else Rules.of(systems.find(item)) for item in given or systems.names()]
    unique = list(dict.fromkeys(rules.system for rules in named))
    for system in unique:
        if any(other.name == system.name for other in unique if other is not system):
            raise UsageError(f"two systems are called {system.name!r}: names must be different")
    return unique


def variants_of(able: Sequence[System], by: By) -> list[Variant]:
    """Each system with its defaults and presets, and the rules that were given."""
    variants = [
        Variant(system.name, preset or "default", Rules.of(system, preset))
        for system in able
        for preset in (None, *system.presets)
    ]
    given = [by] if isinstance(by, str | type | Rules) else by
    return variants + _given([item for item in given or () if isinstance(item, Rules) and item.system in able])


def summed_up(
    matches: MatchTable | StreamedMatches,
    warm_up: int,
    results: Sequence[ScoredVariant],
    cells: MatchCells,
    resamples: Resamples,
    left_out: Sequence[tuple[str, str]],
    trials: Sequence[dict[str, object]] = (),
    notes: Sequence[str] = (),
) -> Backtest:
    """Build the tables of a backtest. Raises InputError if no variant could be scored."""
    beyond = [result.variant for result in results if result.out_of_range]
    judged = sorted(
        (result for result in results if not result.out_of_range),
        key=lambda result: scoring.mean_log_loss(result, cells),
    )
    if not judged:
        raise InputError(f"no system could be judged: {OUT_OF_RANGE}")
    chosen = _chosen([result.variant for result in judged])
    best = next(result for result in judged if result.variant is chosen[0])
    best_default = next((result for result in judged if result.variant.variant == "default"), None)
    return Backtest(
        matches=matches,
        variants=tuple(result.variant for result in judged),
        scores=pa.Table.from_pylist([result.score for result in judged], schema=scoring.SCORES),
        segments=pa.Table.from_pylist([row for result in judged for row in result.segments], schema=scoring.SEGMENTS),
        reliability=pa.Table.from_pylist(
            [row for result in judged for row in result.points], schema=scoring.RELIABILITY
        ),
        against_best=scoring.against(judged, best, cells, resamples),
        against_best_default=scoring.against(judged, best_default, cells, resamples),
        trials=pa.Table.from_pylist(list(trials), schema=scoring.TRIALS),
        left_out=(*left_out, *((f"{variant.system} {variant.variant}", OUT_OF_RANGE) for variant in beyond)),
        chosen=chosen,
        warm_up=warm_up,
        notes=tuple(filter(None, notes)),
    )


def warm_up_of(matches: int, share: float, tune: float = 0.0) -> int:
    """Number of warm-up matches. Raises UsageError or InputError if too few matches remain."""
    if not 0.0 <= share <= 0.9:
        raise UsageError(f"warm_up={share:g}: must be a share from 0 to 0.9")
    if not 0.0 <= tune < float("inf"):
        raise UsageError(f"tune={tune:g}: must be a number of seconds, 0 or more")
    early = int(matches * share)
    if matches - early < LEAST:
        raise InputError(
            f"{matches:,} match{'' if matches == 1 else 'es'}, {matches - early:,} of them after the "
            f"warm-up: too few to compare systems; at least {LEAST} are needed after the warm-up"
        )
    if tune and early < LEAST:
        raise InputError(f"a warm-up of {early} matches: too few to tune on; at least {LEAST} are needed")
    return early


def _given(rules: Sequence[Rules]) -> list[Variant]:
    counted: dict[str, int] = {}
    variants = []
    for given in rules:
        number = counted[given.system.name] = counted.get(given.system.name, 0) + 1
        variants.append(Variant(given.system.name, "given" if number == 1 else f"given {number}", given))
    return variants


def _tuned(
    matches: MatchTable,
    early: int,
    capable: Sequence[System],
    seconds: float,
    trials: Path | None,
    report: Progress,
    seed: int,
    workers: Workers,
) -> tuple[list[Variant], list[dict[str, object]], list[str]]:
    """Tune each system that declares ranges on the warm-up part; return variants, trials and notes."""
    variants: list[Variant] = []
    tried: list[dict[str, object]] = []
    notes: list[str] = []
    if seconds:
        from evenmatch.lab.backtests.tune import ranges_of, tune

        part = matches.take(slice(0, early))
        tunable = [system for system in capable if ranges_of(system)]
        notes += [f"{system.name} declares no ranges to tune within" for system in capable if system not in tunable]
        for index, system in enumerate(tunable):
            result = tune(
                part,
                system,
                seconds / len(tunable),
                trials=trials,
                progress=partial(part_of, report, index, len(tunable)),
                workers=workers,
                seed=seed,
            )
            variants.append(Variant(system.name, "tuned", result.rules))
            tried += result.trials
            notes += result.notes
    return variants, tried, list(dict.fromkeys(notes))


def part_of(report: Progress, index: int, count: int, what: str, share: float) -> None:
    """Report the progress of one of several equal parts."""
    report(what, (index + share) / count)


def _chosen(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """One variant per system: the tuned one, else the given, else the default, else its best."""
    stands: dict[str, Variant] = {}
    for wanted in ("tuned", "given", "default", ""):
        for variant in variants:
            if variant.variant == wanted or not wanted:
                stands.setdefault(variant.system, variant)
    return tuple(variant for variant in variants if stands[variant.system] is variant)


def rateable_variants(
    variants: Sequence[Variant], reasons: Sequence[str], name: str
) -> tuple[list[Variant], list[tuple[str, str]]]:
    """The variants that can rate (nearly) all matches, and the names of the others with the reasons.

    reasons  why each variant cannot; empty if it can. A system whose defaults cannot is left out entirely
    """
    able, left_out = [], []
    out: set[str] = set()
    for variant, reason in zip(variants, reasons, strict=True):
        if reason and variant.variant == "default":
            out.add(variant.system)
            left_out.append((variant.system, reason))
        elif reason and variant.system not in out:
            left_out.append((f"{variant.system} {variant.variant}", reason))
        elif variant.system not in out:
            able.append(variant)
    if not able:
        listed = "; ".join(f"{system} {reason}" for system, reason in left_out)
        raise InputError(f"{name}: none of the systems named can rate these matches: {listed}")
    return able, left_out


def _judge_all(
    matches: MatchTable,
    variants: Sequence[Variant],
    cells: MatchCells,
    resamples: Resamples,
    report: Progress,
    workers: Workers,
) -> list[ScoredVariant]:
    """Replay the history with every variant; the results in the order of the variants."""
    _compile(matches, variants, report)
    shared = workers.share((matches.history, cells.of, len(cells)))
    left: dict[Future[tuple[Floats, Floats, float]], int] = {
        workers.submit(replay_variant, variant.rules, shared): index for index, variant in enumerate(variants)
    }
    results: dict[int, ScoredVariant] = {}
    while left:
        done, _ = wait(left, return_when=FIRST_COMPLETED)
        for future in done:
            index = left.pop(future)
            variant = variants[index]
            sums, bins, seconds = future.result()
            results[index] = scoring.judged(variant, sums, bins, seconds, cells, resamples)
            report(f"judged {variant.system} {variant.variant}", len(results) / len(variants))
    return [results[index] for index in range(len(variants))]


def replay_variant(rules: Rules, over: tuple[History, Integers, int]) -> tuple[Floats, Floats, float]:
    """Replay a history and score its predictions. Returns sums and bins by cell, and the seconds that it took.

    over  the history, the cell of each match, and the number of cells
    """
    whole, cell, cells = over
    history = rateable_history(whole, rules)
    load_kernels(rules, in_context=history.contexts > 0)
    start = time.perf_counter()
    sums, bins = replay_and_judge(rules, history, cell, cells)
    return sums, bins, time.perf_counter() - start


def _compile(matches: MatchTable, variants: Sequence[Variant], report: Progress) -> None:
    """Load the kernels of every system, so that measured seconds do not include compilation."""
    first = matches.history.take(slice(0, 1))
    systems_rules = list({variant.system: variant.rules for variant in variants}.values())
    for rules in systems_rules:
        report(f"compiling {rules.system.name}", 0.0)
        load_kernels(rules, in_context=first.contexts > 0)
    with nullcontext() if is_cached(judge) else compile_notice("the measures", judge, judge):
        replay_and_judge(systems_rules[0], first, np.zeros(1, np.int32), 1)
