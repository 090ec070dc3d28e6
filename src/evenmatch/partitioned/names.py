"""Players by number: a table of hashes in memory, the names themselves in a temporary file."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.history import Integers
from evenmatch.partitioned.compiled import compiled
from evenmatch.partitioned.siphash import siphash
from evenmatch.partitioned.text import Text
from evenmatch.systems.compiled import prefetch

_ENTRY = np.dtype([("first", "u8"), ("second", "u8"), ("player", "i8")])
_EMPTY = -1
_SMALLEST = 1 << 12  # entries
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 64  # names whose places are read together: their cache misses overlap
FULL, EMPTY_NAME = -1, -2

Entries = NDArray[np.void]


class Names:
    """Numbers for players, in order of first appearance; a player on two ladders has two.

    A name is recognized by the 128 bits of a hash whose key is drawn for each run, so that nobody can choose names that
    collide, and for a billion names chance is below 1e-20. Memory: 48 to 96 bytes a player, whatever the names.
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

    def number(self, names: pa.Array, text: Text, ladder: Integers) -> Integers | None:
        """The number of the player of each row; None if a name is empty.

        names, text  large_string (N,), as `text_of` gives it;  ladder  int32 (N,) or (1,) for all of them
        """
        out = np.empty(len(names), np.int32)
        new = np.empty(len(names), np.int64)
        done, found, code = 0, 0, 0
        while done < len(names) and code != EMPTY_NAME:
            keys = (self.key, self.key2)
            done, count, code = _number(text, ladder, *keys, self._entries, done, self.count, out, new[found:])
            found += count - self.count
            self.count = count
            if code == FULL:
                larger = _without_names(2 * len(self._entries))
                _enter(self._entries, larger)
                self._entries = larger
        if found:
            self._writer.write_batch(pa.record_batch([names.take(pa.array(new[:found]))], schema=self._schema))
            self._ladders.append(ladder[new[:found]] if len(ladder) > 1 else np.repeat(ladder, found))
        return None if code == EMPTY_NAME else out

    @property
    def ladder(self) -> Integers:
        """The ladder of each player, int32 (P,)."""
        return np.concatenate(self._ladders) if self._ladders else np.empty(0, np.int32)

    def read(self) -> pa.ChunkedArray:
        """The names of all players in order of their numbers, mapped from the file; nobody can be added afterwards."""
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
    text: Text,
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
