"""The supervisor of several serving processes: it starts them, replaces them, and ends them with itself."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http.logs import log
from evenmatch.http.options import Options
from evenmatch.http.processes.group import CLOSED, READY, RETIRE, SERVING, SharedMemory, Start
from evenmatch.operations.open_database import is_postgresql


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


PREFIX, LOCK = "evenmatch-serve-", "lock"
IN_MEMORY = Path("/dev/shm")
ROOM = 2**30  # free bytes that a file system in memory must have; containers often have 64 MB of it


@contextmanager
def private_folder() -> Iterator[Path]:
    """Create the folder, which is removed at the end. Folders of supervisors that were killed are removed, too."""
    base = _base()
    _remove_abandoned(base)
    folder = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=base))  # mode 0700
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        folder = folder.rename(base / folder.name.removeprefix("."))  # locked: it cannot be taken for an abandoned one
        for name in ("jobs", "sockets"):
            (folder / name).mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _base() -> Path:
    with suppress(OSError):
        if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM:
            return IN_MEMORY
    return Path(tempfile.gettempdir())


def _remove_abandoned(base: Path) -> None:
    """Remove the folders of this user whose supervisor lives no more: their lock is free."""
    for folder in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a process that died is started again: doubled each time
STEADY = 60.0  # seconds that a process must have run, so that the next pause is the first one again
READY_WITHIN = 180.0  # seconds in which the successor of a process must be ready; the first start compiles kernels
END = 0.92  # share of the time to stop after which processes that have not ended are killed
INTERRUPTED = 130


class StartError(EvenmatchError):
    """A serving process ended before the service had begun. status: its exit status; it has printed its error."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"a serving process could not start: it ended with status {status}")


