"""Backtest partitioned Parquet in bounded memory, with the same results as for one file.

The files are read at least twice: first to count matches, players and periods and to find which systems can rate them,
then to predict and learn, with as many variants at a time as fit into memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.calibration import BINS
from evenmatch.compile_notice import load_kernels
from evenmatch.errors import InputError, UsageError
from evenmatch.history import Floats, History, Integers
from evenmatch.lab.backtests import scoring
from evenmatch.lab.backtests.backtest import (
    SEED,
    Backtest,
    By,
    Progress,
    StreamedMatches,
    named_systems,
    part_of,
    rateable_variants,
    summed_up,
    variants_of,
    warm_up_of,
)
from evenmatch.lab.backtests.evaluation import judge, rateable_history, refused_by, why_not_of
from evenmatch.lab.backtests.match_cells import CellDivision, count_before, days_of
from evenmatch.lab.backtests.scoring import Resamples, ScoredVariant, Variant
from evenmatch.lab.backtests.team_order import TELLING, order_counts, order_note, scrambled, share_of
from evenmatch.partitioned.chunk import Chunk
from evenmatch.partitioned.names import with_room
from evenmatch.partitioned.stream import Selection, stream, streams_of
from evenmatch.systems import loop
from evenmatch.systems.ladder_records import with_records
from evenmatch.systems.system import Records
from evenmatch.tables.partitions import Partition


class Reading(NamedTuple):
    """The matches to read, and the findings of the first reading.

    name      name of the matches, for messages
    players   number of players
    scramble  whether to put teams into a neutral order
    """

    name: str
    partitions: Sequence[Partition]
    selection: Selection
    division: CellDivision
    players: int
    scramble: bool


class StreamedScores(NamedTuple):
    """The scores of some variants: for each its sums by cell (C, 7), its calibration bins (C, BINS, 3), and seconds.

    kinds  of the cells, ascending; the same for all variants
    """

    kinds: list[int]
    sums: list[Floats]
    bins: list[Floats]
    seconds: list[float]


@dataclass
class _JudgedVariant:
    """A variant during a reading: its records, and its sums by cell in order of appearance."""

    variant: Variant
    state: Records
    ladders: Records
    offsets: Records
    sums: Floats
    bins: Floats
    seconds: float = 0.0

    @classmethod
    def begin(cls, variant: Variant, players: int, ladders: int) -> _JudgedVariant:
        """Start with newcomers."""
        rules = variant.rules
        records = (rules.newcomers(players), rules.ladders(max(1, ladders)), rules.offsets(0))
        return cls(variant, *records, np.zeros((0, 7)), np.zeros((0, BINS, 3)))

    def judge(self, history: History, cell: Integers, cells: int) -> None:
        """Predict the matches of a chunk and learn from them. cells: number of cells so far."""
        begin = time.perf_counter()
        self.sums = with_room(self.sums, cells)
        self.bins = with_room(self.bins, cells)
        rated = rateable_history(history, self.variant.rules)
        c = rated.columns

        def watch(start: int, stop: int, predicted: Floats) -> None:
            judge(c.team_start, c.place, start, stop, predicted, cell, self.sums, self.bins)

        rules = self.variant.rules
        self.ladders = with_records(self.ladders, rated.ladders + 1, rules.ladders)
        self.offsets = with_records(self.offsets, rated.offsets, rules.offsets)
        records = (self.state, self.ladders, self.offsets)
        loop.replay(rules, rated, *records, in_place=True, watch=watch)
        self.seconds += time.perf_counter() - begin


def score(
    reading: Reading,
    variants: Sequence[Variant],
    report: Callable[[str, float], None] | None = None,
    workers: int | None = None,
) -> StreamedScores:
    """Read all matches once; each variant predicts and learns them.

    workers  threads; None: one per core
    Raises InputError if the matches differ from those counted before.
    """
    for rules in {variant.system: variant.rules for variant in variants}.values():
        load_kernels(rules)
    division = replace(reading.division, kinds={})
    running = [_JudgedVariant.begin(variant, reading.players, len(division.ladders)) for variant in variants]
    read = _judge(reading, division, running, report or (lambda _what, _share: None), workers)
    if read != division.matches:
        raise changed(reading.name)
    order = division.order()
    return StreamedScores(
        sorted(division.kinds),
        [entry.sums[order] for entry in running],
        [entry.bins[order] for entry in running],
        [entry.seconds for entry in running],
    )


def _judge(
    reading: Reading,
    division: CellDivision,
    running: Sequence[_JudgedVariant],
    report: Callable[[str, float], None],
    workers: int | None,
) -> int:
    """Judge chunk by chunk; returns the number of matches."""
    first, total = 0, max(1, sum(partition.size for partition in reading.partitions))
    played = np.zeros(0, np.int64)
    with (
        stream(reading.partitions, reading.selection) as source,
        ThreadPoolExecutor(workers or os.cpu_count()) as pool,
        source.chunks() as chunks,
    ):
        for chunk in chunks:
            if not len(chunk):
                continue
            if not _is_known(chunk, reading, division, first):
                raise changed(reading.name)
            history = scrambled(chunk.history, first)[0] if reading.scramble else chunk.history
            played = with_room(played, chunk.players)
            fewest = np.empty(len(chunk), np.int64)
            count_before(chunk.history.match_slots, chunk.history.columns.player, played, fewest)
            cell = division.number(first, chunk.history, chunk.ladder, fewest)
            judges = [pool.submit(entry.judge, history, cell, len(division.kinds)) for entry in running]
            for done in judges:
                done.result()
            first += len(chunk)
            report(f"judging {len(running)} variants", source.bytes_read / total)
    return first


def _is_known(chunk: Chunk, reading: Reading, division: CellDivision, first: int) -> bool:
    """Whether this chunk fits the matches counted before."""
    ladders = 1 if reading.selection.pool else len(chunk.ladders)
    return (
        first + len(chunk) <= division.matches
        and chunk.players <= reading.players
        and ladders <= len(division.ladders)
        and bool(
            np.isin(days_of(chunk.history.columns.time).astype(f"datetime64[{division.unit}]"), division.periods).all()
        )
    )


def changed(name: str) -> InputError:
    """The error for files that changed between two readings."""
    return InputError(
        f"{name}: the matches have changed since they were counted; files must not change during the run, and must "
        "be the same on all machines"
    )


MEMORY = 1 << 30  # bytes for the player records of all variants judged in one reading


@dataclass
class _Survey:
    """The findings of the first reading."""

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
    """The variants to judge, and the matches as the first reading counted them.

    variants  those that can rate the matches;  left_out: the others, with reasons
    """

    source: StreamedMatches
    warm_up: int
    reading: Reading
    variants: tuple[Variant, ...]
    left_out: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    def groups(self, least: int = 1) -> list[list[Variant]]:
        """The groups of variants that share a reading, at least this many if there are enough variants."""
        most = -(-len(self.variants) // least)
        return list(_groups(self.variants, self.reading.players, most))

    def conclude(self, scores: Sequence[StreamedScores], *, seed: int = SEED, notes: Sequence[str] = ()) -> Backtest:
        """Build the result from the scores of all groups, in order. Raises InputError if they read other matches."""
        kinds = scores[0].kinds
        if any(other.kinds != kinds for other in scores):
            raise changed(self.source.name)
        division = self.reading.division
        division.kinds.update((kind, number) for number, kind in enumerate(kinds))
        cells = division.cells(division.order(), np.empty(0, np.int32))
        resamples = Resamples.of(cells, seed)
        scored = [each for part in scores for each in zip(part.sums, part.bins, part.seconds, strict=True)]
        results: list[ScoredVariant] = [
            scoring.judged(variant, sums, bins, seconds, cells, resamples)
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
    name        name of the matches, for messages
    Other arguments and errors as for `backtest` and `rate_partitions`, without tuning and without a report.
    """
    report = progress or (lambda _what, _share: None)
    plan = plan_backtest(partitions, by, name=name, warm_up=warm_up, selection=selection, progress=report)
    groups = plan.groups()
    scores = [
        score(plan.reading, group, partial(part_of, report, index, len(groups)), workers)
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
    """Read all matches once and find which variants can rate them. Arguments as for `backtest_partitions`."""
    chosen = selection or Selection()
    streams = streams_of(partitions)
    if len(streams) > 1:
        raise UsageError(
            f"{name} has {len(streams)} ladders in folders of their own, whose matches are not in one time order; "
            "choose one by --ladder"
        )
    variants = variants_of(named_systems(by), by)
    survey, source = _survey(partitions, chosen, variants, progress, name)
    early = warm_up_of(survey.matches, warm_up)
    reasons = [
        why_not_of(survey.refused.get(number, 0), survey.matches, survey.reasons.get(number, ""))
        for number in range(len(variants))
    ]
    able, left_out = rateable_variants(variants, reasons, name)
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


def _groups(variants: Sequence[Variant], players: int, most: int) -> Iterator[list[Variant]]:
    """Split the variants into groups of at most `most` that fit into memory together."""
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


def _reading_note(groups: int) -> str:
    if groups == 1:
        return ""
    return f"the files were read {groups + 1} times, since the players of all variants do not fit into memory at once"
