"""Number the players of a stream and check that no match id is used twice, in bounded memory."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.history import Integers
from evenmatch.systems.compiled import cached, prefetch
from evenmatch.tables.partitions import Partition

Number = TypeVar("Number", bound=np.generic)


def with_room(array: NDArray[Number], length: int) -> NDArray[Number]:
    """Return the array, or a copy at least twice as long and padded with zeros if it is shorter than `length`."""
    if len(array) >= length:
        return array
    longer = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


Hashes = NDArray[np.uint64]
Key = tuple[int, int]
_LAST_BYTE = np.uint64(0xFF)


class TextArrays(NamedTuple):
    """N texts in UTF-8: text i is data[offsets[i]:offsets[i + 1]]."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> TextArrays:
        """The texts of a column without empty cells (null)."""
        texts = column.cast(pa.large_string())
        texts = pa.concat_arrays(texts.chunks) if isinstance(texts, pa.ChunkedArray) and texts.num_chunks else texts
        if not len(texts):
            return cls(np.zeros(1, np.int64), np.empty(0, np.uint8))
        _, offsets, data = texts.buffers()
        window = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        return cls(window, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))


def random_key() -> Key:
    """Draw a key for `hashes_of`. Nobody can prepare names that collide under a key drawn at run time."""
    return secrets.randbits(64), secrets.randbits(64)


def hashes_of(text: TextArrays, key: Key) -> Hashes:
    """SipHash-1-3 of each text (Aumasson & Bernstein 2012), uint64 (N,)."""
    out = np.empty(len(text.offsets) - 1, np.uint64)
    _hash_texts(text, np.uint64(key[0]), np.uint64(key[1]), out)
    return out


