"""Endpoints for background jobs: rebuild or verify ratings, and follow the progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.errors import ConflictError, UnknownNameError
from evenmatch.http.access import Admin, AnyAdmin
from evenmatch.http.audit_entries import audit_entry
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.models.base import moment
from evenmatch.http.models.jobs import JobOut, JobsPage
from evenmatch.http.models.problems import Fault
from evenmatch.http.page_parameters import Cursor, Limit
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.http.waiting_requests import until
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.jobs import Job, Work
from evenmatch.service.replay.ledger_replay import Progress
from evenmatch.service.replay.rebuild import RebuildResult

router = APIRouter(prefix="/v1", tags=["jobs"])
SHOWN = 100  # differences listed in a result
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the end of the job.")]


@router.post("/ladders/{ladder:text}/rebuild", response_model=JobOut, status_code=202, operation_id="rebuild_ladder")
async def rebuild_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Recompute a ladder's ratings from its ledger, as a job; if one is running, return it."""
    site = site_of(request)

    def rebuild(progress: Progress) -> Mapping[str, object]:
        return plain_rebuilt(site.service.rebuild(ladder, whole=True, progress=progress))

    return await accepted(site, "rebuild", ladder, rebuild, audit_entry(request, caller, "ladder.rebuilt", ladder))


@router.post("/ladders/{ladder:text}/verify", response_model=JobOut, status_code=202, operation_id="verify_ladder")
async def verify_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Compare a ladder's ratings with a replay of its ledger, bit for bit, as a job; if one is running, return it."""
    site = site_of(request)

    def verify(progress: Progress) -> Mapping[str, object]:
        result = site.service.verify(ladder, progress)
        return {
            "equal": result.is_equal,
            "events": result.events,
            "matches": result.matches,
            "players": result.players,
            "damage": list(result.damage[:SHOWN]),
            "differences": list(result.differences[:SHOWN]),
            "rebuild_due_from": result.due,
            "same_engine": result.same_engine,
        }

    return await accepted(site, "verify", ladder, verify, audit_entry(request, caller, "ladder.verified", ladder))


@router.get("/jobs/{job}", response_model=JobOut, operation_id="get_job")
async def get_job(job: str, request: Request, caller: AnyAdmin, wait: Wait = 0.0) -> Response:
    """A job and its progress; with `wait`, return when it has ended."""
    site = site_of(request)
    context_of(request.scope).waits = wait > 0

    async def look() -> Job:
        current = await site.work(site.jobs.find, job)
        if not caller.may("admin", current.ladder):  # answered like a job that does not exist
            raise UnknownNameError("job", job, ())
        return current

    if wait > 0:
        async with site.waiting.poll(request, caller) as waiter:
            status = await until(look, lambda current: current.state != "running", wait, waiter)
    else:
        status = await look()
    return read(request, job_out(status))


@router.get("/jobs", response_model=JobsPage, operation_id="list_jobs")
async def list_jobs(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The jobs of a ladder, or of all ladders, latest first."""
    site = site_of(request)
    caller.check("admin", ladder)
    before = None
    if cursor is not None:
        begun_at, name = read_cursor(cursor, int, str)
        before = (int(begun_at), str(name))
    jobs = await site.work(site.jobs.page, ladder, before, limit + 1)
    last = jobs[:limit][-1:]
    after = write_cursor(last[0].begun_at, last[0].job) if len(jobs) > limit else None
    return read(request, JobsPage(items=[job_out(job) for job in jobs[:limit]], next=after))


async def accepted(
    site: Site, kind: str, ladder: str, work: Work, done: AuditEntry | None = None, *, alone: bool = False
) -> Response:
    """Start a job, or join a running one of this kind, and respond with it. alone: a running one is a conflict."""
    job, begun = await site.work(site.jobs.begin, kind, ladder, work, done)
    if alone and not begun:
        raise ConflictError(f"{job.job} is changing the {kind} of ladder {ladder!r}; try again when it has ended")
    return written(job_out(job), 202, headers={"Location": f"/v1/jobs/{job.job}"})


def job_out(job: Job) -> JobOut:
    """The response model of a job."""
    faults = [Fault(where=where, reason=reason) for where, reason in job.problems]
    times = {"begun_at": moment(job.begun_at), "changed_at": moment(job.changed_at)}
    return JobOut.model_validate({**job._asdict(), **times, "problems": faults})


def plain_rebuilt(made: RebuildResult | None) -> dict[str, object]:
    """The result of a rebuild as JSON data."""
    if made is None:
        return {"told": "no rating changed"}
    return {"since": made.since, "matches": made.matches, "changed": made.changed}
