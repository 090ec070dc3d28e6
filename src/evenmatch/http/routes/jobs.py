"""Endpoints for background jobs (rebuild, verify, progress), and for the health and metrics of the process."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.accounts.access import Caller
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.errors import UnknownNameError
from evenmatch.http.access import Admin, AnyAdmin, Watcher, audit_entry
from evenmatch.http.cursors import Cursor, Limit, read_cursor, split_page
from evenmatch.http.models.base import Problem
from evenmatch.http.models.from_records import page_of
from evenmatch.http.models.jobs import Health, JobOut
from evenmatch.http.problems import OTHERS, STARTING, make_problem, respond
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read, read_page
from evenmatch.http.routes.corrections import accepted, job_out
from evenmatch.http.site import Site, site_of
from evenmatch.http.waiting_requests import until
from evenmatch.jobs.jobs import Job
from evenmatch.jobs.tasks import RebuildTask, Task, VerifyTask

router = APIRouter(prefix="/v1", tags=["jobs"])
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the job to end.")]


@router.post("/ladders/{ladder:text}/rebuild", response_model=JobOut, status_code=202, operation_id="rebuild_ladder")
async def rebuild_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Start a job that recomputes a ladder's ratings from its ledger, or return the running one."""
    return await _begun(request, RebuildTask(ladder), audit_entry(request, caller, "ladder.rebuilt", ladder))


@router.post("/ladders/{ladder:text}/verify", response_model=JobOut, status_code=202, operation_id="verify_ladder")
async def verify_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Start a job that compares a ladder's ratings with a replay of its ledger, or return the running one."""
    return await _begun(request, VerifyTask(ladder), audit_entry(request, caller, "ladder.verified", ladder))


async def _begun(request: Request, task: Task, entry: AuditEntry) -> Response:
    site = site_of(request)

    def begin() -> Job:
        return site.ladder_work.begin(task, entry)[0]

    return accepted(await site.change(task.ladder, begin))


def _find(site: Site, caller: Caller, job: str) -> Job:
    """Return the job with this name. Raises UnknownNameError, also if the caller may not administer its ladder."""
    current = site.jobs.find(job)
    if not caller.may("admin", current.ladder):
        raise UnknownNameError("job", job, ())
    return current


@router.delete("/jobs/{job}", response_model=JobOut, status_code=202, operation_id="cancel_job")
async def cancel_job(job: str, request: Request, caller: AnyAdmin) -> Response:
    """Cancel a running job. It ends soon and changes nothing, unless it is already finishing.

    A job that has ended stays as it is.
    """
    site = site_of(request)

    def cancel() -> Job:
        current = _find(site, caller, job)
        return site.jobs.cancel(job, audit_entry(request, caller, "job.cancelled", current.ladder, job))

    return accepted(await site.work(cancel))


@router.get("/jobs/{job}", response_model=JobOut, operation_id="get_job")
async def get_job(job: str, request: Request, caller: AnyAdmin, wait: Wait = 0.0) -> Response:
    """Return a job and its progress; with `wait`, wait for its end."""
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


@router.get("/jobs", response_model=page_of(JobOut), operation_id="list_jobs")
async def list_jobs(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List the jobs of a ladder, or of all ladders, latest first."""
    site = site_of(request)
    caller.check("admin", ladder)
    before = None
    if cursor is not None:
        begun_at, name = read_cursor(cursor, int, str)
        before = (int(begun_at), str(name))
    jobs = await site.work(site.jobs.page, ladder, before, limit + 1)
    page, after = split_page(jobs, limit, lambda job: (job.begun_at, job.job))
    return read_page(request, JobOut, map(job_out, page), after)


LOADING = "the rating systems and the matchmaker are being loaded; the first start compiles them, which takes a minute"

health_router = APIRouter(tags=["health"])


@health_router.get("/healthz", operation_id="health")
async def health() -> Health:
    """The process is running."""
    return Health(status="ok")


@health_router.get(
    "/readyz", operation_id="ready", responses={503: {"description": "The process cannot serve requests now."}}
)
async def ready(request: Request) -> Response:
    """The process can serve: the database accepts writes, rating systems and matchmaker are loaded, no stop is pending.

    The process tests writes and the master secret at most every five seconds, and answers with the last result in
    between. The first start after an installation compiles rating systems and matchmaker, which takes about a minute.
    """
    problem = await obstacle(site_of(request))
    if problem is not None:
        return respond(problem)
    return Response(Health(status="ok").model_dump_json(), media_type="application/json")


async def obstacle(site: Site) -> Problem | None:
    """Return why the process cannot serve now; None if it can."""
    if site.stopping.is_set():
        return make_problem(OTHERS[503], "the process was asked to stop")
    if not site.kernels.ready.is_set():
        return make_problem(STARTING, LOADING, retry_after=1)
    problem = await site.readiness.problem()
    return None if problem is None else make_problem(OTHERS[503], problem)


@health_router.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request, _: Watcher) -> Response:
    """Return the metrics in the Prometheus text format, summed over the serving processes at this port."""
    site = site_of(request)
    text = await site.work(site.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
