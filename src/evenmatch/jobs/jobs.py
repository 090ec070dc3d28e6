"""Background jobs for work that outlives a request: one process runs each, all processes see it.

Equal requests share a job. Few jobs run at a time on a machine, and one per ladder; the others wait in line.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, cast

from evenmatch.accounts.audit_entries import AuditEntry
from evenmatch.corrections.replay import Progress
from evenmatch.errors import (
    BadRowsError,
    BusyError,
    ConflictError,
    EvenmatchError,
    JobCancelledError,
    StoreError,
    UnknownNameError,
)
from evenmatch.jobs import job_sql
from evenmatch.jobs.job_sql import CANCELLING, LIVE, RUNNING, JobRow
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.times import Time


class JobRequest(NamedTuple):
    """A requested job; one that does the same already is joined instead.

    request  equal for equal requests of a kind on a ladder; empty: all requests of the kind are equal
    as_of    what the result depends on: a finished job with the same value is reused; None: none is
    """

    kind: str
    ladder: str
    request: str = ""
    as_of: str | None = None


class JobSlots:
    """Some files in a private folder; a job runs while its process has locked one, which the end of it releases.

    sort     of jobs: each has files of its own
    at_once  number of files
    """

    def __init__(self, folder: Path, sort: str, at_once: int) -> None:
        self._paths = [folder / f"{sort}-{number}" for number in range(at_once)]

    def take(self) -> int | None:
        """Lock a free one and return its descriptor, which the caller closes; None: there is none now."""
        for path in self._paths:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            os.close(handle)
        return None


LOOK = 0.2  # seconds between two checks of a waiting job whether it shall go on waiting
RETRY = 30.0  # seconds after which a request that found the line full may be sent again


class JobLine:
    """The jobs of one sort, running or waiting. Safe to share between threads.

    at_once  jobs that run at a time;  longest  jobs that may wait, of all ladders;  of_ladder  and of one ladder
    slots    shared with the other serving processes of this machine; None: this is the only one
    """

    def __init__(self, at_once: int, longest: int, of_ladder: int, slots: JobSlots | None = None) -> None:
        self._at_once, self._longest, self._of_ladder, self._slots = at_once, longest, of_ladder, slots
        self._held: dict[str, int] = {}  # the slot of a running job
        self._waiting: list[tuple[str, str]] = []  # (job, ladder) in order
        self._running: dict[str, str] = {}  # ladder by job
        self._changed = threading.Condition()

    def check(self, ladder: str) -> None:
        """Raise BusyError if no other job of this ladder may wait now."""
        with self._changed:
            own = sum(waiting == ladder for _, waiting in self._waiting)
            if own >= self._of_ladder or len(self._waiting) >= self._longest:
                whose = f"{own} jobs of ladder {ladder!r}" if own >= self._of_ladder else f"{len(self._waiting)} jobs"
                raise BusyError(f"{whose} wait for their turn already; try again when some have ended", RETRY)

    def join(self, job: str, ladder: str) -> None:
        """Put a job at the end of the line."""
        with self._changed:
            self._waiting.append((job, ladder))

    def ahead(self, job: str) -> int:
        """How many jobs run or wait before a waiting job; 0 for one that runs or has ended."""
        with self._changed:
            names = [waiting for waiting, _ in self._waiting]
            return len(self._running) + names.index(job) if job in names else 0

    def has_begun(self, job: str) -> bool:
        """Whether a job of this line waits no longer."""
        with self._changed:
            return all(waiting != job for waiting, _ in self._waiting)

    @contextmanager
    def turn(self, job: str, check: Callable[[], None]) -> Iterator[None]:
        """Wait for the turn of a job that has joined, and hold it during the block. check: raises to stop waiting."""
        try:
            self._wait(job, check)
            yield
        finally:
            with self._changed:
                self._waiting = [entry for entry in self._waiting if entry[0] != job]
                self._running.pop(job, None)
                held = self._held.pop(job, None)
                if held is not None:
                    os.close(held)
                self._changed.notify_all()

    def _wait(self, job: str, check: Callable[[], None]) -> None:
        while True:
            check()
            with self._changed:
                entry = self._next()
                if entry is not None and entry[0] == job and self._has_slot(job):
                    self._waiting.remove(entry)
                    self._running[job] = entry[1]
                    self._changed.notify_all()
                    return
                self._changed.wait(LOOK)

    def _has_slot(self, job: str) -> bool:
        """Take a slot for a job that may run now, if one is free on this machine."""
        held = None if self._slots is None else self._slots.take()
        if held is not None:
            self._held[job] = held
        return self._slots is None or held is not None

    def _next(self) -> tuple[str, str] | None:
        """The first waiting job that may run now."""
        if len(self._running) >= self._at_once:
            return None
        busy = set(self._running.values())
        return next((entry for entry in self._waiting if entry[1] not in busy), None)


SORTS = ("operators", "lab")  # each has a line of its own
LONGEST, OF_LADDER = 64, 16  # jobs that may wait in a line, of all ladders and of one
TICK = 0.5  # seconds between two writes of progress
BEAT = 2.0  # seconds between two heartbeats of a job whose progress does not change
JOINED = 5_000_000  # microseconds without a heartbeat after which another process's job is no longer joined
SILENT = 60_000_000  # microseconds without a heartbeat after which the process counts as dead
SHOWN = 100  # matches that are listed at most when some cannot be rated
STOPPED = "the process that ran this job was stopped; request the job again"
ENDED = "the process that ran this job has ended; request it again"
CANCELLED = "cancelled; nothing was changed"
CALLED_OFF = "is being cancelled"
REUSED = 20  # latest results among which a reusable one is looked for
KEPT = 86_400_000_000  # microseconds for which reusable results are stored

Work = Callable[[Progress], Mapping[str, object]]


JobState = Literal["running", "done", "failed", "cancelled"]


class Job(NamedTuple):
    """A background job and its progress.

    kind     preview, correction, season, rebuild, verify or update; `policy of QUEUE`: the fit of a queue's policy; in
             the lab: backtest, tuning or what-if
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


