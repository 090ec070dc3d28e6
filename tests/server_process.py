"""A real process that serves, on a real socket; asked by plain httpx."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx

COMMAND = (sys.executable, "-m", "evenmatch", "serve", "--port", "0", "--db")
SLOWEST = 60.0  # seconds in which a process must be there, or gone


class Served:
    """`evenmatch serve` over a database, on a free port; begun anew as often as a test wishes."""

    def __init__(self, db: str, folder: Path, **environment: str) -> None:
        self._db, self._log = db, folder / "log"
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
            self._process = subprocess.Popen(
                [*COMMAND, self._db], stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
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

    def told(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text(encoding="utf-8")

    def client(self, key: str) -> httpx.Client:
        """Asks it with a key, or a player's token."""
        return httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {key}"}, timeout=SLOWEST)


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
