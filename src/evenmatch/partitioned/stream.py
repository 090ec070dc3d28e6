"""A stream of chunks from the partitions of one ladder, or of ladders that share files."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import pyarrow as pa

from evenmatch.errors import BadRowsError, InputError, RowProblem, UnknownNameError, UsageError
from evenmatch.partitioned.chunk import PIECE, Chunk, ChunkBuilder, read_rows
from evenmatch.partitioned.names import MatchIds, Names
from evenmatch.systems.system import Rules
from evenmatch.tables.partitions import Partition, opened
from evenmatch.times import SECONDS, TimeFormat

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Generator[T]:
    """Yield the items; a thread produces each while the one before is in use. Close the generator to stop it."""
    with ThreadPoolExecutor(1, "evenmatch-ahead") as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item


LISTED_AT_MOST = 10_000  # reasons why matches were skipped


@dataclass(frozen=True)
class Selection:
    """Which matches to read.

    ladder       the name of one ladder; None: all ladders
    pool         rate all ladders as one
    as_of        microseconds since the epoch; later matches are ignored
    skip_bad     skip bad matches instead of stopping
    piece        number of rows to read at a time
    form         how `played_at` is written
    """

    ladder: str | None = None
    pool: bool = False
    as_of: int | None = None
    skip_bad: bool = False
    piece: int = PIECE
    form: TimeFormat = SECONDS


class Stream:
    """The chunks of some partitions. One thread reads ahead, another builds the next chunk."""

    def __init__(self, partitions: Sequence[Partition], selection: Selection, folder: Path) -> None:
        """Start at the first partition. folder: for temporary files."""
        self.partitions, self.selection = partitions, selection
        self.builder = ChunkBuilder(
            partitions[0].ladder,
            pool=selection.pool,
            skip_bad=selection.skip_bad,
            form=selection.form,
        )
        self._ids = MatchIds(folder)
        self.skipped: list[RowProblem] = []
        self.skipped_matches = 0
        self.later = False
        self.bytes_read = 0.0

    @property
    def names(self) -> Names:
        """The players' names by number."""
        return self.builder.names

    @contextmanager
    def chunks(self, by: Rules | None = None) -> Iterator[Iterator[Chunk]]:
        """Yield the selected matches chunk by chunk.

        Matches that `by` cannot rate are skipped or raise BadRowsError. After the last chunk, raises InputError if a
        match id is used twice.
        """
        warned: set[tuple[str, ...]] = set()
        size = self.selection.piece
        pieces = (piece for partition in self.partitions for piece in read_rows(partition, size, warned))
        with (
            closing(ahead(pieces)) as rows,
            closing(ahead(self.builder.build(self.builder.assemble(piece)) for piece in rows)) as chunks,
        ):
            yield self._wanted(chunks, by)

    def close(self) -> None:
        """Close the temporary files."""
        self._ids.close()

    def _wanted(self, built: Iterator[Chunk], by: Rules | None) -> Iterator[Chunk]:
        ladders: tuple[str, ...] = ()
        finished = 0.0
        partition = self.partitions[0]
        matches = 0
        for chunk in built:
            ladders = chunk.ladders
            self._skip(chunk.skipped, chunk.skipped_matches)
            self._ids.add(chunk.match_id)
            wanted = self._selected(chunk)
            wanted = wanted if by is None else self._rateable(wanted, by)
            if chunk.rows.partition is not partition:
                finished, partition = finished + partition.size, chunk.rows.partition
            self.bytes_read = finished + partition.size * chunk.rows.share
            matches += len(wanted)
            yield wanted
            if self.later:
                break
        self._ids.check(self.partitions, _ids_of)
        ladder = self.selection.ladder
        if ladder is not None and ladder not in ladders:
            raise UnknownNameError("ladder", ladder, ladders)
        if not matches:
            if self.later:
                raise UsageError("--as-of is before the first match; expected a time at or after it")
            raise BadRowsError(self.partitions[0].address, self.skipped, all_bad=True)

    def _selected(self, chunk: Chunk) -> Chunk:
        wanted = chunk
        if self.selection.ladder is not None:
            code = chunk.ladders.index(self.selection.ladder) if self.selection.ladder in chunk.ladders else -1
            wanted = wanted.take(wanted.ladder == code)
        if self.selection.as_of is not None and len(wanted):
            included = wanted.history.columns.time <= self.selection.as_of
            self.later = not included.all()
            wanted = wanted.take(included)
        if self.selection.pool:
            wanted = replace(wanted, ladder=np.zeros(len(wanted), np.int32), ladders=("default",))
        return wanted

    def _rateable(self, chunk: Chunk, by: Rules) -> Chunk:
        refused = list(by.system.refusals(chunk.history.columns, by.parameters))
        if not refused:
            return chunk
        source = chunk.rows.source
        lines = source.lines([int(chunk.first[number]) for number, _ in refused])
        problems = [
            RowProblem(lines[int(chunk.first[number])], chunk.match_id[number].as_py(), reason, source.unit)
            for number, reason in refused
        ]
        if not self.selection.skip_bad:
            raise BadRowsError(chunk.rows.place, problems)
        good = np.ones(len(chunk), bool)
        good[[number for number, _ in refused]] = False
        self._skip(problems, int((~good).sum()))
        return chunk.take(good)

    def _skip(self, problems: Sequence[RowProblem], matches: int) -> None:
        self.skipped += problems[: max(0, LISTED_AT_MOST - len(self.skipped))]
        self.skipped_matches += matches


@contextmanager
def stream(partitions: Sequence[Partition], selection: Selection) -> Iterator[Stream]:
    """Open a stream. Its temporary files are removed when the block ends.

    Raises InputError where the temporary files cannot be written.
    """
    with TemporaryDirectory(prefix="evenmatch-", ignore_cleanup_errors=True) as folder:
        source = Stream(partitions, selection, Path(folder))
        try:
            yield source
        finally:
            source.close()


def streams_of(partitions: Sequence[Partition]) -> list[list[Partition]]:
    """Group partitions by ladder; one group if the rows name the ladder."""
    if not partitions:
        raise InputError("no partitions given; expected one or more")
    ladders = dict.fromkeys(partition.ladder for partition in partitions)
    return [[partition for partition in partitions if partition.ladder == ladder] for ladder in ladders]


def chosen_partitions(partitions: Sequence[Partition], selection: Selection) -> list[Partition]:
    """The partitions to read. Raises UnknownNameError or UsageError if the selection does not match them."""
    ladders = list(dict.fromkeys(partition.ladder for partition in partitions if partition.ladder))
    if ladders and selection.pool:
        raise UsageError(
            "--pool-ladders: ladders in folders of their own cannot be rated as one, because their matches are not in "
            "one time order; expected files with a column ladder"
        )
    if not ladders or selection.ladder is None:
        return list(partitions)
    if selection.ladder not in ladders:
        raise UnknownNameError("ladder", selection.ladder, ladders)
    return [partition for partition in partitions if partition.ladder == selection.ladder]


def _ids_of(partition: Partition) -> Iterator[tuple[int, pa.Array]]:
    with opened(partition) as file:
        first = 0
        for batch in file.iter_batches(PIECE, columns=["match_id"], use_threads=False):
            yield first, batch["match_id"].cast(pa.large_string()).fill_null("")
            first += len(batch)
