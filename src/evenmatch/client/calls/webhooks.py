"""Whom the service tells what happens, and what became of it."""

from __future__ import annotations

from typing import Literal

from evenmatch.client.call import Call, at, delete, get, post
from evenmatch.client.operation import operation
from evenmatch.http.models.webhooks import (
    DeliveriesTold,
    DeliveryTold,
    WebhookAsked,
    WebhookMade,
    WebhooksTold,
    WebhookTold,
)


class Webhooks:
    """URLs that are told of events."""

    @operation
    def create_webhook(self, webhook: WebhookAsked) -> Call[WebhookMade]:
        """Tell a URL of events from now on; its secret is shown this once."""
        return post(WebhookMade, at("webhooks"), webhook)

    @operation
    def list_webhooks(
        self, *, ladder: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Call[WebhooksTold]:
        """A page of the webhooks of a ladder, or of all."""
        return get(WebhooksTold, at("webhooks"), {"ladder": ladder, "limit": limit, "cursor": cursor})

    @operation
    def remove_webhook(self, webhook: int) -> Call[WebhookTold]:
        """Tell it nothing any more, what waits for it included."""
        return delete(WebhookTold, at("webhooks", webhook))

    @operation
    def list_deliveries(
        self,
        webhook: int,
        *,
        state: Literal["pending", "delivered", "dead"] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Call[DeliveriesTold]:
        """A page of what a webhook was told and what became of it, the latest first."""
        query = {"state": state, "limit": limit, "cursor": cursor}
        return get(DeliveriesTold, at("webhooks", webhook, "deliveries"), query)

    @operation
    def redeliver(self, delivery: int) -> Call[DeliveryTold]:
        """Send it again as soon as may be, whatever became of it."""
        return post(DeliveryTold, at("deliveries", delivery, "redeliver"))
