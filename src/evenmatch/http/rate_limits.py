"""Rate limits: a token bucket for each key and for each client address, in the memory of one process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.errors import RateLimitError

BUCKETS_AT_MOST = 100_000  # buckets of one limit; when there are more, full ones are forgotten
ROUNDING = 1e-6  # requests; larger than the rounding errors of times, and negligible as a count


class Allowance(NamedTuple):
    """The rest of a limit: `remaining` requests of `limit`; `reset`: seconds until the bucket is full."""

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

    A bucket is one number: the time at which it is full again (the generic cell rate algorithm).

    settings  the names of the settings of `rate` and `burst`, for messages
    """

    def __init__(self, rate: float, burst: int, settings: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self._settings, self._clock = rate, burst, settings, clock
        self._full_at: dict[str, float] = {}

    def take(self, key: str) -> Allowance:
        """Take one request from a key's bucket. Raises RateLimitError if it is empty."""
        self.check(key)
        return self.charge(key)

    def check(self, key: str) -> None:
        """Raise RateLimitError if a key's bucket is empty."""
        left = self._left(key, self._clock())
        if left < 1:
            wait = (1 - left) / self.rate
            raise RateLimitError(
                f"more than {self.rate:g} requests per second after {self.burst:,} at once, the limits "
                f"{self._settings}; try again in {math.ceil(wait)} s",
                wait,
            )

    def charge(self, key: str) -> Allowance:
        """Take one request from a key's bucket, even if it is empty."""
        now = self._clock()
        left = self._left(key, now)
        if len(self._full_at) >= BUCKETS_AT_MOST and key not in self._full_at:
            self._forget(now)
        self._full_at[key] = max(self._full_at.get(key, now), now) + 1 / self.rate
        return Allowance(self.burst, max(int(left - 1), 0), (self.burst - left + 1) / self.rate)

    def _left(self, key: str, now: float) -> float:
        return self.burst - max(self._full_at.get(key, now) - now, 0.0) * self.rate + ROUNDING

    def _forget(self, now: float) -> None:
        """Forget full buckets. If most are not full, also forget those that will be full first, down to half."""
        left = sorted((full_at, key) for key, full_at in self._full_at.items() if full_at > now)
        self._full_at = {key: full_at for full_at, key in left[-(BUCKETS_AT_MOST // 2) :]}
