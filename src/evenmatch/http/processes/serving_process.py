"""A serving process as its supervisor sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from evenmatch.http.processes.commands import READY, RETIRE, SERVING, Start


class ServingProcess:
    """A running process. serving, ready, ended: set when it says so, or when it has ended."""

    def __init__(self, child: asyncio.subprocess.Process, start: Start) -> None:
        self._child = child
        self.number, self.cell = start.number, start.cell
        self.serving, self.ready, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.successor: ServingProcess | None = None
        self.begun = time.monotonic()
        self._following = asyncio.create_task(self._follow())

    @classmethod
    async def launch(cls, command: Sequence[str], start: Start) -> Self:
        """Start a process with its own process group, so that Ctrl-C in a terminal reaches the supervisor alone."""
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(start.listening,),
            start_new_session=True,
        )
        process = cls(child, start)
        process._send(start.line())
        return process

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._child.pid

    @property
    def status(self) -> int | None:
        """The exit status; negative: the number of the signal that ended it; None: it runs."""
        return self._child.returncode

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.begun

    async def _follow(self) -> None:
        assert self._child.stdout is not None
        while line := await self._child.stdout.readline():
            if line == SERVING:
                self.serving.set()
            elif line == READY:
                self.ready.set()
        await self._child.wait()
        self.ended.set()
        self.serving.set()
        self.ready.set()

    async def is_ready(self, within: float | None = None) -> bool:
        """Wait until it is ready; False: it has ended, or is not ready within some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.ready.wait()
        return self.ready.is_set() and not self.ended.is_set()

    def retire(self) -> None:
        """Ask it to answer what it has accepted, and to end."""
        self._send(RETIRE)

    def _send(self, line: bytes) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line)  # if it has died, `ended` says so

    def terminate(self) -> None:
        """Ask it to stop."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._child.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, number)
