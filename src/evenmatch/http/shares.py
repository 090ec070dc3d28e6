"""Bounds of a whole machine, divided among its serving processes."""

from __future__ import annotations


def share(most: int, count: int, least: int = 1) -> int:
    """What one of `count` processes may take of a bound of the whole machine; at least `least`."""
    return max(least, most // count)
