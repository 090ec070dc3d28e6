"""Names of a stream: players by number, and whether any match id is used twice, in bounded memory.

Hashes with a key of the run (SipHash) number the players; the names wait in a temporary file.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.history import Integers
from evenmatch.systems.compiled import prefetch
from evenmatch.tables.partitions import Partition

F = TypeVar("F", bound=Callable[..., object])
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def compiled(function: F) -> F:
    """Compile a kernel."""
    return cast("F", njit(**_OPTIONS)(function))


def inlined(function: F) -> F:
    """Compile a function that becomes a part of the kernels that call it."""
    return cast("F", njit(inline="always", **_OPTIONS)(function))


Bytes = NDArray[np.uint8]
_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_MARK, _SECOND = np.uint64(0xEE), np.uint64(0xDD)


@inlined
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    return np.uint64((value << np.uint64(bits)) | (value >> np.uint64(64 - bits)))


@inlined
def _round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a += b
    c += d
    b = _rotated(b, 13) ^ a
    d = _rotated(d, 16) ^ c
    a = _rotated(a, 32)
    a += d
    c += b
    d = _rotated(d, 21) ^ a
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@inlined
def _word(data: Bytes, start: int, count: int) -> np.uint64:
    """Up to eight bytes as a number, the first the lowest."""
    word = np.uint64(0)
    for index in range(count):
        word |= np.uint64(data[start + index]) << np.uint64(8 * index)
    return word


@compiled
def siphash(data: Bytes, start: int, end: int, key: np.uint64, key2: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The hash of the bytes from `start` up to `end`, by a key of two numbers: its first and its second 64 bits."""
    a, b, c, d = key ^ _V0, key2 ^ _V1 ^ _MARK, key ^ _V2, key2 ^ _V3
    size = end - start
    position = start
    while position + 8 <= end:
        word = _word(data, position, 8)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        position += 8
    word = _word(data, position, end - position) | (np.uint64(size & 255) << np.uint64(56))
    d ^= word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= _MARK
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b ^= _SECOND
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return first, a ^ b ^ c ^ d


Offsets = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class TextArrays(NamedTuple):
    """N texts in UTF-8: text i is data[offsets[i]:offsets[i + 1]]."""

    offsets: Offsets
    data: Bytes


