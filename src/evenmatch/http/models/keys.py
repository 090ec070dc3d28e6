"""API keys, player tokens and linked accounts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.accounts.account_sql import Key, LinkedAccount
from evenmatch.accounts.tokens import Token
from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel, examples
from evenmatch.http.models.from_records import fields_of
from evenmatch.http.options import Scope


class KeyCreate(RequestModel):
    """The key to create."""

    model_config = examples({"name": "game server", "scopes": ["report"], "ladders": ["arena"]})

    name: Name = Field(description="A name by which people recognize the key.")
    scopes: list[Scope] = Field(min_length=1, max_length=5)
    ladders: list[Name] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Ladders the key is valid for; null: all, including future ones.",
    )
    expires_at: Moment | None = None


@fields_of(Key)
class KeyOut(ResponseModel):
    """An API key without its secret text."""

    state: Literal["good", "revoked", "expired"]


class KeyCreated(KeyOut):
    """A new key with its text, which is shown only once."""

    text: str = Field(description="Send it as `Authorization: Bearer …`. It cannot be shown again.")


class TokenRequest(RequestModel):
    """The player who gets a token to queue and read with."""

    model_config = examples({"player": "ann", "expires_in": 900})

    player: Name
    ladders: list[Name] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Ladders the token is valid for; null: those of the key.",
    )
    expires_in: Annotated[int, Field(ge=1, le=86_400)] = Field(default=3600, description="Lifetime in seconds.")


@fields_of(Token, "text")
class TokenOut(ResponseModel):
    """A token that acts as a player until it expires or the key that issued it is revoked."""

    token: str = Field(description="Send it as `Authorization: Bearer …`.")


class LoginLinkRequest(RequestModel):
    """The player who gets a link that logs them in to the web site."""

    model_config = examples({"player": "ann"})

    player: Name
    expires_in: Annotated[int, Field(ge=1, le=86_400)] = Field(default=900, description="Lifetime in seconds.")


@fields_of(Token, "text", "ladders")
class LoginLinkOut(ResponseModel):
    """A link that logs a player in to the web site, once."""

    path: str = Field(description="Append it to the address of the site; it works once.")


class AccountLink(RequestModel):
    """An account at an identity provider."""

    model_config = examples({"issuer": "steam", "subject": "76561197960287930"})

    issuer: Name = Field(description="The URL of an OpenID Connect provider, `discord` or `steam`.")
    subject: Name = Field(description="The id of the account there: the claim `sub`, the Discord id or the SteamID64.")


@fields_of(LinkedAccount)
class AccountOut(ResponseModel):
    """An account with which a player logs in."""
