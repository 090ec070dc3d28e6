"""Do the tasks on ladders: small ones at once, others as jobs in worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from evenmatch.errors import JobCancelledError
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.jobs import Job, Jobs, Work
from evenmatch.service.replay.ledger_replay import Progress
from evenmatch.service.service import Service
from evenmatch.service.work.tasks import Outline, Task, is_recorded, named
from evenmatch.service.work.worker_process import WorkerLostError, run_in_process

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
