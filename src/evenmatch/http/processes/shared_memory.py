"""Memory that the serving processes of a supervisor share: open connections of each, and token buckets."""

from __future__ import annotations

import os
import secrets
from mmap import mmap
from pathlib import Path

from evenmatch.http.token_buckets import SECRET, SIZE, TokenBuckets

CELLS = 128  # two for each process: its own, and that of its successor after a reload
LIMITS = ("key", "player", "open", "wrong key")  # the rate limits with shared buckets
HEAD = 4096  # bytes before the buckets
COUNTS = 64  # where the counts of connections begin
CLOSED = 2**62  # in place of a count: the process accepts no connection


class SharedMemory:
    """The mapped file. connections: open ones of each process, by cell; each writes its own cell alone."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            memory = memoryview(mmap(file.fileno(), 0))
        self.connections = memory[COUNTS : COUNTS + 8 * CELLS].cast("q")
        self._memory = memory

    @classmethod
    def create(cls, path: Path) -> SharedMemory:
        """Create the file. No process accepts connections yet."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, secrets.token_bytes(SECRET))
            os.ftruncate(handle, HEAD + len(LIMITS) * SIZE)
        finally:
            os.close(handle)
        created = cls(path)
        for cell in range(CELLS):
            created.connections[cell] = CLOSED
        return created

    def least(self) -> int:
        """The fewest connections that a process has which accepts some; CLOSED if there is none."""
        return min(self.connections)

    def buckets(self, limit: str) -> TokenBuckets:
        """The buckets of one of LIMITS."""
        begin = HEAD + LIMITS.index(limit) * SIZE
        return TokenBuckets(self._memory[begin : begin + SIZE], bytes(self._memory[:SECRET]))
