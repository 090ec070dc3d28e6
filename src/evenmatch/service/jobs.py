"""Background jobs for work that outlives a request: run by one process, visible to all."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evenmatch.errors import BadRowsError, ConflictError, EvenmatchError, StoreError, UnknownNameError
from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import jobs
from evenmatch.ledger.tables.jobs import RUNNING, JobRow
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.replay.ledger_replay import Progress

AT_ONCE = {"operators": 2, "lab": 1}  # jobs that one process runs at a time, by sort; others of the sort wait
TICK = 0.5  # seconds between two writes of progress
BEAT = 10.0  # seconds between two heartbeats of a job whose progress does not change
SILENT = 60_000_000  # microseconds without a heartbeat after which the process counts as dead
SHOWN = 100  # matches that are listed at most when some cannot be rated
STOPPED = "the process that ran this job was stopped; request the job again"
ENDED = "the process that ran this job has ended; request it again"

Work = Callable[[Progress], Mapping[str, object]]


class Job(NamedTuple):
    """The state and progress of a job.

    state   running, done or failed;  done, total  events of the ladder's ledger
    told    why it failed;  result  as JSON values;  problems  (match, reason) of each match that cannot be rated
    """

    job: str
    ladder: str
    kind: str
    state: str
    done: int
    total: int
    begun_at: int
    changed_at: int
    told: str | None = None
    result: Mapping[str, object] | None = None
    problems: tuple[tuple[str, str], ...] = ()


@dataclass
class _Running:
    """A job that this process runs."""

    job: str
    total: int
    sort: str
    done: int = 0
    ended: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """The jobs of a database. Threads may share one instance."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._turns = {sort: threading.Semaphore(count) for sort, count in AT_ONCE.items()}
        self._stopping = threading.Event()
        self._threads: dict[threading.Thread, _Running] = {}

    def begin(
        self, kind: str, ladder: str, work: Work, audit_entry: AuditEntry | None = None, *, sort: str = "operators"
    ) -> tuple[Job, bool]:
        """Start a job on a ladder and return it with True, or return the running job of this kind with False.

        work  called with a function that reports the position reached; returns the result as JSON values
        sort  key of AT_ONCE: jobs of the lab do not delay those of operators
        Raises UnknownNameError for an unknown ladder.
        """
        now = self._clock()
        with self._database.write() as store:
            head = store.lock(ladder)  # so that only one such job starts
            stored = map(self._job, jobs.read_running(store, ladder, kind))
            alive = [job for job in stored if job.state == RUNNING]
            if alive:
                return alive[0], False
            row = JobRow(f"job_{secrets.token_hex(8)}", ladder, kind, RUNNING, 0, head.position, "{}", now, now)
            jobs.insert(store, row)
            if audit_entry is not None:
                audit_entry.note(store, now, row.job)
        self._start(_Running(row.job, head.position, sort), work)
        return self._job(row), True

    def find(self, job: str) -> Job:
        """The job with this name. Raises UnknownNameError."""
        with self._database.read() as store:
            row = jobs.read(store, job)
            if row is None:
                raise UnknownNameError("job", job, jobs.latest_names(store, 20))
        return self._job(row)

    def latest(self, ladder: str, kind: str) -> Job | None:
        """The job of this kind on a ladder that was started last; None if there is none."""
        with self._database.read() as store:
            row = jobs.read_latest(store, ladder, kind)
        return None if row is None else self._job(row)

    def page(self, ladder: str | None = None, before: tuple[int, str] | None = None, limit: int = 50) -> list[Job]:
        """A page of jobs, latest first. before: start time and name of the last job of the previous page."""
        with self._database.read() as store:
            rows = jobs.read_page(store, ladder, before, limit)
        return [self._job(row) for row in rows]

    def ask_to_stop(self) -> None:
        """Ask the running jobs to stop; a stopped job is stored as failed."""
        self._stopping.set()

    def stop(self, within: float) -> None:
        """Ask the running jobs to stop, and wait at most `within` seconds; those that go on are stored as failed."""
        self.ask_to_stop()
        until = time.monotonic() + within
        for thread in list(self._threads):
            thread.join(max(0.0, until - time.monotonic()))
        for running in list(self._threads.values()):
            running.ended.set()  # so that its heartbeat does not say that it is running
            self._write(running, "failed", {"told": STOPPED})

    def _job(self, row: JobRow) -> Job:
        job, ladder, kind, state, done, total, text, begun_at, changed_at = row
        content = json.loads(text)
        told = content.get("told")
        if state == RUNNING and self._clock() - changed_at > SILENT:
            state, told = "failed", ENDED
        problems = tuple((match, reason) for match, reason in content.get("problems", ()))
        return Job(job, ladder, kind, state, done, total, begun_at, changed_at, told, content.get("result"), problems)

    # running them

    def _start(self, running: _Running, work: Work) -> None:
        def run() -> None:
            beat = threading.Thread(target=self._beat, args=(running,), name=f"beat-{running.job}", daemon=True)
            beat.start()
            try:
                state, content = self._do(running, work)
            finally:
                running.ended.set()
                beat.join()
            self._end(running, state, content)
            self._threads.pop(thread, None)

        thread = threading.Thread(target=run, name=running.job, daemon=True)
        self._threads[thread] = running
        thread.start()

    def _do(self, running: _Running, work: Work) -> tuple[str, dict[str, object]]:
        def progress(position: int) -> None:
            running.done = min(position, running.total)
            self._check_stopping()

        try:
            with self._turns[running.sort]:
                self._check_stopping()
                result = work(progress)
            running.done = running.total
            return "done", {"result": dict(result)}
        except BadRowsError as error:
            listed = [(problem.match_id or "", problem.reason) for problem in error.problems[:SHOWN]]
            return "failed", {"told": f"{error.source}: {error.count}; {error.outcome}", "problems": listed}
        except EvenmatchError as error:
            return "failed", {"told": str(error)}
        except Exception:
            logging.getLogger("evenmatch.jobs").exception("job %s failed by a bug", running.job)
            return "failed", {"told": f"internal error; the server log describes it under {running.job}"}

    def _check_stopping(self) -> None:
        if self._stopping.is_set():
            raise ConflictError(STOPPED)

    def _beat(self, running: _Running) -> None:
        """Write the progress from a separate thread, since the work itself runs inside transactions."""
        written, written_at = 0, time.monotonic()
        while not running.ended.wait(TICK):
            if running.done == written and time.monotonic() - written_at < BEAT:
                continue
            written, written_at = running.done, time.monotonic()
            self._write(running, RUNNING, {})

    def _end(self, running: _Running, state: str, content: dict[str, object]) -> None:
        for wait in (0.5, 1.0, 2.0, 4.0, 8.0):
            if self._write(running, state, content):
                return
            self._stopping.wait(wait)

    def _write(self, running: _Running, state: str, content: dict[str, object]) -> bool:
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        try:
            with self._database.write() as store:
                now = self._clock()
                jobs.set_progress(store, running.job, state=state, done=running.done, content=text, now=now)
        except StoreError as error:
            logging.getLogger("evenmatch.jobs").warning("job %s: cannot store its progress: %s", running.job, error)
            return False
        return True
