"""How often each key may ask: a bucket of tokens for each, refilled evenly, in this process."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.errors import RateLimitError

MOST = 100_000  # keys that are remembered; who was longest quiet is forgotten, whose bucket is full anyhow


class Allowance(NamedTuple):
    """What is left: requests of `limit`, and seconds until all of them are there again."""

    limit: int
    remaining: int
    reset: float

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The standard's headers."""
        numbers = (self.limit, self.remaining, math.ceil(self.reset))
        names = (b"ratelimit-limit", b"ratelimit-remaining", b"ratelimit-reset")
        return [(name, str(number).encode()) for name, number in zip(names, numbers, strict=True)]


class RateLimit:
    """Buckets of `burst` requests, into which `rate` flow each second. For one thread."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by key: requests left, and when

    def take(self, key: str) -> Allowance:
        """Take a request out of a key's bucket. Raises RateLimitError where there is none left."""
        now = self._clock()
        left = self._refilled(key, now)
        self._left.pop(key, None)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MOST:
            self._left.popitem(last=False)
        self._check(left)
        return Allowance(self.burst, int(left - 1), (self.burst - left + 1) / self.rate)

    def check(self, key: str) -> None:
        """Raise RateLimitError where there is none left, and take none."""
        self._check(self._refilled(key, self._clock()))

    def _refilled(self, key: str, now: float) -> float:
        left, when = self._left.get(key, (float(self.burst), now))
        return min(float(self.burst), left + (now - when) * self.rate)

    def _check(self, left: float) -> None:
        if left < 1:
            wait = (1 - left) / self.rate
            raise RateLimitError(
                f"more than {self.rate:g} requests a second; accepted is another one in {math.ceil(wait)} s", wait
            )
