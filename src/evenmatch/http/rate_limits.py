"""Rate limits: a token bucket for each key, in memory that the serving processes of a machine may share.

A bucket is one number, the time at which it is full again (the generic cell rate algorithm). It is read and written at
once, without a lock that a frozen process would hold. Two processes that write a bucket in the same microsecond may
count two requests as one.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from mmap import mmap
from secrets import token_bytes
from typing import NamedTuple

from evenmatch.errors import RateLimitError

WAYS = 8  # buckets among which one of a key is looked for
SETS = 16_384
SIZE = 16 * WAYS * SETS  # bytes: 131,072 buckets, each the hash of its key and a time
SECRET = 16  # bytes


class TokenBuckets:
    """The times at which buckets are full, by key; a bucket that is not stored is full.

    memory  SIZE bytes, zero at the beginning
    secret  of the hashes of keys, so that no sender can choose keys that push out others
    """

    def __init__(self, memory: memoryview, secret: bytes) -> None:
        half = SIZE // 2
        self._keys, self._full = memory[:half].cast("Q"), memory[half:SIZE].cast("d")
        self._secret = secret

    def find(self, key: str) -> tuple[int, float]:
        """Where the bucket of a key is or may be put, and the monotonic time at which it is full."""
        digest = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8, key=self._secret).digest(), "little") or 1
        first = digest % SETS * WAYS
        keys = self._keys[first : first + WAYS].tolist()
        if digest in keys:
            place = first + keys.index(digest)
            return place, self._full[place]
        times = self._full[first : first + WAYS].tolist()
        place = first + times.index(min(times))  # the one that is full first, and so may be forgotten first
        self._keys[place], self._full[place] = digest, 0.0
        return place, 0.0

    def put(self, place: int, full: float) -> None:
        """Store the time at which the bucket at this place is full."""
        self._full[place] = full


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
