"""Endpoints for corrections: voids, bans and late matches, with previews.

A small correction is answered at once. A large one becomes a job, which the answer names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from evenmatch.accounts.access import Caller
from evenmatch.accounts.audit_entries import Correcting, correcting
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.errors import ConflictError, UsageError
from evenmatch.http.access import Admin
from evenmatch.http.cursors import Cursor, Limit, number_of, split_page
from evenmatch.http.models.base import LONGEST, Fault, micros
from evenmatch.http.models.corrections import BanRequest, CorrectionResult, VoidRequest
from evenmatch.http.models.from_records import page_of
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.reports import LateMatches
from evenmatch.http.report_recording import match_of, times_of
from evenmatch.http.request_bodies import described, read_body
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read_page, written
from evenmatch.http.site import Site, site_of
from evenmatch.jobs.jobs import Job
from evenmatch.jobs.tasks import CorrectionTask, PreviewTask, Task
from evenmatch.ladders import correction_log
from evenmatch.ladders.correction_log import CorrectionEntry
from evenmatch.match import Match

WAIT = 2.0  # seconds that a request waits for its job
LOOK = 0.1  # seconds between two polls of a job that another process runs
Result = Mapping[str, object]
IN_LINE: dict[int | str, dict[str, Any]] = {
    202: {
        "model": JobOut,
        "description": "It takes longer, so a job does it. `Location` is the job; its `result` will be this answer.",
    }
}


async def outcome(site: Site, task: Task, wait: float = WAIT) -> Result | Job:
    """Return the result of a task, or its job if that has not ended in time. Raises the error of the task.

    wait  seconds
    """
    begun = await site.change(task.ladder, site.ladder_work.do, task)
    return await ended(site, begun, wait) if isinstance(begun, Job) else begun


async def ended(site: Site, job: Job, wait: float) -> Result | Job:
    """Return the result of a job, or the job itself if it has not ended in time. Raises the error of the job.

    wait  seconds
    """
    ending = site.jobs.ending(job.job)
    if ending is None:  # it has ended, or another process runs it
        end = time.monotonic() + wait
        while job.state == "running" and time.monotonic() < end and not site.stopping.is_set():
            await asyncio.sleep(LOOK)
            job = await site.work(site.jobs.find, job.job)
    else:
        await asyncio.wait({asyncio.wrap_future(ending)}, timeout=wait)
        error = ending.result() if ending.done() and not ending.cancelled() else None
        if error is not None:
            raise error
        job = await site.work(site.jobs.find, job.job)
    if job.state == "running":
        return job
    if job.result is None:
        raise ConflictError(f"{job.job} has ended without a result: {job.told}")
    return job.result


async def respond(
    site: Site, task: Task, answer: type[BaseModel], select: Callable[[Result], object] = lambda result: result
) -> Response:
    """Respond with the result of a task, or with 202 and its job. select: the part of the result to respond with."""
    done = await outcome(site, task)
    return accepted(done) if isinstance(done, Job) else written(answer.model_validate(select(done)))


def accepted(job: Job) -> Response:
    """Return the response that points to a job."""
    return written(job_out(job), 202, headers={"Location": f"/v1/jobs/{job.job}"})


def job_out(job: Job) -> JobOut:
    """Return the response model of a job."""
    return JobOut.from_record(job, problems=[Fault(where=where, reason=reason) for where, reason in job.problems])


router = APIRouter(prefix="/v1/ladders/{ladder:text}", tags=["corrections"])
Seen = Annotated[bool, Query(description="Only report whose rating would change; change nothing.")]
Reason = Annotated[str | None, Query(max_length=2000, description="Reason for the correction.")]
EventId = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=LONGEST,
        description="Like `id` in a body: repeating the request with the same id changes nothing.",
    ),
]


@router.post("/voids", response_model=CorrectionResult, responses=IN_LINE, operation_id="void_match")
async def void_match(
    ladder: str, asked: VoidRequest, request: Request, caller: Admin, preview: Seen = False
) -> Response:
    """Void a match, so that it no longer counts, and rate all later matches again."""
    return await _correct(request, caller, ladder, Void(asked.match_id, asked.reason), asked.id, preview)


@router.delete(
    "/voids/{match_id:text}", response_model=CorrectionResult, responses=IN_LINE, operation_id="unvoid_match"
)
async def unvoid_match(
    ladder: str,
    match_id: str,
    request: Request,
    caller: Admin,
    reason: Reason = None,
    id: EventId = None,  # noqa: A002 - the name that all bodies use
    preview: Seen = False,
) -> Response:
    """Restore a voided match, so that it counts again."""
    return await _correct(request, caller, ladder, Unvoid(match_id, reason), id, preview)


@router.post("/bans", response_model=CorrectionResult, responses=IN_LINE, operation_id="ban_player")
async def ban_player(
    ladder: str, asked: BanRequest, request: Request, caller: Admin, preview: Seen = False
) -> Response:
    """Ban a player from a ladder and rate the affected matches again.

    Banned players are not in the standings and cannot queue. A ban with an end changes no rating.
    """
    since, until = (None if time is None else micros(time) for time in (asked.since, asked.until))
    ban = Ban(asked.player, asked.rule, since, asked.reason, until)
    ban.check_end(site_of(request).service.clock())
    return await _correct(request, caller, ladder, ban, asked.id, preview)


@router.delete(
    "/bans/{player:text}", response_model=CorrectionResult, responses=IN_LINE, operation_id="reinstate_player"
)
async def reinstate_player(
    ladder: str,
    player: str,
    request: Request,
    caller: Admin,
    reason: Reason = None,
    id: EventId = None,  # noqa: A002 - the name that all bodies use
    preview: Seen = False,
) -> Response:
    """Lift a ban, as if it had never existed."""
    return await _correct(request, caller, ladder, Reinstate(player, reason), id, preview)


@router.post(
    "/late-matches",
    response_model=CorrectionResult,
    responses=IN_LINE,
    operation_id="insert_late_matches",
    openapi_extra=described(CorrectionResult, LateMatches),
)
async def insert_late_matches(ladder: str, request: Request, caller: Admin, preview: Seen = False) -> Response:
    """Record matches that ended before the ladder's newest match, and rate them at the time they were played.

    All later matches are rated again. By contrast, an ordinary report counts as the newest match, however old it is.
    """
    site = site_of(request)
    asked, matches = await read_body(request, LateMatches, lambda asked: (asked, _late_matches(ladder, asked)))
    insertion = partial(site.service.insertion, ladder, matches, rated=asked.matches[0].rated, reason=asked.reason)
    return await _correct(request, caller, ladder, (await site.work(insertion))[0], asked.id, preview)


def _late_matches(ladder: str, asked: LateMatches) -> list[Match]:
    rated = asked.matches[0].rated
    if any(match.rated != rated for match in asked.matches):
        raise UsageError("some of the matches are rated and some are not; send them in two requests")
    times = times_of(asked.matches, "matches")
    return [match_of(ladder, match, time) for match, time in zip(asked.matches, times, strict=True)]


@router.get("/voids", response_model=page_of(CorrectionEntry), operation_id="list_voids")
async def list_voids(ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the void matches, each with the correction that voided it."""
    return await _listed(request, ladder, "voids", limit, cursor)


