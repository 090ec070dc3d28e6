"""Backtest of partitioned Parquet: the same numbers as of one file, from sums, in bounded memory.

The files are read twice or more: once for what must be known beforehand (how many matches, when, which systems can rate
them), then to predict and learn, with as many variants at a time as their players' records fit into memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenmatch.calibration import BINS
from evenmatch.compile_notice import load_kernels
from evenmatch.errors import InputError, UsageError
from evenmatch.history import Floats, History, Integers
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
from evenmatch.lab.backtests.evaluation import rateable_history, refused_by, why_not_of
from evenmatch.lab.backtests.findings import Resamples, ScoredVariant, Variant
from evenmatch.lab.backtests.match_cells import Division, days_of
from evenmatch.lab.backtests.metrics import judge
from evenmatch.lab.backtests.team_order import TELLING, order_counts, order_note, scrambled, share_of
from evenmatch.partitioned.chunk import Chunk
from evenmatch.partitioned.preparation import prepare
from evenmatch.partitioned.shape import count_before
from evenmatch.partitioned.stream import Selection, stream, streams_of
from evenmatch.systems import loop
from evenmatch.systems.system import Records
from evenmatch.tables.partitions import Partition

Number = TypeVar("Number", bound=np.generic)
MEMORY = 1 << 30  # bytes for the records of players, of all variants that are judged in one reading


@dataclass
class _Survey:
    """What one reading of all matches shows."""

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


@dataclass
class _Running:
    """A variant while the matches pass: its records and sums by cell, in the order in which cells appear."""

    variant: Variant
    state: Records
    ladders: Records
    sums: Floats
    bins: Floats
    seconds: float = 0.0

    @classmethod
    def begin(cls, variant: Variant, survey: _Survey) -> _Running:
        """Begin with newcomers."""
        rules = variant.rules
        records = (rules.newcomers(survey.players), rules.ladders(max(1, len(survey.ladders))))
        return cls(variant, *records, np.zeros((0, 7)), np.zeros((0, BINS, 3)))

    def judge(self, history: History, cell: Integers, cells: int) -> None:
        """Predict and learn the matches of a chunk. cells: how many there are so far."""
        begin = time.perf_counter()
        self.sums = _with_room(self.sums, cells)
        self.bins = _with_room(self.bins, cells)
        rated = rateable_history(history, self.variant.rules)
        c = rated.columns

        def watch(start: int, stop: int, predicted: Floats) -> None:
            judge(c.team_start, c.place, start, stop, predicted, cell, self.sums, self.bins)

        loop.replay(self.variant.rules, rated, self.state, self.ladders, in_place=True, watch=watch)
        self.seconds += time.perf_counter() - begin


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
    chosen = selection or Selection()
    report = progress or (lambda _what, _share: None)
    streams = streams_of(partitions)
    if len(streams) > 1:
        raise UsageError(
            f"{name} has {len(streams)} ladders in folders of their own, whose matches are not in one order of time; "
            "choose one by --ladder"
        )
    variants = variants_of(named_systems(by), by)
    prepare()
    survey, source = _survey(partitions, chosen, variants, report, name)
    early = warm_up_of(survey.matches, warm_up)
    variants, left_out = _able(survey, variants, name)
    for rules in {variant.system: variant.rules for variant in variants}.values():
        load_kernels(rules)
    share = share_of(survey.order)
    division = Division.of(survey.matches, early, survey.ladders, survey.days)
    running: list[_Running] = []
    groups = list(_groups(variants, survey.players))
    for index, group in enumerate(groups):
        here = [_Running.begin(variant, survey) for variant in group]
        part = partial(_part_of, report, index, len(groups))
        _judge(partitions, chosen, here, division, scramble=share >= TELLING, report=part, workers=workers)
        for one in here:
            one.state = one.ladders = np.empty(0, one.state.dtype)
        running += here
    order = division.order()
    cells = division.cells(order, np.empty(0, np.int32))
    resamples = Resamples.of(cells, seed)
    results: list[ScoredVariant] = [
        findings.judged(one.variant, one.sums[order], one.bins[order], one.seconds, cells, resamples) for one in running
    ]
    notes = (order_note(share) if share >= TELLING else "", _reading_note(len(groups)))
    return summed_up(source, early, results, cells, resamples, left_out, notes=notes)


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


def _groups(variants: Sequence[Variant], players: int) -> Iterator[list[Variant]]:
    """The variants that are judged in each reading."""
    group: list[Variant] = []
    held = 0
    for variant in variants:
        size = variant.rules.system.state.itemsize * players
        if group and held + size > MEMORY:
            yield group
            group, held = [], 0
        group.append(variant)
        held += size
    yield group


def _judge(
    partitions: Sequence[Partition],
    selection: Selection,
    running: Sequence[_Running],
    division: Division,
    *,
    scramble: bool,
    report: Callable[[str, float], None],
    workers: int | None,
) -> None:
    """Read all matches once, and have the variants predict and learn them."""
    first, total = 0, max(1, sum(partition.size for partition in partitions))
    played = np.zeros(0, np.int64)
    with (
        stream(partitions, selection) as source,
        ThreadPoolExecutor(workers or os.cpu_count()) as pool,
        source.chunks() as chunks,
    ):
        for chunk in chunks:
            if not len(chunk):
                continue
            history = scrambled(chunk.history, first)[0] if scramble else chunk.history
            played = _with_room(played, chunk.players)
            fewest = np.empty(len(chunk), np.int64)
            count_before(chunk.history.match_slots, chunk.history.columns.player, played, fewest)
            cell = division.number(first, chunk.history, chunk.ladder, fewest)
            judges = [pool.submit(one.judge, history, cell, len(division.kinds)) for one in running]
            for done in judges:
                done.result()
            first += len(chunk)
            report(f"judging {len(running)} variants", source.bytes_read / total)


def _with_room(array: NDArray[Number], length: int) -> NDArray[Number]:
    """The array with zeros at its end, so that it has at least this length; twice as long if it must grow."""
    if len(array) >= length:
        return array
    room = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room


def _part_of(report: Progress, index: int, count: int, what: str, share: float) -> None:
    report(what, (index + share) / count)


def _reading_note(groups: int) -> str:
    if groups == 1:
        return ""
    return f"the files were read {groups + 1} times, since the players of all variants do not fit into memory at once"
