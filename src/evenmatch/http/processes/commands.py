"""Messages between a supervisor and a serving process, in lines through the process's standard streams."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

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
