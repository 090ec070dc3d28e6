"""Backtest of partitioned Parquet: the same numbers as of one file, from sums, in bounded memory.

The files are read twice or more: once for what must be known beforehand (how many matches, when, which systems can rate
them), then to predict and learn, with as many variants at a time as their players' records fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError, UsageError
from evenmatch.lab.backtests import findings
from evenmatch.lab.backtests.backtest import (
    SEED,
    Backtest,
    By,
    Progress,
    StreamedMatches,
    named_systems,
    summed_up,
    variants_of,
    warm_up_of,
)
from evenmatch.lab.backtests.evaluation import refused_by, why_not_of
from evenmatch.lab.backtests.findings import Resamples, ScoredVariant, Variant
from evenmatch.lab.backtests.match_cells import CellDivision, days_of
from evenmatch.lab.backtests.streamed_scores import Reading, StreamedScores, changed, score
from evenmatch.lab.backtests.team_order import TELLING, order_counts, order_note, share_of
from evenmatch.partitioned.chunk import Chunk
from evenmatch.partitioned.preparation import prepare
from evenmatch.partitioned.stream import Selection, stream, streams_of
from evenmatch.tables.partitions import Partition

MEMORY = 1 << 30  # bytes for the records of players, of all variants that are judged in one reading


@dataclass
class _Survey:
    """The findings of one reading of all matches."""

    matches: int = 0
    players: int = 0
    ladders: tuple[str, ...] = ()
    days: NDArray[np.datetime64] = field(default_factory=lambda: np.empty(0, "datetime64[D]"))
    order: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))
    refused: dict[int, int] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)

    def add(self, chunk: Chunk, variants: Sequence[Variant]) -> None:
        """Count a chunk; refusals by the number of the variant."""
        history = chunk.history
        self.matches += len(chunk)
        self.players, self.ladders = chunk.players, chunk.ladders
        self.days = np.union1d(self.days, days_of(history.columns.time))
        self.order += order_counts(history)
        for number, variant in enumerate(variants):
            refused = refused_by(variant.rules, history)
            if refused:
                self.refused[number] = self.refused.get(number, 0) + len(refused)
                self.reasons.setdefault(number, next(iter(refused.values())))


@dataclass(frozen=True)
class BacktestPlan:
    """The variants to judge, and the matches as they were counted beforehand.

    variants  that can rate the matches;  left_out: others, with the reason
    """

    source: StreamedMatches
    warm_up: int
    reading: Reading
    variants: tuple[Variant, ...]
    left_out: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    def groups(self, least: int = 1) -> list[list[Variant]]:
        """The variants that are judged in one reading each; at least this number of groups if there are as many."""
        most = -(-len(self.variants) // least)
        return list(_groups(self.variants, self.reading.players, most))

    def conclude(self, scores: Sequence[StreamedScores], *, seed: int = SEED, notes: Sequence[str] = ()) -> Backtest:
        """The result, from the scores of all groups in their order. Raises InputError if they read other matches."""
        kinds = scores[0].kinds
        if any(other.kinds != kinds for other in scores):
            raise changed(self.source.name)
        division = self.reading.division
        division.kinds.update((kind, number) for number, kind in enumerate(kinds))
        cells = division.cells(division.order(), np.empty(0, np.int32))
        resamples = Resamples.of(cells, seed)
        scored = [each for part in scores for each in zip(part.sums, part.bins, part.seconds, strict=True)]
        results: list[ScoredVariant] = [
            findings.judged(variant, sums, bins, seconds, cells, resamples)
            for variant, (sums, bins, seconds) in zip(self.variants, scored, strict=True)
        ]
        return summed_up(
            self.source, self.warm_up, results, cells, resamples, self.left_out, notes=(*self.notes, *notes)
        )


def backtest_partitions(
    partitions: Sequence[Partition],
    by: By = None,
    *,
    name: str,
    warm_up: float = 0.5,
    selection: Selection | None = None,
    progress: Progress | None = None,
    seed: int = SEED,
    workers: int | None = None,
) -> Backtest:
    """Score the predictions of rating systems on partitions, as `backtest` does on matches in memory.

    partitions  of one ladder, or of ladders that share their files
    name        of the matches, for people
    Other arguments and errors as of `backtest` and `rate_partitions`; nothing is tuned, and there is no report.
    """
    report = progress or (lambda _what, _share: None)
    plan = plan_backtest(partitions, by, name=name, warm_up=warm_up, selection=selection, progress=report)
    groups = plan.groups()
    scores = [
        score(plan.reading, group, partial(_part_of, report, index, len(groups)), workers)
        for index, group in enumerate(groups)
    ]
    return plan.conclude(scores, seed=seed, notes=(_reading_note(len(groups)),))


def plan_backtest(
    partitions: Sequence[Partition],
    by: By,
    *,
    name: str,
    warm_up: float,
    selection: Selection | None,
    progress: Progress,
) -> BacktestPlan:
    """Read all matches once, and find what can be judged on them. Arguments as of `backtest_partitions`."""
    chosen = selection or Selection()
    streams = streams_of(partitions)
    if len(streams) > 1:
        raise UsageError(
            f"{name} has {len(streams)} ladders in folders of their own, whose matches are not in one order of time; "
            "choose one by --ladder"
        )
    variants = variants_of(named_systems(by), by)
    prepare()
    survey, source = _survey(partitions, chosen, variants, progress, name)
    early = warm_up_of(survey.matches, warm_up)
    able, left_out = _able(survey, variants, name)
    share = share_of(survey.order)
    division = CellDivision.of(survey.matches, early, survey.ladders, survey.days)
    reading = Reading(name, tuple(partitions), chosen, division, survey.players, share >= TELLING)
    notes = (order_note(share) if share >= TELLING else "",)
    return BacktestPlan(source, early, reading, tuple(able), tuple(left_out), notes)


def _survey(
    partitions: Sequence[Partition], selection: Selection, variants: Sequence[Variant], report: Progress, name: str
) -> tuple[_Survey, StreamedMatches]:
    survey, total = _Survey(), max(1, sum(partition.size for partition in partitions))
    with stream(partitions, selection) as source:
        with source.chunks() as chunks:
            for chunk in chunks:
                if len(chunk):
                    survey.add(chunk, variants)
                report("counting matches", source.bytes_read / total)
        if selection.pool:
            survey.ladders = ("default",)
        known = StreamedMatches(
            name, survey.matches, survey.players, survey.ladders, tuple(source.skipped), source.skipped_matches
        )
    return survey, known


def _able(survey: _Survey, variants: Sequence[Variant], name: str) -> tuple[list[Variant], list[tuple[str, str]]]:
    """Variants that can rate (nearly) all of the matches; a system that cannot with its defaults is left out."""
    able, left_out = [], []
    out: set[str] = set()
    for number, variant in enumerate(variants):
        reason = why_not_of(survey.refused.get(number, 0), survey.matches, survey.reasons.get(number, ""))
        if reason and variant.variant == "default":
            out.add(variant.system)
            left_out.append((variant.system, reason))
        elif reason and variant.system not in out:
            left_out.append((f"{variant.system} {variant.variant}", reason))
        elif variant.system not in out:
            able.append(variant)
    if not able:
        reasons = "; ".join(f"{system} {reason}" for system, reason in left_out)
        raise InputError(f"{name}: no system that was named can rate these matches: {reasons}")
    return able, left_out


def _groups(variants: Sequence[Variant], players: int, most: int) -> Iterator[list[Variant]]:
    """The variants that are judged in each reading: as fit into memory, and this number at most."""
    group: list[Variant] = []
    held = 0
    for variant in variants:
        size = variant.rules.system.state.itemsize * players
        if group and (held + size > MEMORY or len(group) == most):
            yield group
            group, held = [], 0
        group.append(variant)
        held += size
    yield group


def _part_of(report: Progress, index: int, count: int, what: str, share: float) -> None:
    report(what, (index + share) / count)


def _reading_note(groups: int) -> str:
    if groups == 1:
        return ""
    return f"the files were read {groups + 1} times, since the players of all variants do not fit into memory at once"
