"""Operators say whom the service tells what happens."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from evenmatch.http.access import Admin, AnyAdmin
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit, deed
from evenmatch.http.models.base import moment
from evenmatch.http.models.webhooks import (
    DeliveriesTold,
    DeliveryTold,
    WebhookAsked,
    WebhookMade,
    WebhooksTold,
    WebhookTold,
)
from evenmatch.http.replies import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.service.callers.access import Caller
from evenmatch.service.hooks.webhooks import Delivery, Webhook

router = APIRouter(prefix="/v1", tags=["webhooks"])
Number = Annotated[int, Path(ge=1, le=2**62)]


@router.post("/webhooks", response_model=WebhookMade, status_code=201, operation_id="create_webhook")
async def create_webhook(asked: WebhookAsked, request: Request, caller: AnyAdmin) -> Response:
    """Tell a URL of events from now on; its secret is shown this once."""
    site = site_of(request)
    caller.check("admin", asked.ladder)
    done = deed(request, caller, "webhook.created", asked.ladder, body={"url": asked.url, "events": asked.events})
    made, secret = await site.work(site.webhooks.noting(done).add, asked.url, asked.events, asked.ladder)
    return written(WebhookMade.model_validate({**_plain(made), "secret": secret}), 201)


@router.get("/webhooks", response_model=WebhooksTold, operation_id="list_webhooks")
async def list_webhooks(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The webhooks of a ladder, or all."""
    site = site_of(request)
    caller.check("admin", ladder)
    begin = 0 if cursor is None else int(read_cursor(cursor, int)[0])
    found = [
        one
        for one in await site.work(site.webhooks.list)
        if one.webhook > begin and (ladder is None or one.ladder == ladder)
    ]
    page = [WebhookTold.model_validate(_plain(one)) for one in found[:limit]]
    after = write_cursor(page[-1].webhook) if len(found) > limit else None
    return read(request, WebhooksTold(items=page, next=after))


@router.delete("/webhooks/{webhook}", response_model=WebhookTold, operation_id="remove_webhook")
async def remove_webhook(webhook: Number, request: Request, caller: AnyAdmin) -> Response:
    """Tell it nothing any more, what waits for it included."""
    site = site_of(request)
    found = await site.work(_find, site, webhook, caller)
    done = deed(request, caller, "webhook.removed", found.ladder, str(webhook))
    removed = await site.work(site.webhooks.noting(done).remove, webhook)
    return written(WebhookTold.model_validate(_plain(removed)))


@router.get("/webhooks/{webhook}/deliveries", response_model=DeliveriesTold, operation_id="list_deliveries")
async def list_deliveries(
    webhook: Number,
    request: Request,
    caller: AnyAdmin,
    state: Literal["pending", "delivered", "dead"] | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """What a webhook was told and what became of it; those that are dead were tried for the last time."""
    site = site_of(request)
    await site.work(_find, site, webhook, caller)
    before = None if cursor is None else int(read_cursor(cursor, int)[0])
    found = await site.work(site.webhooks.deliveries, webhook, state, before, limit)
    after = write_cursor(found[-1].delivery) if len(found) == limit else None
    return read(request, DeliveriesTold(items=[_told(one) for one in found], next=after))


@router.post("/deliveries/{delivery}/redeliver", response_model=DeliveryTold, operation_id="redeliver")
async def redeliver(delivery: Number, request: Request, caller: Admin) -> Response:
    """Send it again as soon as may be, whatever became of it."""
    site = site_of(request)
    done = deed(request, caller, "delivery.again", target=str(delivery))
    return written(_told(await site.work(site.webhooks.noting(done).redeliver, delivery)))


def _find(site: Site, webhook: int, caller: Caller) -> Webhook:
    """A webhook, for a caller who may see it. Raises UnknownNameError, ForbiddenError."""
    found = site.webhooks.get(webhook)
    caller.check("admin", found.ladder)
    return found


def _plain(webhook: Webhook) -> dict[str, object]:
    return {
        "webhook": webhook.webhook,
        "url": webhook.url,
        "events": list(webhook.events),
        "ladder": webhook.ladder,
        "created_at": moment(webhook.created_at),
    }


def _told(one: Delivery) -> DeliveryTold:
    times = {"made_at": one.made_at, "next_at": one.next_at, "delivered_at": one.delivered_at}
    told = {name: None if at is None else moment(at) for name, at in times.items()}
    return DeliveryTold.model_validate(
        {
            "delivery": one.delivery,
            "webhook": one.webhook,
            "event": one.event,
            "state": one.state,
            "body": one.body,
            "attempts": one.attempts,
            "error": one.error,
            **told,
        }
    )
