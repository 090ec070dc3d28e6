"""Health checks and metrics of the process."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.errors import SecretError, StoreError
from evenmatch.http.access import Watcher
from evenmatch.http.models.health import Health
from evenmatch.http.problems import OTHERS, STARTING, make_problem, respond
from evenmatch.http.site import site_of
from evenmatch.service.master_secret import is_current

READY_LIMIT = 5.0  # seconds within which the database must answer

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="health")
async def health() -> Health:
    """The process is running."""
    return Health(status="ok")


@router.get("/readyz", operation_id="ready", responses={503: {"description": "The process cannot serve requests now."}})
async def ready(request: Request) -> Response:
    """The process can serve: the database takes writes, rating systems and matchmaker are loaded, it is not stopping.

    The write of one row is tested at most every five seconds; in between, its result is answered.
    The first start after an installation compiles them, which takes about a minute.
    """
    site = site_of(request)
    if site.stopping.is_set():
        return respond(make_problem(OTHERS[503], "the process was asked to stop"))
    if not site.kernels.ready.is_set():
        return _not_loaded()
    problem = await site.readiness.problem()
    if problem is not None:
        return respond(make_problem(OTHERS[503], f"the database takes no writes: {problem}"))
    try:
        has_secret = await site.work(is_current, site.service.database, within=READY_LIMIT)
    except SecretError:
        has_secret = False
    except StoreError:
        return respond(make_problem(OTHERS[503], "the database does not answer"))
    if not has_secret:
        return respond(make_problem(OTHERS[503], "the master secret of this process is not that of the database"))
    return Response(Health(status="ok").model_dump_json(), media_type="application/json")


def _not_loaded() -> Response:
    detail = "getting ready: loading rating systems and matchmaker; the first start compiles them, which takes a minute"
    return respond(make_problem(STARTING, detail, retry_after=1))


@router.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request, _: Watcher) -> Response:
    """The metrics of this process, in the Prometheus text format."""
    site = site_of(request)
    return Response(await site.work(site.metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8")
