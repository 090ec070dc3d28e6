"""Start a worker process for a task, follow it, and end it."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection

from evenmatch.errors import EvenmatchError, JobCancelledError, StoreError
from evenmatch.service.replay.ledger_replay import Progress
from evenmatch.service.work.tasks import Task

COMMAND = (sys.executable, "-m", "evenmatch.service.work.worker")
LOOK = 0.1  # seconds between two checks whether the task shall go on
GRACE = 4.0  # seconds that a worker has to end by itself when the service stops
SILENT = 30.0  # seconds without a heartbeat after which a worker is killed
UNANSWERED = 5.0  # the same after it was asked to stop


class WorkerLostError(StoreError):
    """A worker process died, or was killed since it did not answer; its cause: why it had been asked to stop."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the worker process {what}; the list of corrections shows whether the job was done: if it was not, "
            "request it again"
        )


def run_in_process(url: str, task: Task, progress: Progress) -> Mapping[str, object]:
    """Do a task in a process of its own and return its result.

    url       of the database, with its password: it is sent through a pipe, so it is in no list of processes
    progress  called with the position reached, also without news; what it raises stops the task
    Raises what the task raises, or what `progress` raises unless the task was done by then; WorkerLostError if the
    worker dies or is silent for too long, which leaves the ledger as it was or with the whole correction.
    """
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        requests = Connection(os.dup(child.stdin.fileno()), readable=False)
        reports = Connection(os.dup(child.stdout.fileno()), writable=False)
        try:
            with requests, reports:
                return _followed(child, requests, reports, url, task, progress)
        finally:
            child.kill()  # it has ended by itself unless it did not answer


def _followed(
    child: subprocess.Popen[bytes],
    requests: Connection,
    reports: Connection,
    url: str,
    task: Task,
    progress: Progress,
) -> Mapping[str, object]:
    """Send the task and follow it until it has ended or `progress` raises."""
    with suppress(OSError):  # it has died: told below
        requests.send_bytes(url.encode())
        requests.send_bytes(pickle.dumps(task))
    position, silence = 0, 0.0  # of looks only, so that a pause of this process does not count
    asked: EvenmatchError | None = None
    until = math.inf
    while True:
        if asked is None:
            try:
                progress(position)
            except EvenmatchError as error:
                asked, silence = error, 0.0
                # Killed while it stores the result, it would leave unknown what it did: a cancelled one is waited for.
                until = math.inf if isinstance(error, JobCancelledError) else time.monotonic() + GRACE
                with suppress(OSError):
                    requests.send_bytes(b"stop")
        if asked is not None and time.monotonic() >= until:
            raise asked
        if not reports.poll(LOOK):
            silence += LOOK
            longest = SILENT if asked is None else UNANSWERED
            if silence > longest:
                raise WorkerLostError(f"did not answer for {longest:g} seconds and was killed") from asked
            continue
        silence = 0.0
        kind, content = _received(child, reports)
        if kind == "progress":
            position = int(str(content))
        elif kind != "beat":
            if asked is not None and kind != "done":
                raise asked
            return _result(kind, content)


def _received(child: subprocess.Popen[bytes], reports: Connection) -> tuple[str, object]:
    try:
        kind, content = reports.recv()
    except (EOFError, OSError):
        status = child.wait()
        raise WorkerLostError(f"ended unexpectedly (status {status})") from None
    return kind, content


def _result(kind: str, content: object) -> Mapping[str, object]:
    if isinstance(content, EvenmatchError):
        raise content
    if kind == "bug":
        raise RuntimeError(f"a worker process failed:\n{content}")
    assert isinstance(content, dict)
    return content
