"""Records of players and ladders: what systems learn about a ladder, how people see it, and fast copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Entries, FloatOrNaN, Integers
from evenmatch.systems.compiled import LINE

Records = NDArray[np.void]


class Learned(NamedTuple):
    """A number that a rating system has learned about a ladder.

    unit       `points` of the rating, or `share` (0 to 1)
    low, high  95 % interval, if the system estimates one
    """

    name: str
    meaning: str
    unit: str
    value: float
    low: FloatOrNaN
    high: FloatOrNaN


class LadderRecords(NamedTuple):
    """The records of all ladders as kernels receive them, and which of them a match reads and changes.

    pool     index of the record that the ladder shares with others;  own  index of its own record
    values   (C,)    indices of the records of the match's values in C context columns
    offsets          what is known about players under each value they have met
    first, second    (n·C,)  indices into `offsets`, C for each player of the first and of the second team
    first_entry, second_entry  (n,)  the numbers known about these players before their first match; empty: none are
    """

    records: Records
    pool: int
    own: int
    values: Integers
    offsets: Records
    first: Integers
    second: Integers
    first_entry: Entries
    second_entry: Entries


def copy_records(records: Records) -> Records:
    """Copy whole records. `copy` is several times slower, since it copies records with arrays field by field."""
    return repeat_records(records, len(records))


def repeat_records(records: Records, count: int) -> Records:
    """Return `count` records that equal these: a copy if there are as many of them, or repetitions of a single one."""
    room, kind = empty_records(count, records.dtype), f"V{records.itemsize}"
    room.view(kind)[:] = records.view(kind)
    return room


def join_records(first: Records, second: Records) -> Records:
    """Join records of one type. `concatenate` is several times slower, since it compares and copies fields."""
    room, kind = empty_records(len(first) + len(second), first.dtype), f"V{first.itemsize}"
    np.concatenate((first.view(kind), second.view(kind)), out=room.view(kind))
    return room


def empty_records(count: int, kind: np.dtype[np.void]) -> Records:
    """Room for records. It begins at a cache line, where `prefetch` expects records."""
    room = np.empty(count * kind.itemsize + LINE, "u1")
    first = -room.ctypes.data % LINE
    return room[first : first + count * kind.itemsize].view(kind)


def with_records(records: Records, count: int, new: Callable[[int], Records]) -> Records:
    """Return at least `count` records, of which new(n) makes n; grows in large steps."""
    lacking = count - len(records)
    return join_records(records, new(max(lacking, len(records)))) if lacking > 0 else records


NO_LADDER = np.dtype([("unused", "u1")])  # for systems that learn nothing about ladders, or about contexts
