"""Small ladders share tasks, in their order; large ones have their own."""

import pytest

from evenmatch.cluster.ladders import _groups
from evenmatch.tables.partitions import Partition


@pytest.mark.parametrize(
    ("sizes", "most", "groups"),
    [
        ([5, 1, 1, 1, 8], 2, ["abcd", "e"]),  # 8 each
        ([8, 1, 1, 1, 5], 2, ["a", "bcde"]),
        ([3, 3, 3], 100, ["a", "b", "c"]),
        ([1, 1, 1, 1, 1], 1, ["abcde"]),
        ([0, 0], 4, ["ab"]),
    ],
)
def test_groups_are_of_equal_size_and_keep_the_order(sizes, most, groups):
    streams = [[Partition(f"{name}.parquet", name, size)] for name, size in zip("abcde", sizes, strict=False)]
    found = ["".join(partition.ladder for partition in group) for group in _groups(streams, most)]
    assert found == groups
