"""The serving processes of one supervisor: the memory that they share, and their messages to it."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evenmatch.http.rate_limits import SECRET, SIZE, TokenBuckets

SERVING, READY = b"serving\n", b"ready\n"  # from the process: it answers; it would answer /readyz with 200
RETIRE = b"retire\n"  # to the process: its successor is ready


@dataclass(frozen=True)
class Start:
    """The first line to a process: what to serve, and its place among the others.

    database   URL with its password: in no list of processes
    given      the options of the command line; the others are in the environment
    listening  file descriptor of the listening socket
    is_first   the first process of the service
    """

    database: str
    given: dict[str, Any]
    listening: int
    number: int
    count: int
    cell: int
    folder: str
    is_first: bool

    def line(self) -> bytes:
        """The line that `read_start` reads."""
        return _START.dump_json(self) + b"\n"


_START = TypeAdapter(Start)


class Supervision:
    """The serving process's end: the supervisor's commands, and what the process tells it."""

    def __init__(self) -> None:
        """Take the standard streams; whatever prints goes to standard error from now on."""
        self._commands = os.fdopen(os.dup(0), "rb", buffering=0)
        self._told = os.dup(1)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self.start: Start = _START.validate_json(self._line())
        self._lock = threading.Lock()
        self._retire: Callable[[], None] | None = None
        self._has_successor = False
        threading.Thread(target=self._obey, name="evenmatch-supervision", daemon=True).start()

    def _line(self) -> bytes:
        """The next line, with its end; empty: the supervisor is gone."""
        line = bytearray()
        while byte := self._commands.read(1):
            line += byte
            if byte == b"\n":
                break
        return bytes(line)

    def tell(self, line: bytes) -> None:
        """Tell the supervisor SERVING or READY."""
        try:
            os.write(self._told, line)
        except BrokenPipeError:
            return  # it is gone, which `follow` notices

    def on_retirement(self, retire: Callable[[], None] | None) -> None:
        """Call this, in another thread, when the supervisor asks the process to retire; now, if it has asked already.

        None: call nothing until this is called again.
        """
        with self._lock:
            self._retire = retire
            if retire is not None and self._has_successor:
                retire()

    def _obey(self) -> None:
        """Follow the supervisor's commands; its end is a SIGTERM, even if it was killed."""
        while line := self._line():
            if line == RETIRE:
                with self._lock:
                    self._has_successor = True
                    if self._retire is not None:
                        self._retire()
        os.kill(os.getpid(), signal.SIGTERM)


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
