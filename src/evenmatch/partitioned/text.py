"""Texts of an Arrow column as the arrays that kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.partitioned.compiled import compiled
from evenmatch.partitioned.siphash import Bytes, siphash

Offsets = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class Text(NamedTuple):
    """N texts in UTF-8: text i is data[offsets[i]:offsets[i + 1]]."""

    offsets: Offsets
    data: Bytes


def text_of(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, Text]:
    """The column as one array of large_string, and its memory for kernels. It must have no empty cell (null)."""
    texts = column.cast(pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if isinstance(texts, pa.ChunkedArray):  # an empty column stays chunked
        texts = pa.array([], pa.large_string())
    _, offsets, data = texts.buffers()
    if not len(texts):
        return texts, Text(np.zeros(1, np.int64), np.empty(0, np.uint8))
    window = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return texts, Text(window, held)


@compiled
def hash_texts(text: Text, key: np.uint64, key2: np.uint64, out: Hashes) -> None:
    """The first 64 bits of the hash of each text."""
    for row in range(len(out)):
        out[row] = siphash(text.data, text.offsets[row], text.offsets[row + 1], key, key2)[0]


@compiled
def run_starts(text: Text, out: Offsets) -> int:
    """Write the first row of each run of equal texts to `out`; returns how many runs there are."""
    runs = 0
    offsets, data = text.offsets, text.data
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        differs = True
        if row > 0 and start - offsets[row - 1] == end - start:
            differs = False
            back = start - offsets[row - 1]
            for position in range(end - 1, start - 1, -1):  # ids that follow each other differ at their end
                if data[position] != data[position - back]:
                    differs = True
                    break
        if differs:
            out[runs] = row
            runs += 1
    return runs