class Supervisor:
    """The serving processes of one listening socket; `run` serves until SIGINT or SIGTERM.

    command   starts a process, which reads a Start
    database  URL with its password;  given  the options of the command line
    """

    def __init__(
        self,
        command: Sequence[str],
        database: str,
        given: Mapping[str, object],
        options: Options,
        listening: socket.socket,
    ) -> None:
        self._command, self._given = command, dict(given)
        self._database = database
        self._options, self._listening = options, listening
        self._processes: dict[int, ServingProcess] = {}  # the present one of each number
        self._all: set[ServingProcess] = set()  # those that retire, too
        self._has_begun = False  # all were ready once
        self._asked_at: float | None = None
        self._is_late = False  # the time to stop is nearly over

    def run(self, serving: Callable[[], None]) -> None:
        """Serve. `serving` is called as soon as requests are answered. Raises StartError."""
        with private_folder() as folder:
            self._folder = folder
            self._memory = SharedMemory.create(folder / "shared")
            asyncio.run(self._run(serving))
        if self._is_late:
            os._exit(0)  # at once: a stop that was requested is not a failure

    async def _run(self, serving: Callable[[], None]) -> None:
        self._stopping, self._reloading = asyncio.Event(), asyncio.Lock()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        supervising = asyncio.create_task(self._supervise(serving))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({supervising, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if supervising.done():
                await supervising  # its error
        finally:
            supervising.cancel()
            await self._end()
            stopping.cancel()

    async def _supervise(self, serving: Callable[[], None]) -> None:
        """Start the first process, which migrates the database and compiles kernels, then the others; keep them up."""
        first = await self._launch(1, is_first=True)
        await first.serving.wait()
        _check_started([first])
        serving()
        await first.ready.wait()
        _check_started([first])
        others = [await self._launch(number) for number in range(2, self._options.workers + 1)]
        for process in others:
            await process.ready.wait()
        _check_started([first, *others])
        self._has_begun = True
        log.info("all serving processes are ready", workers=self._options.workers)
        async with asyncio.TaskGroup() as group:
            for process in (first, *others):
                group.create_task(self._keep_up(process))

    async def _launch(self, number: int, *, is_first: bool = False) -> ServingProcess:
        former = self._processes.get(number)
        cell = 2 * number - 2 if former is None else former.cell ^ 1
        start = Start(
            *(self._database, self._given, self._listening.fileno(), number, self._options.workers, cell),
            *(str(self._folder), is_first),
        )
        process = await ServingProcess.launch(self._command, start)
        self._processes[number] = process
        self._all.add(process)
        log.info("serving process started", worker=number, pid=process.pid)
        return process

    async def _keep_up(self, process: ServingProcess) -> None:
        """Start a process again when it ends, after a growing pause; go on with its successor after a reload."""
        pause = PAUSE
        while True:
            await process.ended.wait()
            self._clear(process)
            if process.successor is None:
                pause = PAUSE if process.seconds > STEADY else pause
                log.error(
                    "serving process ended", worker=process.number, status=process.status, again=f"in {pause:g} s"
                )
                process.successor = await self._replace(process, pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            process = process.successor

    async def _replace(self, process: ServingProcess, pause: float) -> ServingProcess:
        """The successor of a process that died, started after a pause unless a reload does it meanwhile."""
        while True:
            await asyncio.sleep(pause)
            async with self._reloading:
                if process.successor is not None:
                    return process.successor
                try:
                    return await self._launch(process.number)
                except OSError as error:  # no memory for another process
                    log.error("serving process not started", worker=process.number, error=str(error))

    def _clear(self, process: ServingProcess) -> None:
        """Remove what a process that has ended left behind."""
        self._all.discard(process)
        self._memory.connections[process.cell] = CLOSED
        (self._folder / "sockets" / f"{process.number}-{process.cell}").unlink(missing_ok=True)

    # signals

    def _hang_up(self) -> None:
        self._reload_task = asyncio.create_task(self._reload())

    async def _reload(self) -> None:
        """Replace the processes one at a time, each after its successor is ready; stop if one cannot start."""
        if self._reloading.locked() or not self._has_begun:
            log.warning("reload refused", reason="processes are being started")
            return
        async with self._reloading:
            begun = time.monotonic()
            log.info("reload", workers=self._options.workers)
            for number in sorted(self._processes):
                old = self._processes[number]
                new = await self._launch(number)
                if not await new.is_ready(READY_WITHIN):
                    log.error("reload ended", reason="the successor is not ready", worker=number, status=new.status)
                    self._processes[number] = old
                    new.kill()
                    return
                old.successor = new
                old.retire()
                await self._has_retired(old)
            log.info("reloaded", seconds=round(time.monotonic() - begun, 1))

    async def _has_retired(self, process: ServingProcess) -> None:
        """Wait until a process that retires has ended; kill it if it does not end in time."""
        try:
            async with asyncio.timeout(2.0 * self._options.stop_within):
                await process.ended.wait()
        except TimeoutError:
            log.error("killed", worker=process.number, reason="it did not end in time")
            process.kill()
            await process.ended.wait()

    def _stop(self, number: int) -> None:
        """Begin to stop; a second Ctrl-C ends everything at once."""
        if self._asked_at is not None and number == signal.SIGINT:
            _kill(self._all)
            os._exit(INTERRUPTED)
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            for process in self._all:
                process.terminate()
            self._stopping.set()

    async def _end(self) -> None:
        """End all processes within the time to stop."""
        asked_at = time.monotonic() if self._asked_at is None else self._asked_at
        for process in self._all:
            process.terminate()
        until = asked_at + END * self._options.stop_within
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                for process in list(self._all):
                    await process.ended.wait()
        except TimeoutError:
            late = [process.number for process in self._all if not process.ended.is_set()]
            log.error("killed", workers=sorted(late), reason=f"they did not end within {END:.0%} of the time to stop")
            _kill(self._all)
            self._is_late = self._asked_at is not None
            for process in list(self._all):
                await process.ended.wait()


def _kill(processes: Iterable[ServingProcess]) -> None:
    for process in processes:
        process.kill()


def _check_started(processes: Iterable[ServingProcess]) -> None:
    for process in processes:
        if process.ended.is_set():
            raise StartError(process.status or 1)


def check_supported(workers: int, database: str) -> None:
    """Raise UsageError where several serving processes cannot share a database, of this path or URL."""
    if workers == 1:
        return
    if sys.platform == "win32":
        raise UsageError(f"--workers is {workers}; expected 1, since this system cannot share a listening socket")
    if not is_postgresql(database):
        raise UsageError(
            f"--workers is {workers}, and the database is an SQLite file; expected 1. SQLite has one writer at a time, "
            "which one process keeps busy, and tells other processes of no change. Take PostgreSQL for several "
            "(evenmatch copy copies the database), or leave --workers and EVENMATCH_WORKERS out"
        )
