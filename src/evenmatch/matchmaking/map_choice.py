"""The choice of a map: fair over time, and the same wherever it is repeated with the same seed."""

from __future__ import annotations

from collections.abc import Sequence

REMEMBERED = 100  # the latest matches of a queue that the choice depends on

_WORD = (1 << 64) - 1


def choose_map(maps: Sequence[str], played: Sequence[str], seed: int, number: int) -> str:
    """Choose one of the maps that all players of a match accept.

    played  the maps of the queue's latest matches, the latest last;  number  of the match, different for each
    A map is chosen with a chance in proportion to how many matches have passed since it was last played. So maps come
    in turn but not in a known order, and without vetoes all have equal shares over time.
    """
    latest = played[-REMEMBERED:]
    last = {name: place for place, name in enumerate(latest)}
    waiting = [len(latest) - last.get(name, -1) for name in maps]
    drawn = _hash(seed, number) % sum(waiting)
    for name, weight in zip(maps, waiting, strict=True):
        if drawn < weight:
            return name
        drawn -= weight
    raise AssertionError("the weights have changed")


def shuffled(count: int, seed: int, number: int) -> list[int]:
    """The numbers from 0 to `count` - 1 in an order that depends on seed and number alone."""
    return sorted(range(count), key=lambda place: (_hash(seed, number, place + 1), place))


def _hash(*numbers: int) -> int:
    """A 64-bit hash of numbers (splitmix64; Steele, Lea and Flood 2014)."""
    state = 0
    for number in numbers:
        state = (state ^ number & _WORD) + 0x9E3779B97F4A7C15 & _WORD
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
        state ^= state >> 31
    return state
