"""Read a partition in pieces of whole matches, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evenmatch.errors import InputError
from evenmatch.tables.cells import known_columns
from evenmatch.tables.partitions import Partition, columns_to_read, opened
from evenmatch.tables.source import Source

PIECE = 1 << 20  # rows; row groups are read whole up to twice as many


@dataclass(frozen=True)
class MatchRows:
    """Adjacent rows of a partition: whole matches, where the rows of a match are adjacent.

    first  the row of the file, counted from 0, that is the first here
    share  of the partition that has been read with them
    """

    rows: pa.Table
    partition: Partition
    first: int
    share: float

    @property
    def source(self) -> Source:
        """The rows' place in the file, for messages."""
        lines = range(self.first + 1, self.first + len(self.rows) + 1)
        return Source(self.partition.address, f"{self.partition.name}, row", numbers=lines)

    def slice(self, start: int, count: int | None = None) -> MatchRows:
        """Some of the rows."""
        return MatchRows(self.rows.slice(start, count), self.partition, self.first + start, self.share)


class PartitionReader:
    """Reads partitions one after the other; warns of unknown columns once."""

    def __init__(self, piece: int = PIECE) -> None:
        self.piece = piece
        self._known: set[tuple[str, ...]] = set()

    def read(self, partition: Partition) -> Iterator[MatchRows]:
        """The rows of a partition in order. A match is never divided, however long it is.

        Raises UsageError for a missing file, InputError for one that is torn, is not Parquet or lacks a column.
        """
        held: list[MatchRows] = []  # the last match so far, which the next piece may continue
        for piece in self._pieces(partition):
            rest = piece
            if held:
                more = _run_length(piece.rows["match_id"], held[0].rows["match_id"][0])
                if more:
                    held.append(piece.slice(0, more))
                if more == len(piece.rows):
                    continue
                yield _joined(held)
                rest = piece.slice(more)
            cut = len(rest.rows) - _run_length(rest.rows["match_id"], rest.rows["match_id"][-1], backwards=True)
            if cut:
                yield rest.slice(0, cut)
            held = [rest.slice(cut)]
        if held:
            yield _joined(held)

    def _pieces(self, partition: Partition) -> Iterator[MatchRows]:
        with opened(partition) as file:
            names = tuple(file.schema_arrow.names)
            if names not in self._known:
                known_columns(file.schema_arrow.empty_table(), Source(partition.address))
                self._known.add(names)
            chosen = columns_to_read(names)
            first, total = 0, max(1, file.metadata.num_rows)
            for rows in _row_groups(file, self.piece, chosen):
                if len(rows):
                    yield MatchRows(_checked(rows, partition), partition, first, (first + len(rows)) / total)
                first += len(rows)
            if first == 0:
                raise InputError(f"{partition.address} has no rows; expected one row per player and match")


def _row_groups(file: Any, piece: int, columns: list[str] | None) -> Iterator[pa.Table]:  # noqa: ANN401 - pyarrow has no types
    """The rows of the file: a large row group in parts, small ones together."""
    together: list[int] = []
    sizes = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
    held = 0
    for index, size in enumerate(sizes):
        if together and held + size > piece:
            yield file.read_row_groups(together, columns=columns, use_threads=False)
            together, held = [], 0
        if size > 2 * piece:
            for batch in file.iter_batches(piece, row_groups=[index], columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch])
        else:
            together.append(index)
            held += size
    if together:
        yield file.read_row_groups(together, columns=columns, use_threads=False)


def _checked(rows: pa.Table, partition: Partition) -> pa.Table:
    """The rows without a column that repeats the ladder of the folder."""
    if not partition.ladder or "ladder" not in rows.column_names:
        return rows
    others = [name for name in pc.unique(rows["ladder"]).to_pylist() if str(name) != partition.ladder]
    if others:
        raise InputError(
            f"{partition.address}: a row has the ladder {others[0]!r}, the folder is of {partition.ladder!r}; "
            "expected the same"
        )
    return rows.drop_columns(["ladder"])


def _run_length(ids: pa.ChunkedArray, wanted: pa.Scalar, *, backwards: bool = False) -> int:
    """The number of rows at the begin (or at the end) of the column that are equal to `wanted`; empty ones are not."""
    size, window = len(ids), 64
    if not wanted.is_valid:
        return int(backwards)
    while True:
        part = ids.slice(max(0, size - window)) if backwards else ids.slice(0, window)
        equal = pc.fill_null(pc.equal(part, wanted), False).to_pylist()
        run = next((index for index, same in enumerate(reversed(equal) if backwards else equal) if not same), None)
        if run is not None or window >= size:
            return len(equal) if run is None else run
        window *= 8


def _joined(parts: list[MatchRows]) -> MatchRows:
    rows = pa.concat_tables([part.rows for part in parts]) if len(parts) > 1 else parts[0].rows
    return MatchRows(rows, parts[0].partition, parts[0].first, parts[-1].share)
