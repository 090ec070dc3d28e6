"""Whether any match id is used twice, in bounded memory: hashes of all of them in a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.partitioned.compiled import compiled
from evenmatch.partitioned.names import Names
from evenmatch.partitioned.text import hash_texts, run_starts, text_of
from evenmatch.tables.partitions import Partition

_PARTS = 1 << 10  # of the range of hashes, by their first bits
_SHIFT = np.uint64(64 - 10)
_RUN = 1 << 20  # hashes that are ordered and written together
_TOGETHER = 1 << 18  # that are compared at once, where parts are smaller


class MatchIds:
    """The hashes of the ids of all matches, 8 bytes each; ordered by part in runs, compared part by part at the end."""

    def __init__(self, file: Path, names: Names) -> None:
        """Begin. names: whose key is used."""
        self._file, self._keys = file, (names.key, names.key2)
        self._sink = file.open("wb")
        self._starts: list[NDArray[np.int64]] = []  # of each chunk: the first hash of each part, in the file
        self._count = 0
        self._held: list[NDArray[np.uint64]] = []

    def add(self, match_id: pa.Array) -> None:
        """Add the ids of a chunk."""
        self._held.append(self._hashes(match_id))
        if sum(map(len, self._held)) >= _RUN:
            self._write()

    def _write(self) -> None:
        """Write what is held as one run, ordered by part."""
        hashes = np.concatenate([np.empty(0, np.uint64), *self._held])
        ordered, start = np.empty_like(hashes), np.zeros(_PARTS + 1, np.int64)
        _into_parts(hashes, start, ordered)
        self._starts.append(self._count + start)
        self._sink.write(ordered.tobytes())
        self._count += len(hashes)
        self._held = []

    def repeated(self) -> set[int]:
        """Hashes that occur more than once: of an id that is used again, or, for billions of matches, by chance."""
        self._write()
        self.close()
        if not self._count:
            return set()
        stored, starts = np.asarray(np.memmap(self._file, np.uint64, "r")), np.array(self._starts)
        sizes = np.diff(starts, axis=1).sum(0)
        found: set[int] = set()
        part = 0
        while part < _PARTS:
            end = part + max(1, int(np.searchsorted(np.cumsum(sizes[part:]), _TOGETHER, side="right")))
            bounds = zip(starts[:, part].tolist(), starts[:, end].tolist(), strict=True)
            hashes = np.concatenate([stored[first:last] for first, last in bounds])
            again = np.empty(len(hashes), np.uint64)
            room = np.zeros(1 << max(4, (2 * len(hashes)).bit_length()), np.uint64)
            found.update(again[: _equal(hashes, room, again)].tolist())
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


@compiled
def _into_parts(hashes: NDArray[np.uint64], start: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    """Order hashes by their part, the first 10 bits; `start` gets the first of each part, then their number."""
    for index in range(len(hashes)):
        start[(hashes[index] >> _SHIFT) + np.uint64(1)] += 1
    for part in range(_PARTS):
        start[part + 1] += start[part]
    for index in range(len(hashes)):
        part = hashes[index] >> _SHIFT
        out[start[part]] = hashes[index]
        start[part] += 1
    for part in range(_PARTS, 0, -1):
        start[part] = start[part - 1]
    start[0] = 0


@compiled
def _equal(hashes: NDArray[np.uint64], room: NDArray[np.uint64], again: NDArray[np.uint64]) -> int:
    """Write the hashes that were there before to `again`; returns how many.

    room  zeros, twice as many or more, a power of two
    """
    mask, count, has_zero = np.uint64(len(room) - 1), 0, False
    for index in range(len(hashes)):
        value = hashes[index]
        if value == np.uint64(0):
            if has_zero:
                again[count] = value
                count += 1
            has_zero = True
            continue
        place = value & mask
        while room[place] != np.uint64(0) and room[place] != value:
            place = (place + np.uint64(1)) & mask
        if room[place] == value:
            again[count] = value
            count += 1
        room[place] = value
    return count
