"""Health checks and metrics of the process."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Watcher
from evenmatch.http.models.health import Health
from evenmatch.http.models.problems import Problem
from evenmatch.http.problems import OTHERS, STARTING, make_problem, respond
from evenmatch.http.site import Site, site_of

LOADING = "getting ready: loading rating systems and matchmaker; the first start compiles them, which takes a minute"

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="health")
async def health() -> Health:
    """The process is running."""
    return Health(status="ok")


@router.get("/readyz", operation_id="ready", responses={503: {"description": "The process cannot serve requests now."}})
async def ready(request: Request) -> Response:
    """The process can serve: the database takes writes, rating systems and matchmaker are loaded, it is not stopping.

    The write of one row and the master secret are tested at most every five seconds; in between, their result is
    answered.
    The first start after an installation compiles them, which takes about a minute.
    """
    problem = await obstacle(site_of(request))
    if problem is not None:
        return respond(problem)
    return Response(Health(status="ok").model_dump_json(), media_type="application/json")


async def obstacle(site: Site) -> Problem | None:
    """Why the process cannot serve now; None: it can."""
    if site.stopping.is_set() and not site.retiring.is_set():
        return make_problem(OTHERS[503], "the process was asked to stop")
    if not site.kernels.ready.is_set():
        return make_problem(STARTING, LOADING, retry_after=1)
    problem = await site.readiness.problem()
    return None if problem is None else make_problem(OTHERS[503], problem)


@router.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request, _: Watcher) -> Response:
    """The metrics in the Prometheus text format; of several serving processes each with its number, `worker`."""
    site = site_of(request)
    text = await site.work(site.metrics.text, site.exchange)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
