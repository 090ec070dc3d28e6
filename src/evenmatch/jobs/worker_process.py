"""Carry out tasks on ladders: small ones at once, others in a worker process that is followed here."""

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

from evenmatch.accounts.audit_entries import AuditEntry
from evenmatch.corrections.replay import Progress
from evenmatch.errors import EvenmatchError, JobCancelledError, StoreError
from evenmatch.jobs.jobs import Job, Jobs, Work
from evenmatch.jobs.tasks import Outline, Task, is_recorded, named
from evenmatch.operations.service import Service

COMMAND = (sys.executable, "-m", "evenmatch.jobs.worker")
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


SMALL = 5000  # events to replay and states to write, for which a worker process is not worth its start


class _LargerError(Exception):
    """A task turned out to be larger than its outline: the checkpoint that it would have begun from is gone."""


class LadderWork:
    """The tasks of one process. Safe to share between threads.

    small  the largest size of a task that is done by a thread of this process
    """

    def __init__(self, service: Service, jobs: Jobs, small: int = SMALL) -> None:
        self._service, self._jobs, self.small = service, jobs, small

    def do(self, task: Task) -> Mapping[str, object] | Job:
        """Do a small task and return its result; start a job for another one, or find the job that does the same.

        Raises what the task raises for a wrong request, BusyError if too many jobs wait.
        """
        task = named(task)
        outline, last = self._outline(task)
        if outline.size <= self.small:
            with suppress(_LargerError):
                return task.run(self._service, self._limited(last, _no_progress))
        return self._begin(task, outline, last, None)[0]

    def begin(self, task: Task, audit_entry: AuditEntry | None = None, *, alone: bool = False) -> tuple[Job, bool]:
        """Start a job for a task of any size and return it with True, or the job that does the same with False.

        alone  see Jobs.begin
        """
        task = named(task)
        return self._begin(task, *self._outline(task), audit_entry, alone=alone)

    def _outline(self, task: Task) -> tuple[Outline, int]:
        """The outline of a task, and the ladder's last position that it is from."""
        with self._service.reading(task.ladder) as (store, head):
            return task.outline(store, head), head.position

    def _begin(
        self, task: Task, outline: Outline, last: int, audit_entry: AuditEntry | None, *, alone: bool = False
    ) -> tuple[Job, bool]:
        work = self._work(task, outline, last)
        return self._jobs.begin(
            *(task.kind, task.ladder, work, audit_entry), request=outline.request, as_of=outline.as_of, alone=alone
        )

    def _work(self, task: Task, outline: Outline, last: int) -> Work:
        def here(progress: Progress) -> Mapping[str, object]:
            try:
                return task.run(self._service, self._limited(last, progress))
            except _LargerError:
                return elsewhere(progress)

        def elsewhere(progress: Progress) -> Mapping[str, object]:
            try:
                return run_in_process(self._service.database.address, task, progress)
            except WorkerLostError as lost:
                if self._is_recorded(task):
                    return task.run(self._service, _no_progress)
                if isinstance(lost.__cause__, JobCancelledError):
                    raise lost.__cause__ from None
                raise
            finally:
                self._service.forget(task.ladder)

        return here if outline.size <= self.small else elsewhere

    def _limited(self, last: int, progress: Progress) -> Progress:
        """A progress that ends a task before it replays more events than a small one, up to a position."""

        def limited(position: int) -> None:
            if last - position > self.small:
                raise _LargerError
            progress(position)

        return limited

    def _is_recorded(self, task: Task) -> bool:
        """Whether a task whose worker was lost was done; waits for the end of what the worker was storing."""
        with self._service.database.write() as store:
            return is_recorded(task, store, store.lock(task.ladder))


def _no_progress(_: int) -> None:
    """Ignore the position of a small task."""
