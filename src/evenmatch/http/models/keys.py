"""API keys, player tokens and the audit trail."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel

Scope = Literal["report", "queue", "read", "ratings", "admin"]
KEY: dict[str, JsonValue] = {
    "key": "em_k3x7qa2mzp",
    "name": "game server",
    "scopes": ["report"],
    "ladders": ["arena"],
    "created_at": "2026-11-21T18:30:00Z",
    "expires_at": None,
    "revoked_at": None,
    "state": "good",
}


class KeyCreate(RequestModel):
    """The key to create."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "game server", "scopes": ["report"], "ladders": ["arena"]}]}
    )

    name: Name = Field(description="A name for people to recognize the key.")
    scopes: list[Scope] = Field(min_length=1, max_length=5)
    ladders: list[Name] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Ladders the key is valid for; null: all, including future ones.",
    )
    expires_at: Moment | None = None


class KeyOut(ResponseModel):
    """A key without its secret text."""

    model_config = ConfigDict(json_schema_extra={"examples": [KEY]})

    key: str = Field(description="Id of the key; its text cannot be shown again.")
    name: str
    scopes: list[str]
    ladders: list[str] | None
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    state: Literal["good", "revoked", "expired"]


class KeyCreated(KeyOut):
    """A new key with its text, which is shown only once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**KEY, "text": "em_k3x7qa2mzp_…"}]})

    text: str = Field(description="Send it as `Authorization: Bearer …`; it cannot be shown again.")


class KeysPage(ResponseModel):
    """A page of keys, oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [KEY], "next": None}]})

    items: list[KeyOut]
    next: str | None


class TokenRequest(RequestModel):
    """The player who gets a token to queue and read with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"player": "ann", "expires_in": 900}]})

    player: Name
    ladders: list[Name] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Ladders the token is valid for; null: those of the key.",
    )
    expires_in: Annotated[int, Field(ge=1, le=86_400)] = Field(default=3600, description="Lifetime in seconds.")


class TokenOut(ResponseModel):
    """A token that acts as the player until it expires or the key that issued it is revoked."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"player": "ann", "ladders": None, "expires_at": "2026-11-21T19:30:00Z", "token": "eyJ…"}]
        }
    )

    player: str
    ladders: list[str] | None
    expires_at: Moment
    token: str = Field(description="Send it as `Authorization: Bearer …`.")


class AuditEntryOut(ResponseModel):
    """An action and its actor, from the audit trail."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "entry": 12,
                    "at": "2026-11-21T18:30:00Z",
                    "actor": "key em_k3x7qa2mzp",
                    "action": "match.voided",
                    "ladder": "arena",
                    "target": "m-1",
                    "body": {"reason": "the server crashed"},
                    "request": "f1c2d3e4a5b60718",
                }
            ]
        }
    )

    entry: int
    at: Moment
    actor: str
    action: str
    ladder: str | None
    target: str | None
    body: dict[str, object]
    request: str | None = Field(description="Id of the request in the logs.")


class AuditPage(ResponseModel):
    """A page of the audit trail, latest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [], "next": None}]})

    items: list[AuditEntryOut]
    next: str | None
