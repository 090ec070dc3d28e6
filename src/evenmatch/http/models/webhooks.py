"""Webhooks and their deliveries."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel, Text

Event = Literal["match.rated", "proposal.made", "match.made", "season.opened", "season.closed", "ratings.decayed"]
HOOK: dict[str, JsonValue] = {
    "webhook": 3,
    "url": "https://game.example/evenmatch",
    "events": ["match.rated", "season.closed"],
    "ladder": "arena",
    "created_at": "2026-11-21T18:30:00Z",
    "failures": 0,
    "error": None,
    "next_at": None,
}
DELIVERY: dict[str, JsonValue] = {
    "delivery": 71,
    "webhook": 3,
    "event": "season.closed",
    "state": "delivered",
    "body": '{"event": "season.closed", "ladder": "arena"}',
    "made_at": "2026-12-01T00:00:00Z",
    "attempts": 1,
    "next_at": None,
    "delivered_at": "2026-12-01T00:00:00.120000Z",
    "error": None,
}


class WebhookCreate(RequestModel):
    """The URL and events of a new webhook."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": HOOK["url"], "events": ["match.rated"], "ladder": "arena"}]}
    )

    url: Annotated[Text, Field(min_length=1, max_length=2000)] = Field(
        description="http or https; redirects are not followed."
    )
    events: list[Event] = Field(min_length=1, max_length=16)
    ladder: Name | None = Field(default=None, description="null: all ladders, including future ones.")


class WebhookOut(ResponseModel):
    """A URL that receives events."""

    model_config = ConfigDict(json_schema_extra={"examples": [HOOK]})

    webhook: int
    url: str
    events: list[str]
    ladder: str | None
    created_at: Moment
    failures: int = Field(description="Failed attempts of the delivery that comes next; later ones wait for it.")
    error: str | None = Field(description="Error of the last of these attempts.")
    next_at: Moment | None = Field(description="Time of its next attempt; null if it has not failed.")


class WebhookCreated(WebhookOut):
    """A new webhook with its secret, which is shown only once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**HOOK, "secret": "whs_…"}]})

    secret: str = Field(
        description="Key of the signature: Evenmatch-Signature is v1= and the hex HMAC-SHA256 of `timestamp.body`."
    )


class WebhooksPage(ResponseModel):
    """A page of webhooks, oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [HOOK], "next": None}]})

    items: list[WebhookOut]
    next: str | None


class DeliveryOut(ResponseModel):
    """One event to send to a webhook, and the state of its delivery."""

    model_config = ConfigDict(json_schema_extra={"examples": [DELIVERY]})

    delivery: int
    webhook: int
    event: str
    state: Literal["pending", "delivered", "dead"]
    body: str = Field(description="The body as sent.")
    made_at: Moment
    attempts: int
    next_at: Moment | None = Field(description="Time of the next attempt; null if there is none.")
    delivered_at: Moment | None
    error: str | None = Field(description="Error of the last attempt.")


class DeliveriesPage(ResponseModel):
    """A page of deliveries, latest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [DELIVERY], "next": None}]})

    items: list[DeliveryOut]
    next: str | None
