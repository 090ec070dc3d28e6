"""Copies, repetitions and joins of records, compared with numpy's own."""

from __future__ import annotations

import numpy as np
import pytest

from evenmatch.systems.compiled import LINE
from evenmatch.systems.ladder_records import Records, copy_records, join_records, repeat_records

KIND = np.dtype([("mean", "f8", 2), ("games", "i4")], align=True)  # 24 bytes, of which numpy skips four


def records(count: int) -> Records:
    """Records that all differ."""
    made = np.zeros(count, KIND)
    made["mean"] = np.arange(2.0 * count).reshape(count, 2)
    made["games"] = np.arange(count) + 7
    return made


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000])
def test_copies_and_repetitions_equal_those_of_numpy(count: int) -> None:
    some, one = records(count), records(1)
    copied, repeated = copy_records(some), repeat_records(one, count)
    np.testing.assert_array_equal(copied, some.copy())
    np.testing.assert_array_equal(repeated, one.repeat(count))
    assert copied.dtype == repeated.dtype == KIND


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 3), (3, 0), (1, 1), (5, 1000)])
def test_joined_records_equal_those_of_numpy(first: int, second: int) -> None:
    a, b = records(first), records(second + 1)[1:]
    np.testing.assert_array_equal(join_records(a, b), np.concatenate((a, b)))


def test_a_changed_copy_leaves_the_records_alone() -> None:
    some = records(3)
    copies = copy_records(some), join_records(some, some), repeat_records(some[:1], 3)
    for copy in copies:
        copy["games"] = 0
        copy["mean"] = -1.0
    np.testing.assert_array_equal(some, records(3))


@pytest.mark.parametrize("count", [1, 3, 100])
def test_records_begin_at_a_cache_line(count: int) -> None:
    some = records(count + 1)[1:]  # 24 bytes from the beginning of an array, so not at a line
    for made in (copy_records(some), join_records(some, some), repeat_records(some[:1], count)):
        assert made.ctypes.data % LINE == 0