@router.get("/bans", response_model=page_of(CorrectionEntry), operation_id="list_bans")
async def list_bans(ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the banned players, each with the correction that banned them."""
    return await _listed(request, ladder, "bans", limit, cursor)


@router.get("/corrections", response_model=page_of(CorrectionEntry), operation_id="list_corrections")
async def list_corrections(
    ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List all events of the ladder's ledger other than matches."""
    return await _listed(request, ladder, "all", limit, cursor)


async def _correct(
    request: Request, caller: Caller, ladder: str, correction: Correcting, event_id: str | None, preview: bool
) -> Response:
    site = site_of(request)
    if isinstance(correction, Ban | Reinstate):
        await site.work(site.reading(caller).check_known, ladder, correction.player)
    if preview:
        return await respond(site, PreviewTask(ladder, correction, event_id), CorrectionResult)
    entry = correcting(caller, ladder, correction, context_of(request.scope).id)
    return await respond(site, CorrectionTask(ladder, correction, event_id, entry), CorrectionResult)


async def _listed(request: Request, ladder: str, kind: str, limit: int, cursor: str | None) -> Response:
    site = site_of(request)
    rulings = await site.work(_read, site, ladder, kind, number_of(cursor), limit + 1)
    return read_page(request, CorrectionEntry, *split_page(rulings, limit, lambda ruling: (ruling.position,)))


def _read(site: Site, ladder: str, kind: str, before: int | None, limit: int) -> list[CorrectionEntry]:
    with site.service.reading(ladder) as (store, head):
        if kind == "all":
            return correction_log.rulings(store, head, before, limit)
        now = site.service.clock()
        rulings = correction_log.voids(store, head) if kind == "voids" else correction_log.bans(store, head, now)
        return [ruling for ruling in rulings if before is None or ruling.position < before][:limit]
