"""Background jobs for work that outlives a request. One process runs each job; all processes see it in the database.

Equal requests share a job. A few jobs run at a time in a process; the others wait in line. The process that runs or
queues a job stores its progress every second. A job whose process is killed is therefore soon reported as failed.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.corrections.replay import Progress
from evenmatch.durations import DAY, SECOND
from evenmatch.errors import (
    BadRowsError,
    BusyError,
    ConflictError,
    EvenmatchError,
    JobCancelledError,
    JobStoppedError,
    StoreError,
    UnknownNameError,
)
from evenmatch.jobs import job_sql
from evenmatch.jobs.job_sql import CANCELLING, RUNNING, UNFINISHED, JobRow
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.times import Time

WAITING_LIMIT, LADDER_WAITING_LIMIT = 64, 16  # jobs that may wait in a line: of all ladders, and of one ladder
RETRY_AFTER = 30.0  # seconds that a client should wait when the line is full
BEAT = 1.0  # seconds between writes of progress
LOST_AFTER = 15 * SECOND  # a job without progress for this long counts as lost
KEPT = DAY  # age at which a reusable result is deleted
PROBLEMS_LISTED = 100  # unrateable matches listed at most
STORE_RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between attempts to store the end of a job
STOPPED = "the process that ran this job was stopped; request the job again"
LOST = "the process that ran this job has ended; request it again"
CANCELLED = "cancelled; nothing was changed"
BEING_CANCELLED = "is being cancelled"

Work = Callable[[Progress], Mapping[str, object]]
log = logging.getLogger("evenmatch.jobs")


JobState = Literal["running", "done", "failed", "cancelled"]


class Job(NamedTuple):
    """A background job and its progress.

    kind     preview, correction, season, rebuild, verify or update; `policy of QUEUE`: the fit of a queue's policy; in
             the lab: backtest, tuning, what-if or suspects
    done     ledger events processed so far
    total    ledger events to process
    told     why the job failed, or that it is being cancelled
    result   the result of a finished job; for a request answered with 202, the answer it would have had
    problems  matches that cannot be rated, if the job failed because of them
    ahead    jobs ahead of it in the queue; 0: it is running or has ended
    """

    job: str
    ladder: str
    kind: str
    state: JobState
    done: int
    total: int
    begun_at: Time
    changed_at: Time
    told: str | None = None
    result: Mapping[str, object] | None = None
    problems: tuple[tuple[str, str], ...] = ()
    ahead: int = 0


@dataclass(eq=False)
class _Running:
    """A job that runs or waits in this process."""

    job: str
    ladder: str
    total: int
    sort: str
    done: int = 0
    has_begun: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    future: Future[EvenmatchError | None] | None = None


class Jobs:
    """The jobs of a database. Threads may share one instance.

    at_once  operators' jobs that run at a time in this process; the lab runs one more
    """

    def __init__(self, database: Database, clock: Callable[[], int], at_once: int = 1) -> None:
        self._database, self._clock = database, clock
        self._lines = {
            "operators": ThreadPoolExecutor(at_once, "evenmatch-job"),
            "lab": ThreadPoolExecutor(1, "evenmatch-lab-job"),
        }
        self._running: dict[str, _Running] = {}
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._is_beating = False

    def begin(
        self,
        kind: str,
        ladder: str,
        work: Work,
        audit_entry: AuditEntry | None = None,
        *,
        sort: str = "operators",
        request: str = "",
        as_of: str | None = None,
        alone: bool = False,
    ) -> tuple[Job, bool]:
        """Start a job on a ladder and return it with True, or return the job that does the same with False.

        work     called with a function that reports the position reached; returns the result as JSON values
        sort     "operators" or "lab", which have a line each
        request  identifies the request among those of a kind on a ladder; empty: all of them are equal
        as_of    the state that the result depends on; a finished job with the same value is reused. None: no reuse
        alone    raise ConflictError if a job of this kind runs on the ladder for another request
        Raises UnknownNameError for an unknown ladder, BusyError if too many jobs wait.
        """
        now = self._clock()
        with self._database.write() as store:
            head = store.lock(ladder)  # so that only one such job starts
            same = self._same(store, kind, ladder, request, as_of, alone=alone)
            if same is not None:
                return same, False
            self._check_line(sort, ladder)
            name, total = f"job_{secrets.token_hex(8)}", head.position
            row = JobRow(name, ladder, kind, request, as_of, RUNNING, 0, total, "{}", now, now)
            if as_of is not None:
                job_sql.delete_before(store, ladder, kind, now - KEPT)
            job_sql.insert(store, row)
            if audit_entry is not None:
                audit_entry.note(store, now, name)
        self._start(_Running(name, ladder, total, sort), work)
        return self._job(row), True

    def _same(
        self, store: Store, kind: str, ladder: str, request: str, as_of: str | None, *, alone: bool
    ) -> Job | None:
        """An equal job that is running, or one whose result is still valid."""
        for row in job_sql.read_unfinished(store, ladder, kind):
            job = self._job(row)
            if job.state != RUNNING:
                content = json.dumps({"told": job.told})
                job_sql.set_end(store, row.job, state="failed", done=row.done, content=content, now=row.changed_at)
            elif row.state != CANCELLING and (row.request, row.as_of) == (request, as_of):
                return job
            elif row.state != CANCELLING and row.request != request and alone:
                raise ConflictError(
                    f"{row.job} is changing the {kind} of ladder {ladder!r}; try again when it has ended"
                )
        done = None if as_of is None else job_sql.read_done(store, ladder, kind, request, as_of)
        return None if done is None else self._job(done)

    def _check_line(self, sort: str, ladder: str) -> None:
        """Raise BusyError if the line is full."""
        waiting = [other.ladder for other in self._of_sort(sort) if not other.has_begun]
        own = waiting.count(ladder)
        if own >= LADDER_WAITING_LIMIT or len(waiting) >= WAITING_LIMIT:
            jobs = f"{own} jobs of ladder {ladder!r}" if own >= LADDER_WAITING_LIMIT else f"{len(waiting)} jobs"
            raise BusyError(f"{jobs} are waiting for their turn; try again when some have ended", RETRY_AFTER)

    def find(self, job: str, ladder: str | None = None) -> Job:
        """The job with this name. Raises UnknownNameError, also for a job of another ladder if one is named."""
        with self._database.read() as store:
            row = job_sql.read(store, job)
        if row is None or ladder not in (None, row.ladder):
            raise UnknownNameError("job" if ladder is None else f"job of ladder {ladder!r}", job, ())
        return self._job(row)

    def latest(self, ladder: str, kind: str) -> Job | None:
        """The job of this kind on a ladder that was started last; None if there is none."""
        with self._database.read() as store:
            row = job_sql.read_latest(store, ladder, kind)
        return None if row is None else self._job(row)

    def page(self, ladder: str | None = None, before: tuple[int, str] | None = None, limit: int = 50) -> list[Job]:
        """A page of jobs, latest first. before: start time and name of the last job of the previous page."""
        with self._database.read() as store:
            rows = job_sql.read_page(store, ladder, before, limit)
        return [self._job(row) for row in rows]

    def ending(self, job: str) -> Future[EvenmatchError | None] | None:
        """A future of the error of a job, resolved once its end is stored; None if it has ended or runs elsewhere."""
        running = self._running.get(job)
        return None if running is None else running.future

    def cancel(self, job: str, audit_entry: AuditEntry | None = None) -> Job:
        """Ask a job to end without a result, in whichever process it runs, and return it.

        A job may still finish before it sees the request. Raises UnknownNameError.
        """
        if self.find(job).state == RUNNING:
            with self._database.write() as store:
                job_sql.request_end(store, job)
                if audit_entry is not None:
                    audit_entry.note(store, self._clock(), job)
            if (running := self._running.get(job)) is not None:
                self._cancel(running)
        return self.find(job)

    def ask_to_stop(self) -> None:
        """Ask the running jobs to stop; a stopped job is stored as failed."""
        self._stopping.set()

    def stop(self, within: float) -> None:
        """Ask the running jobs to stop, wait up to `within` seconds, and store those still running as failed."""
        self.ask_to_stop()
        futures = [running.future for running in list(self._running.values()) if running.future is not None]
        wait([future for future in futures if not future.cancel()], within)  # waiting jobs never begin
        for running in list(self._running.values()):
            self._store(running, "failed", {"told": STOPPED})
            self._running.pop(running.job, None)

    def _of_sort(self, sort: str) -> list[_Running]:
        return [other for other in list(self._running.values()) if other.sort == sort]

    def _ahead(self, running: _Running) -> int:
        line = self._of_sort(running.sort)
        return 0 if running.has_begun or running not in line else line.index(running)

    def _job(self, row: JobRow) -> Job:
        content = json.loads(row.content)
        state, done, told, ahead = cast("JobState", row.state), row.done, content.get("told"), 0
        if state in UNFINISHED:
            told = BEING_CANCELLED if state == CANCELLING else None
            state, ahead = "running", content.get("ahead", 0)
            running = self._running.get(row.job)
            if running is not None:
                done, ahead = running.done, self._ahead(running)
            elif self._clock() - row.changed_at > LOST_AFTER:
                state, told = "failed", LOST
        problems = tuple((match, reason) for match, reason in content.get("problems", ()))
        times = (row.begun_at, row.changed_at)
        return Job(
            *(row.job, row.ladder, row.kind, state, done, row.total, *times, told, content.get("result")),
            *(problems, ahead),
        )

    # running them

    def _start(self, running: _Running, work: Work) -> None:
        self._running[running.job] = running
        running.future = self._lines[running.sort].submit(self._run, running, work)
        with self._guard:
            if not self._is_beating:
                self._is_beating = True
                threading.Thread(target=self._beat, name="evenmatch-job-progress", daemon=True).start()

    def _run(self, running: _Running, work: Work) -> EvenmatchError | None:
        """Do the work, store the end of the job, and return its error."""
        running.has_begun = True
        error: EvenmatchError | None = None
        try:
            self._report(running, 0)
            content: dict[str, object] = {"result": dict(work(lambda position: self._report(running, position)))}
            state, running.done = "done", running.total
        except JobStoppedError as caught:
            state, content, error = "failed", {"told": STOPPED}, caught
        except JobCancelledError as caught:
            state, content, error = "cancelled", {"told": CANCELLED}, caught
        except EvenmatchError as caught:
            state, content, error = "failed", _failure(caught), caught
        except Exception:
            log.exception("job %s failed because of a bug", running.job)
            error = StoreError(f"internal error; the server log describes it under {running.job}")
            state, content = "failed", {"told": str(error)}
        self._end(running, state, content)
        return error

    def _report(self, running: _Running, position: int) -> None:
        """Note the position reached. Raises JobCancelledError if cancelled, JobStoppedError if the process stops."""
        running.done = min(position, running.total)
        if running.cancelled.is_set():
            raise JobCancelledError(f"{running.job} was cancelled; nothing was changed")
        if self._stopping.is_set():
            raise JobStoppedError(STOPPED)

    def _cancel(self, running: _Running) -> None:
        running.cancelled.set()
        if running.future is not None and running.future.cancel():  # it has not begun
            self._end(running, "cancelled", {"told": CANCELLED})

    def _end(self, running: _Running, state: str, content: Mapping[str, object]) -> None:
        for pause in (*STORE_RETRIES, None):
            if self._store(running, state, content) or pause is None:
                break
            self._stopping.wait(pause)
        self._running.pop(running.job, None)

    def _beat(self) -> None:
        """Write the progress of all jobs from a thread of its own, since the work itself runs inside transactions."""
        while True:
            time.sleep(BEAT)
            for running in list(self._running.values()):
                self._store_progress(running)
            with self._guard:
                if not self._running:
                    self._is_beating = False
                    return

    def _store_progress(self, running: _Running) -> None:
        content = json.dumps({"ahead": self._ahead(running)})
        try:
            with self._database.write() as store:
                now = self._clock()
                state = job_sql.set_progress(store, running.job, done=running.done, content=content, now=now)
        except StoreError as error:
            log.warning("job %s: cannot store its progress: %s", running.job, error)
        else:
            if state == CANCELLING and not running.cancelled.is_set():
                self._cancel(running)

    def _store(self, running: _Running, state: str, content: Mapping[str, object]) -> bool:
        """Store the end of a job; False if the database fails."""
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        try:
            with self._database.write() as store:
                job_sql.set_end(store, running.job, state=state, done=running.done, content=text, now=self._clock())
        except StoreError as error:
            log.warning("job %s: cannot store its end: %s", running.job, error)
            return False
        return True


def _failure(error: EvenmatchError) -> dict[str, object]:
    if not isinstance(error, BadRowsError):
        return {"told": str(error)}
    listed = [(problem.match_id or "", problem.reason) for problem in error.problems[:PROBLEMS_LISTED]]
    return {"told": f"{error.source}: {error.count}; {error.outcome}", "problems": listed}
