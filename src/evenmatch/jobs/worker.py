"""Carry out tasks on ladders: small ones at once, others as jobs in worker processes.

Each large task has a process of its own, with a lower priority, so it delays no request and leaves no memory behind. A
task is cancelled by killing its process: the ledger then contains either the whole correction or none of it.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection

from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.corrections.replay import Progress, ReplayTooLargeError
from evenmatch.errors import EvenmatchError, JobCancelledError, StoreError
from evenmatch.jobs.jobs import Job, Jobs
from evenmatch.jobs.tasks import Outline, Task, is_recorded, named
from evenmatch.ledger.database import Database
from evenmatch.operations.clock import DatabaseClock
from evenmatch.operations.service import Service

PROCESSES = multiprocessing.get_context("spawn")
NICE = 5  # requests that the service answers come first
LOOK = 0.1  # seconds between checks for cancellation
SMALL = 5000  # events and states of the largest replay that does not justify starting a worker process


class WorkerLostError(StoreError):
    """A worker process died; the ledger contains either the whole correction or none of it."""


class LadderWork:
    """The tasks of one process. Safe to share between threads.

    small  the largest size of a task that a thread of this process does
    """

    def __init__(self, service: Service, jobs: Jobs, small: int = SMALL) -> None:
        self._service, self._jobs, self.small = service, jobs, small

    def do(self, task: Task) -> Mapping[str, object] | Job:
        """Do a small task and return its result; for a larger one, return its job, new or already running.

        Raises what the task raises for a wrong request, BusyError if too many jobs wait.
        """
        task = named(task)
        outline = self._outline(task)
        if outline.size <= self.small:
            with suppress(ReplayTooLargeError):  # a rebuild has become due since
                return task.run(self._service.limited(self.small), _no_progress)
        return self._begin(task, outline)[0]

    def begin(self, task: Task, audit_entry: AuditEntry | None = None, *, alone: bool = False) -> tuple[Job, bool]:
        """Start a job for a task of any size and return it with True, or return an equal job with False.

        alone  see Jobs.begin
        """
        task = named(task)
        return self._begin(task, self._outline(task), audit_entry, alone=alone)

    def _outline(self, task: Task) -> Outline:
        with self._service.reading(task.ladder) as (store, head):
            return task.outline(store, head)

    def _begin(
        self, task: Task, outline: Outline, audit_entry: AuditEntry | None = None, *, alone: bool = False
    ) -> tuple[Job, bool]:
        def work(progress: Progress) -> Mapping[str, object]:
            if outline.size <= self.small:
                with suppress(ReplayTooLargeError):
                    return task.run(self._service.limited(self.small), progress)
            return self._elsewhere(task, progress)

        return self._jobs.begin(
            *(task.kind, task.ladder, work, audit_entry), request=outline.request, as_of=outline.as_of, alone=alone
        )

    def _elsewhere(self, task: Task, progress: Progress) -> Mapping[str, object]:
        try:
            return run_in_process(self._service.database.address, task, progress)
        except (JobCancelledError, WorkerLostError):
            if not self._is_recorded(task):
                raise
            return task.run(self._service, _no_progress)  # it was stored; only the result is missing
        finally:
            self._service.forget(task.ladder)

    def _is_recorded(self, task: Task) -> bool:
        """True if the task was stored before its process ended; waits for a commit in progress."""
        with self._service.database.write() as store:
            return is_recorded(task, store, store.lock(task.ladder))


def run_in_process(url: str, task: Task, progress: Progress) -> Mapping[str, object]:
    """Do a task in a process of its own and return its result.

    url       of the database, with its password; sent through a pipe, so no process list shows it
    progress  called with the position reached, several times a second; if it raises, the process is killed
    Raises what the task or `progress` raises, WorkerLostError if the process dies.
    """
    reports, sending = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_work, args=(url, task, sending), name="evenmatch-worker", daemon=True)
    process.start()
    sending.close()  # so that the end of the process ends the pipe
    kind, content = "progress", 0
    try:
        while kind == "progress":
            if reports.poll(LOOK):
                kind, content = reports.recv()
            if kind == "progress":
                progress(content)
    except (EOFError, OSError):
        process.join()
        raise WorkerLostError(
            f"the worker process was killed (status {process.exitcode}); request the job again"
        ) from None
    finally:
        process.kill()
        process.join()
        reports.close()
    return _result(kind, content)


def _result(kind: str, content: object) -> Mapping[str, object]:
    if isinstance(content, EvenmatchError):
        raise content
    if kind == "bug":
        raise RuntimeError(f"a worker process failed:\n{content}")
    assert isinstance(content, dict)
    return content


def _work(url: str, task: Task, reports: Connection) -> None:
    """Do a task in this worker process and send its result, or the error, to the parent."""
    gc.disable()  # a task makes millions of rows and few cycles; the process ends with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        database = Database.open(url, yielding=True)
        with Service(database, DatabaseClock(database.time)) as service:
            reports.send(("done", dict(task.run(service, lambda position: reports.send(("progress", position))))))
    except EvenmatchError as error:
        reports.send(("failed", error))
    except Exception:
        reports.send(("bug", traceback.format_exc()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _no_progress(_: int) -> None:
    """Ignore the progress of a small task."""
