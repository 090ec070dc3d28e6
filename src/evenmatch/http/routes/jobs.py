"""Operators have ratings made anew or verified, and see how far that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.errors import ConflictError
from evenmatch.http.access import Admin, AnyAdmin
from evenmatch.http.asked import asked_of
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit, deed
from evenmatch.http.models.base import moment
from evenmatch.http.models.jobs import JobsTold, JobTold
from evenmatch.http.models.problems import Fault
from evenmatch.http.replies import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.http.wakes import until
from evenmatch.service.callers.deeds import Deed
from evenmatch.service.jobs import Job, Work
from evenmatch.service.rebuilding import Rebuilt
from evenmatch.service.replaying import Progress

router = APIRouter(prefix="/v1", tags=["jobs"])
SHOWN = 100  # differences that are told
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for its end.")]


@router.post("/ladders/{ladder:text}/rebuild", response_model=JobTold, status_code=202, operation_id="rebuild_ladder")
async def rebuild_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Make a ladder's ratings anew from its ledger, as a job; one that is at it already is told."""
    site = site_of(request)

    def rebuild(progress: Progress) -> Mapping[str, object]:
        return plain_rebuilt(site.service.rebuild(ladder, whole=True, progress=progress))

    return await accepted(site, "rebuild", ladder, rebuild, deed(request, caller, "ladder.rebuilt", ladder))


@router.post("/ladders/{ladder:text}/verify", response_model=JobTold, status_code=202, operation_id="verify_ladder")
async def verify_ladder(ladder: str, request: Request, caller: Admin) -> Response:
    """Compare a ladder's ratings with a replay of its ledger, bit for bit, as a job; one that is at it is told."""
    site = site_of(request)

    def verify(progress: Progress) -> Mapping[str, object]:
        found = site.service.verify(ladder, progress)
        return {
            "equal": found.is_equal,
            "events": found.events,
            "matches": found.matches,
            "players": found.players,
            "damage": list(found.damage[:SHOWN]),
            "differences": list(found.differences[:SHOWN]),
            "rebuild_due_from": found.due,
            "same_engine": found.same_engine,
        }

    return await accepted(site, "verify", ladder, verify, deed(request, caller, "ladder.verified", ladder))


@router.get("/jobs/{job}", response_model=JobTold, operation_id="get_job")
async def get_job(job: str, request: Request, caller: AnyAdmin, wait: Wait = 0.0) -> Response:
    """How far a job is; with `wait`, once it has ended."""
    site = site_of(request)
    asked_of(request.scope).waits = wait > 0

    async def look() -> Job:
        found = await site.work(site.jobs.find, job)
        caller.check("admin", found.ladder)
        return found

    return read(request, told(await until(look, lambda one: one.state != "running", wait, site.stopping)))


@router.get("/jobs", response_model=JobsTold, operation_id="list_jobs")
async def list_jobs(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The jobs of a ladder, or of all, the latest first."""
    site = site_of(request)
    caller.check("admin", ladder)
    before = None
    if cursor is not None:
        at, name = read_cursor(cursor, int, str)
        before = (int(at), str(name))
    found = await site.work(site.jobs.page, ladder, before, limit + 1)
    last = found[:limit][-1:]
    after = write_cursor(last[0].begun_at, last[0].job) if len(found) > limit else None
    return read(request, JobsTold(items=[told(one) for one in found[:limit]], next=after))


async def accepted(
    site: Site, kind: str, ladder: str, work: Work, done: Deed | None = None, *, alone: bool = False
) -> Response:
    """Begin a job and tell it. alone: another of the kind on this ladder is a conflict, for it may wish for another."""
    job, begun = await site.work(site.jobs.begin, kind, ladder, work, done)
    if alone and not begun:
        raise ConflictError(f"{job.job} changes the {kind} of ladder {ladder!r}; accepted is another once it has ended")
    return written(told(job), 202, headers={"Location": f"/v1/jobs/{job.job}"})


def told(job: Job) -> JobTold:
    """A job as JSON knows it."""
    listed = [Fault(where=where, reason=reason) for where, reason in job.problems]
    times = {"begun_at": moment(job.begun_at), "changed_at": moment(job.changed_at)}
    return JobTold.model_validate({**job._asdict(), **times, "problems": listed})


def plain_rebuilt(made: Rebuilt | None) -> dict[str, object]:
    """What a rebuild did."""
    if made is None:
        return {"told": "no rating is other than it was"}
    return {"since": made.since, "matches": made.matches, "changed": made.changed}
