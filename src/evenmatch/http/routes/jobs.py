"""Endpoints for background jobs: rebuild or verify ratings, and follow the progress."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.errors import UnknownNameError
from evenmatch.http.access import Admin, AnyAdmin
from evenmatch.http.audit_entries import audit_entry
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.models.jobs import JobOut, JobsPage
from evenmatch.http.page_parameters import Cursor, Limit
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read
from evenmatch.http.site import Site, site_of
from evenmatch.http.task_outcomes import accepted, alive, job_out
from evenmatch.http.waiting_requests import until
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.jobs import Job
from evenmatch.service.work.tasks import RebuildTask, Task, VerifyTask

router = APIRouter(prefix="/v1", tags=["jobs"])
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the end of the job.")]


@router.post("/ladders/{ladder:text}/rebuild", response_model=JobOut, status_code=202, operation_id="rebuild_ladder")
async def rebuild_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Recompute a ladder's ratings from its ledger, as a job; if one is running, return it."""
    return await _begun(request, RebuildTask(ladder), audit_entry(request, caller, "ladder.rebuilt", ladder))


@router.post("/ladders/{ladder:text}/verify", response_model=JobOut, status_code=202, operation_id="verify_ladder")
async def verify_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Compare a ladder's ratings with a replay of its ledger, bit for bit, as a job; if one is running, return it."""
    return await _begun(request, VerifyTask(ladder), audit_entry(request, caller, "ladder.verified", ladder))


async def _begun(request: Request, task: Task, entry: AuditEntry) -> Response:
    site = site_of(request)

    def begin() -> Job:
        return site.ladder_work.begin(task, entry)[0]

    return accepted(await alive(site, lambda: site.change(task.ladder, begin)))


def _find(site: Site, caller: Caller, job: str) -> Job:
    """The job with this name. Raises UnknownNameError, also for a job of a ladder that is not the caller's."""
    current = site.jobs.find(job)
    if not caller.may("admin", current.ladder):
        raise UnknownNameError("job", job, ())
    return current


@router.delete("/jobs/{job}", response_model=JobOut, status_code=202, operation_id="cancel_job")
async def cancel_job(job: str, request: Request, caller: AnyAdmin) -> Response:
    """Cancel a running job: it ends soon and changes nothing, unless it was done just before.

    A job that has ended stays as it is.
    """
    site = site_of(request)

    def cancel() -> Job:
        current = _find(site, caller, job)
        return site.jobs.cancel(job, audit_entry(request, caller, "job.cancelled", current.ladder, job))

    return accepted(await site.work(cancel))


@router.get("/jobs/{job}", response_model=JobOut, operation_id="get_job")
async def get_job(job: str, request: Request, caller: AnyAdmin, wait: Wait = 0.0) -> Response:
    """A job and its progress; with `wait`, return when it has ended."""
    site = site_of(request)
    context_of(request.scope).waits = wait > 0

    async def look() -> Job:
        return await site.work(_find, site, caller, job)

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
