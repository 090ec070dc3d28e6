"""Rate limits: a token bucket for each key, in memory that all serving processes of the machine may share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from mmap import mmap
from secrets import token_bytes
from typing import NamedTuple

from evenmatch.errors import RateLimitError
from evenmatch.http.token_buckets import SECRET, SIZE, TokenBuckets

ROUNDING = 1e-6  # requests: more than the rounding of times, and less than counts


class Allowance(NamedTuple):
    """What is left of a limit: `remaining` requests of `limit`; `reset`: seconds until the bucket is full."""

    limit: int
    remaining: int
    reset: float

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The RateLimit-* response headers."""
        return [
            (b"ratelimit-limit", b"%d" % self.limit),
            (b"ratelimit-remaining", b"%d" % self.remaining),
            (b"ratelimit-reset", b"%d" % math.ceil(self.reset)),
        ]


class RateLimit:
    """Token buckets of `burst` requests, refilled at `rate` per second. Not thread-safe.

    settings  the names of the settings of `rate` and `burst`, for messages
    buckets  shared with the other serving processes of this machine; None: those of this process alone
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        settings: str,
        clock: Callable[[], float] = time.monotonic,
        buckets: TokenBuckets | None = None,
    ) -> None:
        self.rate, self.burst, self._settings, self._clock = rate, burst, settings, clock
        self._buckets = TokenBuckets(memoryview(mmap(-1, SIZE)), token_bytes(SECRET)) if buckets is None else buckets

    def take(self, key: str) -> Allowance:
        """Take one request from a key's bucket. Raises RateLimitError if it is empty."""
        now = self._clock()
        place, full = self._buckets.find(key)
        left = self._left(full, now)
        self._check(left)
        self._buckets.put(place, max(full, now) + 1 / self.rate)
        return Allowance(self.burst, int(left - 1), (self.burst - left + 1) / self.rate)

    def check(self, key: str) -> None:
        """Raise RateLimitError if a key's bucket is empty; take nothing."""
        self._check(self._left(self._buckets.find(key)[1], self._clock()))

    def _left(self, full: float, now: float) -> float:
        """The requests left of a bucket that is full at this time."""
        return self.burst - max(0.0, full - now) * self.rate + ROUNDING

    def _check(self, left: float) -> None:
        if left < 1:
            wait = (1 - left) / self.rate
            raise RateLimitError(
                f"more than {self.rate:g} requests per second after {self.burst:,} at once, the limits "
                f"{self._settings}; try again in {math.ceil(wait)} s",
                wait,
            )
