"""Whom the service tells what happens, and what became of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from evenmatch.http.models.base import Asked, Moment, Name, Text, Told

Event = Literal["match.rated", "proposal.made", "match.made", "season.opened", "season.closed"]
HOOK: dict[str, JsonValue] = {
    "webhook": 3,
    "url": "https://game.example/evenmatch",
    "events": ["match.rated", "season.closed"],
    "ladder": "arena",
    "created_at": "2026-11-21T18:30:00Z",
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


class WebhookAsked(Asked):
    """A URL that is to be told of events from now on."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": HOOK["url"], "events": ["match.rated"], "ladder": "arena"}]}
    )

    url: Annotated[Text, Field(min_length=1, max_length=2000)] = Field(
        description="http or https; redirects are not followed."
    )
    events: list[Event] = Field(min_length=1, max_length=16)
    ladder: Name | None = Field(default=None, description="null: all of them, those to come too.")


class WebhookTold(Told):
    """A URL that is told of events."""

    model_config = ConfigDict(json_schema_extra={"examples": [HOOK]})

    webhook: int
    url: str
    events: list[str]
    ladder: str | None
    created_at: Moment


class WebhookMade(WebhookTold):
    """A webhook, this once with its secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**HOOK, "secret": "whs_…"}]})

    secret: str = Field(description="Evenmatch-Signature is v1= and the hex HMAC-SHA256 by it of `timestamp.body`.")


class WebhooksTold(Told):
    """A page of webhooks, the oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [HOOK], "next": None}]})

    items: list[WebhookTold]
    next: str | None


class DeliveryTold(Told):
    """What a webhook is told once."""

    model_config = ConfigDict(json_schema_extra={"examples": [DELIVERY]})

    delivery: int
    webhook: int
    event: str
    state: Literal["pending", "delivered", "dead"]
    body: str = Field(description="As it is sent.")
    made_at: Moment
    attempts: int
    next_at: Moment | None = Field(description="When it is tried (again); null where it is over.")
    delivered_at: Moment | None
    error: str | None = Field(description="What went wrong the last time.")


class DeliveriesTold(Told):
    """A page of deliveries, the latest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [DELIVERY], "next": None}]})

    items: list[DeliveryTold]
    next: str | None
