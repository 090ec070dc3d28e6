"""Token buckets in a block of memory, which the serving processes of a machine may share.

A bucket is one number, the time at which it is full again (the generic cell rate algorithm), so that it is read and
written at once, without a lock that a frozen process would hold. Two processes that write one bucket in the same
microsecond may count two requests as one.
"""

from __future__ import annotations

import hashlib

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
