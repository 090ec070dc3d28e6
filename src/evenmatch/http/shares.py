"""Bounds of a whole machine, divided among its serving processes."""

from __future__ import annotations


def share(most: int, count: int, least: int = 1) -> int:
    """The share of one of `count` processes of a bound of the whole machine; at least `least`."""
    return max(least, most // count)
