"""A real process that serves, on a real socket; asked by plain httpx."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx
import psutil

COMMAND = (sys.executable, "-m", "evenmatch", "serve", "--port", "0", "--db")
SLOWEST = 180.0  # seconds in which a process must be there, or gone, on a busy machine


class Served:
    """`evenmatch serve` over a database, on a free port; begun anew as often as a test wishes."""

    def __init__(self, db: str, folder: Path, *, open_files: int | None = None, **environment: str) -> None:
        """open_files: how many files the process may have open; None: as many as this one."""
        self._db, self._log, self._open_files = db, folder / "log", open_files
        self._environment = {**os.environ, "EVENMATCH_STOP_WITHIN": "5", **environment}
        self.address = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.launch()
        self.wait_for_address()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def launch(self) -> None:
        """Start the process, and do not wait."""
        with self._log.open("ab") as log:
            limit = [] if self._open_files is None else ["prlimit", f"--nofile={self._open_files}"]
            self._process = subprocess.Popen(
                [*limit, *COMMAND, self._db], stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )

    def wait_for_address(self) -> None:
        """Until it answers requests."""
        assert self._process is not None
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], SLOWEST)[0], self.told()
        line = self._process.stdout.readline()
        assert line.startswith("serving at "), self.told()
        self.address = line.split()[2]

    @property
    def process_id(self) -> int:
        """The id of the process."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._ended()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """While the block runs, the process does nothing at all."""
        os.kill(self.process_id, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process_id, signal.SIGCONT)

    def kill(self) -> None:
        """End it by SIGKILL, if it is there."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self._ended()

    def _ended(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        code = self._process.wait(SLOWEST)
        self._process.stdout.close()
        return code

    @property
    def memory(self) -> float:
        """Megabytes that it has in memory."""
        assert self._process is not None
        return psutil.Process(self._process.pid).memory_info().rss / 2**20

    def told(self) -> str:
        """What it wrote to standard error."""
        return whole_lines(self._log)

    def client(self, key: str) -> httpx.Client:
        """Asks it with a key, or a player's token."""
        return httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {key}"}, timeout=SLOWEST)


def whole_lines(log: Path) -> str:
    """The complete lines of a log that a process is still writing.

    A line is written by one call, but a reader may see its first part: the part up to the end of a memory page.
    """
    written, end, _ = log.read_bytes().rpartition(b"\n")
    return (written + end).decode()


def request_json(
    client: httpx.Client, method: str, address: str, body: object = None, *, status: int = 200
) -> dict[str, object]:
    """The answer's body, where the status is the one that is expected."""
    told = client.request(method, address, json=body) if body is not None else client.request(method, address)
    assert told.status_code == status, f"{method} {address}: {told.status_code} {told.text}"
    found = told.json() if told.content else {}
    assert isinstance(found, dict)
    return found


def wait_until_waiting_ends(client: httpx.Client, address: str, change: int) -> dict[str, object]:
    """A ticket once it is offered a match, is in one, or is gone."""
    deadline = time.monotonic() + SLOWEST
    while True:
        found = request_json(client, "GET", f"{address}?after={change}&wait=10")
        if found["state"] != "waiting":
            return found
        change = int(str(found["change"]))
        assert time.monotonic() < deadline, found
