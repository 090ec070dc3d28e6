"""Webhooks and their deliveries."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.http.models.base import Name, RequestModel, ResponseModel, ShownTime, Text, examples
from evenmatch.http.models.from_records import fields_of
from evenmatch.webhooks.webhook_sql import Delivery, Webhook

Event = Literal[
    "match.rated",
    "proposal.made",
    "match.made",
    "season.opened",
    "season.closed",
    "ratings.decayed",
    "server.wanted",
]


class WebhookCreate(RequestModel):
    """The URL and events of a new webhook."""

    model_config = examples({"url": "https://game.example/evenmatch", "events": ["match.rated"], "ladder": "arena"})

    url: Annotated[Text, Field(min_length=1, max_length=2000)] = Field(
        description="http or https; redirects are not followed."
    )
    events: list[Event] = Field(min_length=1, max_length=16)
    ladder: Name | None = Field(default=None, description="null: all ladders, including future ones.")


@fields_of(Webhook, "sealed")
class WebhookOut(ResponseModel):
    """A URL that receives events."""

    events: list[Event]
    failures: int = Field(description="Failed attempts of the next delivery; later deliveries wait for it.")
    error: str | None = Field(description="Error of the last of these attempts.")
    next_at: ShownTime | None = Field(description="Time of its next attempt; null if it has not failed.")


class WebhookCreated(WebhookOut):
    """A new webhook with its secret, which is shown only once."""

    secret: str = Field(
        description="Key of the signature: Evenmatch-Signature is v1= and the hex HMAC-SHA256 of `timestamp.body`."
    )


@fields_of(Delivery)
class DeliveryOut(ResponseModel):
    """One event to send to one webhook, and the state of its delivery."""

    event: Event
    state: Literal["pending", "delivered", "dead"] = Field(description="Dead: the last attempt failed.")
