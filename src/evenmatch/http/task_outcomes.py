"""Tasks on ladders in requests: small ones are answered at once, others after a short wait or by their job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.responses import Response

from evenmatch.errors import ConflictError
from evenmatch.http.models.base import moment
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.problems import Fault
from evenmatch.http.responses import written
from evenmatch.http.site import Site
from evenmatch.jobs.jobs import Job
from evenmatch.jobs.tasks import Task

T = TypeVar("T")
WAIT = 2.0  # seconds that a request waits for its job
LOOK = 0.1  # seconds between two looks at a job of another process
Result = Mapping[str, object]
IN_LINE: dict[int | str, dict[str, Any]] = {
    202: {
        "model": JobOut,
        "description": "It takes longer: a job does it, at the address in `Location`. Its `result` is this answer.",
    }
}


async def outcome(site: Site, task: Task, wait: float = WAIT) -> Result | Job:
    """The result of a task, or its job if that has not ended within some seconds. Raises the error of the task."""
    begun = await alive(site, lambda: site.change(task.ladder, site.ladder_work.do, task))
    return await ended(site, begun, wait) if isinstance(begun, Job) else begun


async def alive(site: Site, begin: Callable[[], Awaitable[T | Job]]) -> T | Job:
    """The result of `begin`; a job of another process only when that process was heard of since, or the job has ended.

    If it is not heard of, the process is dead or frozen: `begin` is called again, and then starts a job here.
    """
    while isinstance(begun := await begin(), Job):
        job: Job = begun
        while job.state == "running" and job.changed_at == begun.changed_at and site.jobs.is_heard(job):
            if site.jobs.ending(job.job) is not None or site.stopping.is_set():
                return job
            await asyncio.sleep(LOOK)
            job = await site.work(site.jobs.find, job.job)
        if job.state != "running" or job.changed_at != begun.changed_at:
            return job
    return begun


async def ended(site: Site, job: Job, wait: float) -> Result | Job:
    """The result of a job, or the job itself if it has not ended within some seconds. Raises the error of the job."""
    ending = site.jobs.ending(job.job)
    if ending is None:  # it has ended, or another process runs it
        end = time.monotonic() + wait
        while job.state == "running" and time.monotonic() < end and not site.stopping.is_set():
            await asyncio.sleep(LOOK)
            job = await site.work(site.jobs.find, job.job)
    else:
        await asyncio.wait({asyncio.wrap_future(ending)}, timeout=wait)
        error = ending.result() if ending.done() else None
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
    """The response that leads to a job."""
    return written(job_out(job), 202, headers={"Location": f"/v1/jobs/{job.job}"})


def job_out(job: Job) -> JobOut:
    """The response model of a job."""
    faults = [Fault(where=where, reason=reason) for where, reason in job.problems]
    times = {"begun_at": moment(job.begun_at), "changed_at": moment(job.changed_at)}
    return JobOut.model_validate({**job._asdict(), **times, "problems": faults})
