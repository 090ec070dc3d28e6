"""Rate limits: a token bucket for each key, held in the memory of this process."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.errors import RateLimitError

MOST = 100_000  # keys remembered; the longest idle one is dropped, since its bucket is full again


class Allowance(NamedTuple):
    """What is left of a limit: `remaining` requests of `limit`; `reset`: seconds until the bucket is full."""

    limit: int
    remaining: int
    reset: float

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The RateLimit-* response headers."""
        numbers = (self.limit, self.remaining, math.ceil(self.reset))
        names = (b"ratelimit-limit", b"ratelimit-remaining", b"ratelimit-reset")
        return [(name, str(number).encode()) for name, number in zip(names, numbers, strict=True)]


class RateLimit:
    """Token buckets of `burst` requests, refilled at `rate` per second. Not thread-safe."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by key: requests left, and the time of that

    def take(self, key: str) -> Allowance:
        """Take one request from a key's bucket. Raises RateLimitError if it is empty."""
        now = self._clock()
        left = self._refilled(key, now)
        self._left.pop(key, None)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MOST:
            self._left.popitem(last=False)
        self._check(left)
        return Allowance(self.burst, int(left - 1), (self.burst - left + 1) / self.rate)

    def check(self, key: str) -> None:
        """Raise RateLimitError if a key's bucket is empty; take nothing."""
        self._check(self._refilled(key, self._clock()))

    def _refilled(self, key: str, now: float) -> float:
        left, time_of_left = self._left.get(key, (float(self.burst), now))
        return min(float(self.burst), left + (now - time_of_left) * self.rate)

    def _check(self, left: float) -> None:
        if left < 1:
            wait = (1 - left) / self.rate
            raise RateLimitError(f"more than {self.rate:g} requests per second; try again in {math.ceil(wait)} s", wait)
