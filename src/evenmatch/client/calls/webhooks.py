"""Webhooks and their deliveries."""

from __future__ import annotations

from typing import Literal

from evenmatch.client.call import Call, delete, get, path_of, post
from evenmatch.client.operation import operation
from evenmatch.http.models.webhooks import (
    DeliveriesPage,
    DeliveryOut,
    WebhookCreate,
    WebhookCreated,
    WebhookOut,
    WebhooksPage,
)


class WebhookCalls:
    """Webhooks: URLs to which the service sends events, and the deliveries to them."""

    @operation
    def create_webhook(self, webhook: WebhookCreate) -> Call[WebhookCreated]:
        """Create a webhook, which sends future events to a URL. Its secret is returned only this once."""
        return post(WebhookCreated, path_of("webhooks"), webhook)

    @operation
    def list_webhooks(
        self, *, ladder: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Call[WebhooksPage]:
        """A page of the webhooks of one ladder or of all."""
        return get(WebhooksPage, path_of("webhooks"), {"ladder": ladder, "limit": limit, "cursor": cursor})

    @operation
    def remove_webhook(self, webhook: int) -> Call[WebhookOut]:
        """Remove a webhook; its pending deliveries are not sent either."""
        return delete(WebhookOut, path_of("webhooks", webhook))

    @operation
    def resume_webhook(self, webhook: int) -> Call[WebhookOut]:
        """End the pause of a webhook whose receiver kept failing, so that its deliveries are sent."""
        return post(WebhookOut, path_of("webhooks", webhook, "resume"))

    @operation
    def list_deliveries(
        self,
        webhook: int,
        *,
        state: Literal["pending", "delivered", "dead"] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Call[DeliveriesPage]:
        """A page of the deliveries of a webhook with their states, newest first."""
        query = {"state": state, "limit": limit, "cursor": cursor}
        return get(DeliveriesPage, path_of("webhooks", webhook, "deliveries"), query)

    @operation
    def redeliver(self, delivery: int) -> Call[DeliveryOut]:
        """Send a delivery again as soon as possible, whatever its state."""
        return post(DeliveryOut, path_of("deliveries", delivery, "redeliver"))
