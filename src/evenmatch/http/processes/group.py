"""The serving processes of one supervisor, as one of them sees its group."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

from evenmatch.http.processes.commands import Supervision
from evenmatch.http.rate_limits import SECRET, SIZE, TokenBuckets

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


@dataclass(frozen=True)
class ProcessGroup:
    """The place of a serving process in its group.

    number  from 1 to `count`, in logs and metrics; its successor after a reload has the same one
    cell    in the shared memory; the successor has another one
    folder  that only the supervisor and its processes may enter
    """

    number: int
    count: int
    cell: int
    folder: Path
    memory: SharedMemory
    supervision: Supervision

    @classmethod
    def join(cls, supervision: Supervision) -> ProcessGroup:
        """The group that the supervisor has put this process into."""
        start = supervision.start
        folder = Path(start.folder)
        return cls(start.number, start.count, start.cell, folder, SharedMemory(folder / "shared"), supervision)

    @property
    def sockets(self) -> Path:
        """The folder of the sockets at which the processes answer each other."""
        return self.folder / "sockets"

    @property
    def socket(self) -> Path:
        """The socket of this process."""
        return self.sockets / f"{self.number}-{self.cell}"

    @property
    def jobs(self) -> Path:
        """The folder by which the processes count their running jobs together."""
        return self.folder / "jobs"
