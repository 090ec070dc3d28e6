"""Rows of table `job`: background jobs and their progress."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store

RUNNING, CANCELLING, DONE = "running", "cancelling", "done"
UNFINISHED = (RUNNING, CANCELLING)


class JobRow(NamedTuple):
    """A job as stored.

    ladder   name of its ladder
    request, as_of  see Jobs.begin
    state    running, cancelling, done, failed or cancelled
    done, total  events of the ladder's ledger
    content  result, error, problems and number of jobs before it, a JSON text
    begun_at, changed_at  microseconds since the epoch; a job that runs is changed every second
    """

    job: str
    ladder: str
    kind: str
    request: str
    as_of: str | None
    state: str
    done: int
    total: int
    content: str
    begun_at: int
    changed_at: int


_COLUMNS = (
    "job",
    "ladder_name",
    "kind",
    "request",
    "as_of",
    "state",
    "done",
    "total",
    "told",
    "begun_at",
    "changed_at",
)
_READ = f"SELECT {', '.join(_COLUMNS)} FROM job"
_LATEST_FIRST = "ORDER BY begun_at DESC, job DESC LIMIT ?"


def read(store: Store, job: str) -> JobRow | None:
    """The job with this name; None if there is none."""
    rows = store.all(f"{_READ} WHERE job = ?", job)
    return JobRow(*rows[0]) if rows else None


def read_unfinished(store: Store, ladder: str, kind: str) -> list[JobRow]:
    """The jobs of this kind on a ladder that are stored as running or cancelling, in no particular order."""
    sql = f"{_READ} WHERE ladder_name = ? AND kind = ? AND state IN (?, ?)"
    return [JobRow(*row) for row in store.all(sql, ladder, kind, *UNFINISHED)]


def read_done(store: Store, ladder: str, kind: str, request: str, as_of: str) -> JobRow | None:
    """The latest finished job that did the same; None if there is none."""
    sql = f"{_READ} WHERE ladder_name = ? AND kind = ? AND state = 'done' AND request = ? AND as_of = ? {_LATEST_FIRST}"
    rows = store.all(sql, ladder, kind, request, as_of, 1)
    return JobRow(*rows[0]) if rows else None


def read_latest(store: Store, ladder: str, kind: str) -> JobRow | None:
    """The job of this kind on a ladder that was started last; None if there is none."""
    rows = store.all(f"{_READ} WHERE ladder_name = ? AND kind = ? {_LATEST_FIRST}", ladder, kind, 1)
    return JobRow(*rows[0]) if rows else None


def read_page(store: Store, ladder: str | None, before: tuple[int, str] | None, limit: int) -> list[JobRow]:
    """Jobs of a ladder (None: of all), latest first. before: start time and name of the last job not to return."""
    conditions = ["ladder_name = ?"] if ladder is not None else []
    values: list[object] = [ladder] if ladder is not None else []
    if before is not None:
        conditions.append("(begun_at < ? OR (begun_at = ? AND job < ?))")
        values += [before[0], *before]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return [JobRow(*row) for row in store.all(f"{_READ}{where} {_LATEST_FIRST}", *values, limit)]


def read_contents(store: Store, ladder: str) -> list[tuple[str, str]]:
    """(job, content as JSON) of the jobs of a ladder, in no particular order."""
    return [(job, content) for job, content in store.all("SELECT job, told FROM job WHERE ladder_name = ?", ladder)]


def insert(store: Store, job: JobRow) -> None:
    """Insert a new job."""
    store.insert(live_schema.job, _COLUMNS, [job])


def set_progress(store: Store, job: str, *, done: int, content: str, now: int) -> str | None:
    """Store the progress of an unfinished job and return its state; None if it has ended."""
    sql = "UPDATE job SET done = ?, told = ?, changed_at = ? WHERE job = ? AND state IN (?, ?) RETURNING state"
    rows = store.all(sql, done, content, now, job, *UNFINISHED)
    return rows[0][0] if rows else None


def set_end(store: Store, job: str, *, state: str, done: int, content: str, now: int) -> None:
    """Store the end of a job. A job that is done stays done, whatever is reported of it later."""
    store.run(
        "UPDATE job SET state = ?, done = ?, told = ?, changed_at = ? WHERE job = ? AND state <> ?",
        *(state, done, content, now, job, DONE),
    )


def set_content(store: Store, job: str, content: str) -> None:
    """Replace the content of a job, a JSON text."""
    store.run("UPDATE job SET told = ? WHERE job = ?", content, job)


def request_end(store: Store, job: str) -> None:
    """Mark a running job as to be cancelled."""
    store.run("UPDATE job SET state = ? WHERE job = ? AND state = ?", CANCELLING, job, RUNNING)


def delete_before(store: Store, ladder: str, kind: str, begun_at: int) -> None:
    """Delete the ended jobs of this kind on a ladder that were started before a time."""
    sql = "DELETE FROM job WHERE ladder_name = ? AND kind = ? AND begun_at < ? AND state NOT IN (?, ?)"
    store.run(sql, ladder, kind, begun_at, *UNFINISHED)