@dataclass
class _Running:
    """A job that this process runs, or that waits here for its turn."""

    job: str
    total: int
    sort: str
    about: Mapping[str, object]
    done: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    stored: Future[EvenmatchError | None] = field(default_factory=Future)
    error: EvenmatchError | None = None


class Jobs:
    """The jobs of a database. Threads may share one instance.

    at_once  jobs of operators that run at a time; the lab has one at a time of its own
    folder   private to the serving processes of this machine, which count their jobs together; None: this one is alone
    """

    def __init__(
        self, database: Database, clock: Callable[[], int], at_once: int = 1, folder: Path | None = None
    ) -> None:
        self._database, self._clock = database, clock
        self._lines = {}
        for sort in SORTS:
            most = at_once if sort == "operators" else 1
            slots = None if folder is None else JobSlots(folder, sort, most)
            self._lines[sort] = JobLine(most, LONGEST, OF_LADDER, slots)
        self._stopping = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._running: dict[str, _Running] = {}

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
        sort     of SORTS: jobs of the lab do not delay those of operators
        request, as_of  see JobRequest
        alone    raise ConflictError if the kind has another job on the ladder, with another request
        Raises UnknownNameError for an unknown ladder, BusyError if too many jobs wait.
        """
        now, wanted = self._clock(), JobRequest(kind, ladder, request, as_of)
        with self._database.write() as store:
            head = store.lock(ladder)  # so that only one such job starts
            same = self._same(store, wanted, alone=alone)
            if same is not None:
                return same, False
            self._lines[sort].check(ladder)
            about = {"request": request, "as_of": as_of} if request else {}
            row = JobRow(f"job_{secrets.token_hex(8)}", ladder, kind, RUNNING, 0, head.position, _text(about), now, now)
            if as_of is not None:
                job_sql.delete_before(store, ladder, kind, now - KEPT)
            job_sql.insert(store, row)
            if audit_entry is not None:
                audit_entry.note(store, now, row.job)
        self._start(_Running(row.job, head.position, sort, about), ladder, work)
        return self._job(row), True

    def _same(self, store: Store, wanted: JobRequest, *, alone: bool) -> Job | None:
        """The job that does what is wanted: one that runs, or one whose result still holds."""
        for row in job_sql.read_running(store, wanted.ladder, wanted.kind):
            content, job = json.loads(row.content), self._job(row)
            if job.state != RUNNING:
                ended = _text({**content, "told": ENDED})
                job_sql.set_end(store, row.job, state="failed", done=row.done, content=ended, now=row.changed_at)
                continue
            is_same = content.get("request", "") == wanted.request
            is_current = content.get("as_of") == wanted.as_of or not self._has_begun(job.job)
            if row.state != CANCELLING and is_same and is_current and self.is_heard(job):
                return job
            if alone and row.state != CANCELLING and not is_same:
                what = f"the {wanted.kind} of ladder {wanted.ladder!r}"
                raise ConflictError(f"{row.job} is changing {what}; try again when it has ended")
        if wanted.as_of is not None:
            for row in job_sql.read_done(store, wanted.ladder, wanted.kind, REUSED):
                content = json.loads(row.content)
                if (content.get("request"), content.get("as_of")) == (wanted.request, wanted.as_of):
                    return self._job(row)
        return None

    def is_heard(self, job: Job) -> bool:
        """Whether this process runs a job, or the one that does was heard of when the job was read."""
        return job.job in self._running or self._clock() - job.changed_at <= JOINED

    def _has_begun(self, job: str) -> bool:
        """Whether a job has begun, as far as this process knows; one that waits will see the ladder as it is then."""
        running = self._running.get(job)
        return running is None or self._lines[running.sort].has_begun(job)

    def find(self, job: str) -> Job:
        """The job with this name. Raises UnknownNameError."""
        with self._database.read() as store:
            row = job_sql.read(store, job)
            if row is None:
                raise UnknownNameError("job", job, job_sql.latest_names(store, 20))
        return self._job(row)

    def find_on(self, ladder: str, job: str) -> Job:
        """The job with this name on a ladder. Raises UnknownNameError, also for a job of another ladder."""
        with self._database.read() as store:
            row = job_sql.read(store, job)
        if row is None or row.ladder != ladder:
            raise UnknownNameError(f"job of ladder {ladder!r}", job, ())
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
        """The error of a job of this process once its end is stored; None if another process runs it, or none does."""
        running = self._running.get(job)
        return None if running is None else running.stored

    def cancel(self, job: str, audit_entry: AuditEntry | None = None) -> Job:
        """Ask a job to end without a result, whichever process runs it, and return it; one that has ended stays so.

        A job that is done before it notices is done. Raises UnknownNameError.
        """
        current = self.find(job)
        if current.state != RUNNING:
            return current
        with self._database.write() as store:
            job_sql.request_end(store, job)
            if audit_entry is not None:
                audit_entry.note(store, self._clock(), job)
        running = self._running.get(job)
        if running is not None:
            running.cancelled.set()
        return self.find(job)

    def ask_to_stop(self) -> None:
        """Ask the running jobs to stop; a stopped job is stored as failed."""
        self._stopping.set()

    def stop(self, within: float) -> None:
        """Ask the running jobs to stop, and wait at most `within` seconds; those that go on are stored as failed."""
        self.ask_to_stop()
        until = time.monotonic() + within
        for thread in list(self._threads):
            thread.join(max(0.0, until - time.monotonic()))
        for running in list(self._running.values()):
            running.ended.set()  # so that its heartbeat does not say that it is running
            self._write(running, "failed", {"told": STOPPED})

    def _job(self, row: JobRow) -> Job:
        job, ladder, kind, stored, done, total, text, begun_at, changed_at = row
        content = json.loads(text)
        reason, ahead = content.get("told"), content.get("ahead", 0)
        state = cast("JobState", stored)
        if stored in LIVE:
            reason = CALLED_OFF if stored == CANCELLING else reason
            state = "running"
            running = self._running.get(job)
            if running is not None:
                done, ahead = running.done, self._lines[running.sort].ahead(job)
            elif self._clock() - changed_at > SILENT:
                state, reason = "failed", ENDED
        else:
            ahead = 0
        problems = tuple((match, reason) for match, reason in content.get("problems", ()))
        result = content.get("result")
        return Job(job, ladder, kind, state, done, total, begun_at, changed_at, reason, result, problems, ahead)

    # running them

    def _start(self, running: _Running, ladder: str, work: Work) -> None:
        def run() -> None:
            beat = threading.Thread(target=self._beat, args=(running,), name=f"beat-{running.job}", daemon=True)
            beat.start()
            try:
                state, content = self._do(running, work)
            finally:
                running.ended.set()
                beat.join()
            self._end(running, state, content)
            self._running.pop(running.job, None)
            running.stored.set_result(running.error)
            self._threads.discard(thread)

        thread = threading.Thread(target=run, name=running.job, daemon=True)
        self._lines[running.sort].join(running.job, ladder)
        self._running[running.job] = running
        self._threads.add(thread)
        thread.start()

    def _do(self, running: _Running, work: Work) -> tuple[str, dict[str, object]]:
        def progress(position: int) -> None:
            running.done = min(position, running.total)
            self._check(running)

        try:
            with self._lines[running.sort].turn(running.job, lambda: self._check(running)):
                result = work(progress)
            running.done = running.total
            return "done", {"result": dict(result)}
        except JobCancelledError as error:
            running.error = error
            return "cancelled", {"told": CANCELLED}
        except BadRowsError as error:
            running.error = error
            listed = [(problem.match_id or "", problem.reason) for problem in error.problems[:SHOWN]]
            return "failed", {"told": f"{error.source}: {error.count}; {error.outcome}", "problems": listed}
        except EvenmatchError as error:
            running.error = error
            return "failed", {"told": str(error)}
        except Exception:
            logging.getLogger("evenmatch.jobs").exception("job %s failed by a bug", running.job)
            running.error = StoreError(f"internal error; the server log describes it under {running.job}")
            return "failed", {"told": str(running.error)}

    def _check(self, running: _Running) -> None:
        """Raise JobCancelledError if the job was cancelled, ConflictError if the process stops."""
        if running.cancelled.is_set():
            raise JobCancelledError(f"{running.job} was cancelled; nothing was changed")
        if self._stopping.is_set():
            raise ConflictError(STOPPED)

    def _beat(self, running: _Running) -> None:
        """Write the progress from a separate thread, since the work itself runs inside transactions."""
        written, written_at = (0, 0), time.monotonic()
        while not running.ended.wait(TICK):
            self._look_for_end(running)
            current = (running.done, self._lines[running.sort].ahead(running.job))
            if current == written and time.monotonic() - written_at < BEAT:
                continue
            written, written_at = current, time.monotonic()
            self._write(running, None, {"ahead": current[1]})

    def _look_for_end(self, running: _Running) -> None:
        """Notice that another process has asked this job to end."""
        try:
            with self._database.read() as store:
                if job_sql.read_state(store, running.job) == CANCELLING:
                    running.cancelled.set()
        except StoreError:
            pass  # the next look comes soon

    def _end(self, running: _Running, state: str, content: dict[str, object]) -> None:
        for wait in (0.5, 1.0, 2.0, 4.0, 8.0):
            if self._write(running, state, content):
                return
            self._stopping.wait(wait)

    def _write(self, running: _Running, state: str | None, content: dict[str, object]) -> bool:
        """Store the progress (state: None) or the end of a job; False if the database fails."""
        text = _text({**running.about, **content})
        try:
            with self._database.write() as store:
                now = self._clock()
                if state is None:
                    job_sql.set_progress(store, running.job, done=running.done, content=text, now=now)
                else:
                    job_sql.set_end(store, running.job, state=state, done=running.done, content=text, now=now)
        except StoreError as error:
            logging.getLogger("evenmatch.jobs").warning("job %s: cannot store its progress: %s", running.job, error)
            return False
        return True


def _text(content: Mapping[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
