"""Keys, players' tokens, and the trail of who did what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from evenmatch.http.models.base import Asked, Moment, Name, Told

Scope = Literal["report", "queue", "read", "admin"]
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


class KeyAsked(Asked):
    """A key to be made."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "game server", "scopes": ["report"], "ladders": ["arena"]}]}
    )

    name: Name = Field(description="What people know it by.")
    scopes: list[Scope] = Field(min_length=1, max_length=4)
    ladders: list[Name] | None = Field(
        default=None, min_length=1, max_length=1000, description="null: all, those to come too."
    )
    expires_at: Moment | None = None


class KeyTold(Told):
    """All that may be told of a key."""

    model_config = ConfigDict(json_schema_extra={"examples": [KEY]})

    key: str = Field(description="Its id; the key itself cannot be told again.")
    name: str
    scopes: list[str]
    ladders: list[str] | None
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    state: Literal["good", "revoked", "expired"]


class KeyMade(KeyTold):
    """A key, this once with its text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**KEY, "text": "em_k3x7qa2mzp_…"}]})

    text: str = Field(description="To be sent as `Authorization: Bearer …`; only its hash is kept.")


class KeysTold(Told):
    """A page of keys, the first one first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [KEY], "next": None}]})

    items: list[KeyTold]
    next: str | None


class TokenAsked(Asked):
    """A player who is to queue and read by themselves."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"player": "ann", "expires_in": 900}]})

    player: Name
    ladders: list[Name] | None = Field(
        default=None, min_length=1, max_length=100, description="null: those of the key."
    )
    expires_in: Annotated[int, Field(ge=1, le=86_400)] = Field(default=3600, description="Seconds.")


class TokenTold(Told):
    """A token: whoever has it acts as the player until it expires, or the key that issued it is revoked."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"player": "ann", "ladders": None, "expires_at": "2026-11-21T19:30:00Z", "token": "eyJ…"}]
        }
    )

    player: str
    ladders: list[str] | None
    expires_at: Moment
    token: str = Field(description="To be sent as `Authorization: Bearer …`.")


class EntryTold(Told):
    """What was done once, and by whom."""

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
    request: str | None = Field(description="By which the logs know the request.")


class AuditTold(Told):
    """A page of the trail, the latest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [], "next": None}]})

    items: list[EntryTold]
    next: str | None
