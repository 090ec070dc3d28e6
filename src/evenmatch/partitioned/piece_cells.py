"""The columns of a piece of rows as arrays, where they are plain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats, Integers
from evenmatch.partitioned.names import Names
from evenmatch.partitioned.text import hash_texts, run_starts, text_of
from evenmatch.tables import columns
from evenmatch.tables.cells import FLAGS, NUMBERS, read_number
from evenmatch.tables.columns import Faults


class PieceCells:
    """The columns of a piece of rows, as arrays."""

    def __init__(self, rows: pa.Table) -> None:
        self.held: Mapping[str, pa.ChunkedArray] = dict(zip(rows.column_names, rows.columns, strict=True))
        self.count = len(rows)
        self.nothing = np.full(self.count, np.nan)

    @property
    def complete(self) -> bool:
        """Whether the needed columns have no empty cell and are of types that the kernels read."""
        needed = [self.held[name] for name in ("match_id", "played_at", "team", "player")]
        texts = [column for column in needed if column is not self.held["played_at"]]
        return all(column.null_count == 0 for column in needed) and all(_is_name(column.type) for column in texts)

    def matches(self) -> tuple[NDArray[np.int64] | None, pa.Array]:
        """The first row of each match, then the number of rows; and the matches' ids. None if one is empty."""
        text, held = text_of(self.held["match_id"])
        starts = np.empty(self.count + 1, np.int64)
        count = run_starts(held, starts)
        starts[count] = self.count
        starts = starts[: count + 1].copy()
        heads = text.take(pa.array(starts[:-1]))
        if (held.offsets[starts[:-1] + 1] == held.offsets[starts[:-1]]).any():
            return None, heads
        return starts, heads

    def team_labels(self, names: Names) -> NDArray[np.int64] | None:
        """A number for each row's team, equal where the labels are; None if a label is empty."""
        column = self.held["team"]
        if pa.types.is_dictionary(column.type):
            encoded = one_dictionary(column)
            if "" in encoded.dictionary.to_pylist() or len(pc.unique(encoded.dictionary)) < len(encoded.dictionary):
                return None
            return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, held = text_of(column)
        if (held.offsets[1:] == held.offsets[:-1]).any():
            return None
        hashes = np.empty(self.count, np.uint64)
        hash_texts(held, names.key, names.key2, hashes)
        return hashes.view(np.int64)

    def places(self, faults: Faults) -> Integers:
        """The place of each row, 0 for an empty cell."""
        column = self.held["place"]
        if column.type == pa.int32() and not column.null_count and pc.min(column).as_py() > 0:
            values: Integers = column.to_numpy()
            return values
        return columns.places(column, faults)

    def numbers(self, faults: Faults) -> dict[str, Floats]:
        """The optional columns of numbers; `nothing` for those that are absent."""
        return {
            name: read_number(self.held[name], name, faults) if name in self.held else self.nothing for name in NUMBERS
        }

    def flags(self, name: str, faults: Faults) -> Flags:
        """A column of flags."""
        if name not in self.held:
            return np.full(self.count, FLAGS[name])
        return columns.flags(self.held[name], name, FLAGS[name], faults)


def one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column of several dictionaries as one array with one."""
    combined = column.unify_dictionaries().combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _is_name(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))