@cached
def _rotated(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@cached
def _sip_round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    v0, v2 = v0 + v1, v2 + v3
    v1, v3 = _rotated(v1, 13) ^ v0, _rotated(v3, 16) ^ v2
    v0, v2 = _rotated(v0, 32) + v3, v2 + v1
    v1, v3 = _rotated(v1, 17) ^ v2, _rotated(v3, 21) ^ v0
    return v0, v1, _rotated(v2, 32), v3


@cached
def _hash_texts(text: TextArrays, k0: np.uint64, k1: np.uint64, out: Hashes) -> None:
    for row in range(len(out)):
        start, end = text.offsets[row], text.offsets[row + 1]
        v0, v1 = k0 ^ np.uint64(0x736F6D6570736575), k1 ^ np.uint64(0x646F72616E646F6D)
        v2, v3 = k0 ^ np.uint64(0x6C7967656E657261), k1 ^ np.uint64(0x7465646279746573)
        while end - start >= 8:
            word = np.uint64(0)
            for index in range(8):  # compiles to one load
                word |= np.uint64(text.data[start + index]) << np.uint64(8 * index)
            v3 ^= word
            v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
            v0 ^= word
            start += 8
        word = (np.uint64(end - text.offsets[row]) & _LAST_BYTE) << np.uint64(56)
        for index in range(end - start):
            word |= np.uint64(text.data[start + index]) << np.uint64(8 * index)
        v3 ^= word
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0 ^= word
        v2 ^= _LAST_BYTE
        for _ in range(3):
            v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        out[row] = v0 ^ v1 ^ v2 ^ v3


_ENTRY = np.dtype(
    [("hash", "u8"), ("start", "i8"), ("size", "i4"), ("ladder", "i4"), ("player", "i4"), ("taken", "i4")]
)
_SMALLEST = 1 << 12  # entries
_AHEAD = 16  # rows between the request of an entry from memory and its use

Entries = NDArray[np.void]


class Names:
    """Numbers for players, in order of first appearance; a name on two ladders has two numbers.

    A hash table with open addressing, at most three quarters full: 43 to 86 bytes a player, and the name itself.
    """

    def __init__(self) -> None:
        self.count = 0
        self._key = random_key()
        self._entries = np.zeros(_SMALLEST, _ENTRY)
        self._known = TextArrays(np.zeros(1, np.int64), np.empty(0, np.uint8))
        self._ladder = np.empty(0, np.int32)

    def number(self, names: pa.Array, ladder: Integers) -> Integers:
        """The number of each player, int32 (N,), given their names (N,) and the ladders they play on, int32 (N,)."""
        text, out = TextArrays.of(names), np.empty(len(names), np.int32)
        self._make_room(len(out), int(text.offsets[-1] - text.offsets[0]))
        self.count = _number(
            *(text, ladder, hashes_of(text, self._key), self._entries, self._known, self._ladder, self.count, out)
        )
        return out

    def _make_room(self, players: int, size: int) -> None:
        """Make room for this many new players, with this many bytes of names in total."""
        players += self.count
        offsets, data = self._known
        self._known = TextArrays(with_room(offsets, players + 1), with_room(data, int(offsets[self.count]) + size))
        self._ladder = with_room(self._ladder, players)
        if 4 * players > 3 * len(self._entries):
            larger = np.zeros(1 << (4 * players // 3).bit_length(), _ENTRY)
            _move(self._entries, larger)
            self._entries = larger

    @property
    def ladder(self) -> Integers:
        """The ladder of each player, int32 (P,)."""
        return self._ladder[: self.count]

    def texts(self) -> pa.Array:
        """The names of all players in order of their numbers."""
        offsets, data = self._known.offsets[: self.count + 1], self._known.data
        return pa.LargeStringArray.from_buffers(self.count, pa.py_buffer(offsets), pa.py_buffer(data))


@cached
def _move(entries: Entries, larger: Entries) -> None:
    mask = len(larger) - 1
    for index in range(len(entries)):
        if entries[index].taken:
            place = np.int64(entries[index].hash & np.uint64(mask))
            while larger[place].taken:
                place = (place + 1) & mask
            larger[place] = entries[index]


@cached
def _is_same(data: NDArray[np.uint8], start: int, known: NDArray[np.uint8], first: int, size: int) -> bool:
    for index in range(size):  # noqa: SIM110 - compiled
        if data[start + index] != known[first + index]:
            return False
    return True


@cached
def _number(
    text: TextArrays,
    ladder: Integers,
    hashes: Hashes,
    entries: Entries,
    known: TextArrays,
    ladder_of: Integers,
    count: int,
    out: Integers,
) -> int:
    """Number the names; returns how many players there are. There must be room for all of them to be new."""
    mask = len(entries) - 1
    for row in range(len(out)):
        if row + _AHEAD < len(out):
            prefetch(entries, hashes[row + _AHEAD] & np.uint64(mask))
        start, size = text.offsets[row], text.offsets[row + 1] - text.offsets[row]
        place = np.int64(hashes[row] & np.uint64(mask))
        while entries[place].taken:
            entry = entries[place]
            is_like = entry.hash == hashes[row] and entry.ladder == ladder[row] and entry.size == size
            if is_like and _is_same(text.data, start, known.data, entry.start, size):
                break
            place = (place + 1) & mask
        if not entries[place].taken:
            entry = entries[place]
            entry.hash, entry.start, entry.size = hashes[row], known.offsets[count], size
            entry.ladder, entry.player, entry.taken = ladder[row], count, 1
            for index in range(size):
                known.data[entry.start + index] = text.data[start + index]
            known.offsets[count + 1] = entry.start + size
            ladder_of[count] = ladder[row]
            count += 1
        out[row] = entries[place].player
    return count


_PARTS = 256  # files; a billion matches are 31 MB in each
_FIRST = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(56)  # hash of each file but the first one


class MatchIds:
    """The hashes of all match ids, 8 bytes each, in files by their first bits; compared file by file at the end."""

    def __init__(self, folder: Path) -> None:
        """Create the files in this folder. Raises InputError if they cannot be written."""
        self._folder, self._key = folder, random_key()
        with self._writing():
            self._files = [(folder / f"{part}.ids").open("wb") for part in range(_PARTS)]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._folder}: cannot be written: {error.strerror}; set TMPDIR to another folder"
            ) from error

    def add(self, match_id: pa.Array) -> None:
        """Add ids. Raises InputError if the disk is full."""
        hashes = np.sort(hashes_of(TextArrays.of(match_id), self._key))
        bounds = [0, *np.searchsorted(hashes, _FIRST).tolist(), len(hashes)]
        with self._writing():
            for part, file in enumerate(self._files):
                file.write(hashes[bounds[part] : bounds[part + 1]].tobytes())

    def repeated(self) -> Hashes:
        """Hashes that occur more than once: of an id that is used again, or by chance, one in 5e9 pairs of 1e14."""
        self.close()
        repeated = [np.empty(0, np.uint64)]
        for part in range(_PARTS):
            hashes = np.sort(np.fromfile(self._folder / f"{part}.ids", np.uint64))
            repeated.append(hashes[1:][hashes[1:] == hashes[:-1]])
        return np.concatenate(repeated)

    def check(
        self, partitions: Sequence[Partition], read_ids: Callable[[Partition], Iterator[tuple[int, pa.Array]]]
    ) -> None:
        """Raise InputError, naming both places, if an id is used twice.

        read_ids  yields the ids of a partition's rows piece by piece, each with the number of its first row
        """
        suspected = self.repeated()
        if not len(suspected):
            return
        places: dict[str, tuple[str, int, int]] = {}  # file, first row, last row
        for partition in partitions:
            for first, ids in read_ids(partition):
                for index in np.flatnonzero(np.isin(hashes_of(TextArrays.of(ids), self._key), suspected)).tolist():
                    name, row = ids[index].as_py(), first + index + 1
                    file, begin, last = places.get(name, (partition.address, row, row - 1))
                    if (file, last + 1) != (partition.address, row):
                        raise InputError(
                            f"{partition.address}, row {row}: match {name!r} is at {file}, row {begin} already; "
                            "expected the rows of a match one after the other, and each match once"
                        )
                    places[name] = (file, begin, row)

    def close(self) -> None:
        """Complete the files. Raises InputError if the disk is full."""
        with self._writing():
            for file in self._files:
                file.close()
