"""Whether the process lives and can serve, and its figures."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.errors import StoreError
from evenmatch.http.access import Watcher
from evenmatch.http.models.health import Health
from evenmatch.http.problems import OTHERS, respond, told
from evenmatch.http.site import site_of

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="health")
async def health() -> Health:
    """The process lives."""
    return Health(status="ok")


@router.get("/readyz", operation_id="ready", responses={503: {"description": "It cannot serve at the moment."}})
async def ready(request: Request) -> Response:
    """It can serve: the database answers, and the process is not about to stop."""
    site = site_of(request)
    if site.stopping.is_set():
        return respond(told(OTHERS[503], "the process was asked to stop"))
    try:
        await site.work(site.service.database.version)
    except StoreError:
        return respond(told(OTHERS[503], "the database does not answer"))
    return Response(Health(status="ok").model_dump_json(), media_type="application/json")


@router.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request, _: Watcher) -> Response:
    """The figures of this process, as Prometheus reads them."""
    site = site_of(request)
    return Response(await site.work(site.metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8")
