"""Whether any match id is used twice, in bounded memory: hashes of all of them in a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.partitioned.names import Names
from evenmatch.partitioned.text import hash_texts, run_starts, text_of
from evenmatch.tables.partitions import Partition

_TOGETHER = 1 << 25  # hashes sorted at once
_PARTS = 1 << 12  # of the range of hashes, by their first bits


class MatchIds:
    """The hashes of the ids of all matches, 8 bytes each; sorted chunk by chunk, compared at the end."""

    def __init__(self, file: Path, names: Names) -> None:
        """Begin. names: whose key is used."""
        self._file, self._keys = file, (names.key, names.key2)
        self._sink = file.open("wb")
        self._starts: list[NDArray[np.int64]] = []  # of each chunk: the first hash of each part, in the file
        self._count = 0

    def add(self, match_id: pa.Array) -> None:
        """Add the ids of a chunk."""
        hashes = np.sort(self._hashes(match_id))
        self._starts.append(self._count + _first_of_parts(hashes))
        self._sink.write(hashes.tobytes())
        self._count += len(hashes)

    def repeated(self) -> set[int]:
        """Hashes that occur more than once: of an id that is used again, or, for billions of matches, by chance."""
        self.close()
        if not self._count:
            return set()
        stored, starts = np.memmap(self._file, np.uint64, "r"), np.array(self._starts)
        sizes = np.diff(starts, axis=1).sum(0)
        found: set[int] = set()
        part = 0
        while part < _PARTS:
            end = part + max(1, int(np.searchsorted(np.cumsum(sizes[part:]), _TOGETHER, side="right")))
            pieces = [
                stored[first:last] for first, last in zip(starts[:, part], starts[:, min(end, _PARTS)], strict=True)
            ]
            hashes = np.sort(np.concatenate(pieces))
            found.update(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
            part = end
        return found

    def check(
        self, partitions: Sequence[Partition], read_ids: Callable[[Partition], Iterator[tuple[int, pa.Array]]]
    ) -> None:
        """Raise InputError, naming both places, if an id is used twice.

        read_ids  the ids of a partition in order, piece by piece, each with the number of its first row
        """
        suspected = np.array(sorted(self.repeated()), np.uint64)
        if not len(suspected):
            return
        places: dict[str, str] = {}
        for partition in partitions:
            previous = None
            for first, ids in read_ids(partition):
                text, held = text_of(ids)
                starts = np.empty(len(text), np.int64)
                starts = starts[: run_starts(held, starts)]
                heads = text.take(pa.array(starts))
                for index in np.flatnonzero(np.isin(self._hashes(heads), suspected)).tolist():
                    name, row = heads[index].as_py(), first + int(starts[index])
                    place = f"{partition.address}, row {row + 1}"
                    if name in places and not (index == 0 and name == previous):
                        raise InputError(
                            f"{place}: match {name!r} is at {places[name]} already; expected the rows of a match one "
                            "after the other, and each match once"
                        )
                    places.setdefault(name, place)
                previous = text[-1].as_py() if len(text) else previous

    def _hashes(self, match_id: pa.Array) -> NDArray[np.uint64]:
        text, held = text_of(match_id)
        hashes = np.empty(len(text), np.uint64)
        hash_texts(held, *self._keys, hashes)
        return hashes

    def close(self) -> None:
        """Complete the file."""
        self._sink.close()


def _first_of_parts(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The first of these ascending hashes in each part of their range, then their number: int64 (_PARTS + 1,)."""
    bounds = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(64 - 12)
    inner = np.searchsorted(hashes, bounds)
    return np.concatenate(([0], inner, [len(hashes)])).astype(np.int64)
