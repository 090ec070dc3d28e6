"""One reading of partitions for a backtest: variants predict and learn all matches, with sums by cell."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenmatch.calibration import BINS
from evenmatch.compile_notice import load_kernels
from evenmatch.errors import InputError
from evenmatch.history import Floats, History, Integers
from evenmatch.lab.backtests.evaluation import rateable_history
from evenmatch.lab.backtests.findings import Variant
from evenmatch.lab.backtests.match_cells import CellDivision, days_of
from evenmatch.lab.backtests.metrics import judge
from evenmatch.lab.backtests.team_order import scrambled
from evenmatch.partitioned.chunk import Chunk
from evenmatch.partitioned.preparation import prepare
from evenmatch.partitioned.shape import count_before
from evenmatch.partitioned.stream import Selection, stream
from evenmatch.systems import loop
from evenmatch.systems.system import Records
from evenmatch.tables.partitions import Partition

Number = TypeVar("Number", bound=np.generic)


class Reading(NamedTuple):
    """The matches to read, and what had to be known of all of them beforehand.

    name      of the matches, for people
    players   how many play
    scramble  whether teams are put into a neutral order
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
    """A variant while the matches pass: its records and sums by cell, in the order in which cells appear."""

    variant: Variant
    state: Records
    ladders: Records
    sums: Floats
    bins: Floats
    seconds: float = 0.0

    @classmethod
    def begin(cls, variant: Variant, players: int, ladders: int) -> _JudgedVariant:
        """Begin with newcomers."""
        rules = variant.rules
        records = (rules.newcomers(players), rules.ladders(max(1, ladders)))
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


def score(
    reading: Reading,
    variants: Sequence[Variant],
    report: Callable[[str, float], None] | None = None,
    workers: int | None = None,
) -> StreamedScores:
    """Read all matches once, and have these variants predict and learn them.

    workers  threads; None: one per core
    Raises InputError if the matches are not those that were counted before.
    """
    prepare()
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
            played = _with_room(played, chunk.players)
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
    """Whether this chunk can belong to the matches that were counted."""
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
    """The error of a reading that found other matches than those that were counted."""
    return InputError(
        f"{name}: the matches are not those that were counted before; files must stay as they are during the run, and "
        "be the same on all machines"
    )


def _with_room(array: NDArray[Number], length: int) -> NDArray[Number]:
    """The array with zeros at its end, so that it has at least this length; twice as long if it must grow."""
    if len(array) >= length:
        return array
    room = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
