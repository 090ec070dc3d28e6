"""Endpoints for webhooks and their deliveries."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from evenmatch.accounts.access import Caller
from evenmatch.errors import UnknownNameError
from evenmatch.http.access import Admin, AnyAdmin, audit_entry
from evenmatch.http.cursors import Cursor, Limit, number_of, split_page
from evenmatch.http.models.from_records import page_of
from evenmatch.http.models.webhooks import DeliveryOut, WebhookCreate, WebhookCreated, WebhookOut
from evenmatch.http.responses import read_page, written
from evenmatch.http.site import Site, site_of
from evenmatch.webhooks.subscriptions import Delivery, Webhook

router = APIRouter(prefix="/v1", tags=["webhooks"])
Number = Annotated[int, Path(ge=1, le=2**62)]


@router.post("/webhooks", response_model=WebhookCreated, status_code=201, operation_id="create_webhook")
async def create_webhook(asked: WebhookCreate, request: Request, caller: AnyAdmin) -> Response:
    """Create a webhook: send events to a URL from now on. Its secret is shown only once."""
    site = site_of(request)
    caller.check("admin", asked.ladder)
    entry = audit_entry(
        request, caller, "webhook.created", asked.ladder, body={"url": asked.url, "events": asked.events}
    )
    await site.check_webhook(asked.ladder, asked.url)
    webhook, secret = await site.work(site.webhooks.noting(entry).add, asked.url, asked.events, asked.ladder)
    return written(WebhookCreated.from_record(webhook, secret=secret, failures=0, error=None, next_at=None), 201)


@router.get("/webhooks", response_model=page_of(WebhookOut), operation_id="list_webhooks")
async def list_webhooks(
    request: Request, caller: AnyAdmin, ladder: str | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List the webhooks of a ladder, or all webhooks."""
    site = site_of(request)
    caller.check("admin", ladder)
    begin = number_of(cursor) or 0
    webhooks = [
        hook
        for hook in await site.work(site.webhooks.list)
        if hook.webhook > begin and (ladder is None or hook.ladder == ladder)
    ]
    failing = await site.work(site.webhooks.failing)
    page, after = split_page(webhooks, limit, lambda hook: (hook.webhook,))
    return read_page(request, WebhookOut, [_webhook(hook, failing.get(hook.webhook)) for hook in page], after)


@router.delete("/webhooks/{webhook}", response_model=WebhookOut, operation_id="remove_webhook")
async def remove_webhook(webhook: Number, request: Request, caller: AnyAdmin) -> Response:
    """Remove a webhook and its pending deliveries."""
    site = site_of(request)
    current = await site.work(_find, site, webhook, caller)
    entry = audit_entry(request, caller, "webhook.removed", current.ladder, str(webhook))
    removed = await site.work(site.webhooks.noting(entry).remove, webhook)
    return written(_webhook(removed))


@router.post("/webhooks/{webhook}/resume", response_model=WebhookOut, operation_id="resume_webhook")
async def resume_webhook(webhook: Number, request: Request, caller: AnyAdmin) -> Response:
    """Retry the delivery of a failing webhook at once instead of at `next_at`."""
    site = site_of(request)
    current = await site.work(_find, site, webhook, caller)
    entry = audit_entry(request, caller, "webhook.resumed", current.ladder, str(webhook))
    resumed = await site.work(site.webhooks.noting(entry).resume, webhook)
    failing = await site.work(site.webhooks.failing)
    return written(_webhook(resumed, failing.get(webhook)))


@router.get("/webhooks/{webhook}/deliveries", response_model=page_of(DeliveryOut), operation_id="list_deliveries")
async def list_deliveries(
    webhook: Number,
    request: Request,
    caller: AnyAdmin,
    state: Literal["pending", "delivered", "dead"] | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List the deliveries of a webhook, latest first. Dead ones are not retried."""
    site = site_of(request)
    await site.work(_find, site, webhook, caller)
    deliveries = await site.work(site.webhooks.deliveries, webhook, state, number_of(cursor), limit + 1)
    page, after = split_page(deliveries, limit, lambda delivery: (delivery.delivery,))
    return read_page(request, DeliveryOut, map(DeliveryOut.from_record, page), after)


@router.post("/deliveries/{delivery}/redeliver", response_model=DeliveryOut, operation_id="redeliver")
async def redeliver(delivery: Number, request: Request, caller: Admin) -> Response:
    """Send a delivery again as soon as possible, whatever its state."""
    site = site_of(request)
    entry = audit_entry(request, caller, "delivery.again", target=str(delivery))
    return written(DeliveryOut.from_record(await site.work(site.webhooks.noting(entry).redeliver, delivery)))


def _find(site: Site, webhook: int, caller: Caller) -> Webhook:
    """Return a webhook. Raises UnknownNameError, also if the caller may not administer its ladder."""
    hook = site.webhooks.get(webhook)
    if not caller.may("admin", hook.ladder):
        raise UnknownNameError("webhook", str(webhook), ())
    return hook


def _webhook(webhook: Webhook, failed: Delivery | None = None) -> WebhookOut:
    """Return the response model of a webhook. failed: its next delivery, if an attempt of it has failed."""
    failures, error, next_at = (0, None, None) if failed is None else (failed.attempts, failed.error, failed.next_at)
    return WebhookOut.from_record(webhook, failures=failures, error=error, next_at=next_at)