def text_of(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, TextArrays]:
    """The column as one array of large_string, and its memory for kernels. It must have no empty cell (null)."""
    texts = column.cast(pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if isinstance(texts, pa.ChunkedArray):  # an empty column stays chunked
        texts = pa.array([], pa.large_string())
    _, offsets, data = texts.buffers()
    if not len(texts):
        return texts, TextArrays(np.zeros(1, np.int64), np.empty(0, np.uint8))
    window = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return texts, TextArrays(window, held)


@compiled
def hash_texts(text: TextArrays, key: np.uint64, key2: np.uint64, out: Hashes) -> None:
    """The first 64 bits of the hash of each text."""
    for row in range(len(out)):
        out[row] = siphash(text.data, text.offsets[row], text.offsets[row + 1], key, key2)[0]


@compiled
def run_starts(text: TextArrays, out: Offsets) -> int:
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


_ENTRY = np.dtype([("first", "u8"), ("second", "u8"), ("player", "i8")])
_EMPTY = -1
_SMALLEST = 1 << 12  # entries
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 64  # names whose places are read together: their cache misses overlap
FULL, EMPTY_NAME = -1, -2

Entries = NDArray[np.void]


class Names:
    """Numbers for players, in order of first appearance; a player on two ladders has two.

    A name is recognized by the 128 bits of a hash whose key is drawn for each run, so that names that collide cannot be
    chosen, and for a billion names chance is below 1e-20. Memory: 48 to 96 bytes a player, whatever the names.
    """

    def __init__(self, file: Path) -> None:
        """Begin without players. file: where the names are kept, an Arrow stream."""
        self.key, self.key2 = (np.uint64(secrets.randbits(64)) for _ in range(2))
        self.count = 0
        self._entries = _without_names(_SMALLEST)
        self._ladders: list[Integers] = []
        self._file = file
        self._schema = pa.schema([("player", pa.large_string())])
        self._sink = pa.OSFile(str(file), "wb")
        self._writer = pa.ipc.new_stream(self._sink, self._schema)

    def number(self, names: pa.Array, text: TextArrays, ladder: Integers) -> Integers | None:
        """The number of the player of each row; None if a name is empty.

        names, text  large_string (N,), as `text_of` gives it;  ladder  int32 (N,) or (1,) for all of them
        """
        out = np.empty(len(names), np.int32)
        new = np.empty(len(names), np.int64)
        done, known, code = 0, 0, 0
        while done < len(names) and code != EMPTY_NAME:
            keys = (self.key, self.key2)
            done, count, code = _number(text, ladder, *keys, self._entries, done, self.count, out, new[known:])
            known += count - self.count
            self.count = count
            if code == FULL:
                larger = _without_names(2 * len(self._entries))
                _enter(self._entries, larger)
                self._entries = larger
        if known:
            self._writer.write_batch(pa.record_batch([names.take(pa.array(new[:known]))], schema=self._schema))
            self._ladders.append(ladder[new[:known]] if len(ladder) > 1 else np.repeat(ladder, known))
        return None if code == EMPTY_NAME else out

    @property
    def ladder(self) -> Integers:
        """The ladder of each player, int32 (P,)."""
        return np.concatenate(self._ladders) if self._ladders else np.empty(0, np.int32)

    def read(self) -> pa.ChunkedArray:
        """The names of all players in order of their numbers, mapped from the file; none can be added afterwards."""
        self.close()
        with pa.memory_map(str(self._file)) as mapped:
            return pa.ipc.open_stream(mapped).read_all()["player"]

    def close(self) -> None:
        """Complete the file."""
        if not self._sink.closed:
            self._writer.close()
            self._sink.close()
        self._entries = _without_names(1)


def _without_names(size: int) -> Entries:
    entries = np.zeros(size, _ENTRY)
    entries["player"] = _EMPTY
    return entries


@compiled
def _enter(old: Entries, larger: Entries) -> None:
    mask = len(larger) - 1
    for index in range(len(old)):
        if old[index].player != _EMPTY:
            place = np.int64(old[index].second & np.uint64(mask))
            while larger[place].player != _EMPTY:
                place = (place + 1) & mask
            larger[place] = old[index]


@compiled
def _number(
    text: TextArrays,
    ladder: Integers,
    key: np.uint64,
    key2: np.uint64,
    entries: Entries,
    start: int,
    count: int,
    out: Integers,
    new: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Number the names from row `start` on; returns the next row, the number of players, and why it stopped (or 0).

    new  the row of each new name, in order
    """
    mask, before = len(entries) - 1, count
    first, second = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    rows = len(out)
    for low in range(start, rows, _BLOCK):
        high = min(low + _BLOCK, rows)
        if 2 * (count + _BLOCK) > len(entries):
            return low, count, FULL
        for row in range(low, high):
            if text.offsets[row] == text.offsets[row + 1]:
                return low, count, EMPTY_NAME
            a, b = siphash(text.data, text.offsets[row], text.offsets[row + 1], key, key2)
            own = ladder[row] if len(ladder) > 1 else ladder[0]
            first[row - low] = a ^ (np.uint64(own) * _GOLDEN)
            second[row - low] = b
            prefetch(entries, int(b & np.uint64(mask)))
        for row in range(low, high):
            a, b = first[row - low], second[row - low]
            place = np.int64(b & np.uint64(mask))
            while True:
                player = entries[place].player
                if player == _EMPTY:
                    entries[place].first = a
                    entries[place].second = b
                    entries[place].player = count
                    new[count - before] = row
                    player = count
                    count += 1
                    break
                if entries[place].first == a and entries[place].second == b:
                    break
                place = (place + 1) & mask
            out[row] = player
    return rows, count, 0


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
        repeated: set[int] = set()
        part = 0
        while part < _PARTS:
            end = part + max(1, int(np.searchsorted(np.cumsum(sizes[part:]), _TOGETHER, side="right")))
            bounds = zip(starts[:, part].tolist(), starts[:, end].tolist(), strict=True)
            hashes = np.concatenate([stored[first:last] for first, last in bounds])
            again = np.empty(len(hashes), np.uint64)
            room = np.zeros(1 << max(4, (2 * len(hashes)).bit_length()), np.uint64)
            repeated.update(again[: _equal(hashes, room, again)].tolist())
            part = end
        return repeated

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
