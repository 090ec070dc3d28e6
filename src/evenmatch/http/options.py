"""How a process serves: from the environment, as EVENMATCH_PORT, and from options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from evenmatch.errors import UsageError

MEGABYTE = 2**20


class Options(BaseSettings):
    """Every setting of `evenmatch serve`; each has an environment variable of its name with EVENMATCH_ before it."""

    model_config = SettingsConfigDict(env_prefix="EVENMATCH_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 for all of this machine's.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one, which is printed.")
    open_reads: bool = Field(False, description="Let anybody read ladders, standings and matches, without a key.")
    rate: float = Field(5000.0, gt=0, description="Requests a second of each key to this process, on average.")
    burst: int = Field(10_000, ge=1, description="Requests of a key at once, after it was quiet.")
    player_rate: float = Field(20.0, gt=0, description="The same for each player's token.")
    player_burst: int = Field(60, ge=1, description="The same for each player's token.")
    open_rate: float = Field(20.0, gt=0, description="The same for each address that asks without a key.")
    open_burst: int = Field(100, ge=1, description="The same for each address that asks without a key.")
    body_limit: int = Field(8 * MEGABYTE, ge=1024, description="Bytes that the body of a request may have.")
    batch_limit: int = Field(1000, ge=1, le=10_000, description="Matches that one report may have.")
    cors_origins: tuple[str, ...] = Field(
        (), description='Origins whose pages may read answers, as a JSON list: ["https://game.example"].'
    )
    pages: bool = Field(True, description="Serve the web site for people beside the API.")
    guests: bool = Field(
        False, description="Let visitors of the web site queue under any name, without a key: for demonstrations."
    )
    private_webhooks: bool = Field(
        False, description="Send webhooks to loopback, private and link-local addresses too."
    )
    matchmaker: bool = Field(True, description="Run the matchmakers of ladders that no other process runs.")
    log_format: Literal["json", "text"] = Field("json", description="How log lines are written to standard error.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="What is logged.")
    stop_within: int = Field(30, ge=1, description="Seconds that requests have to end when it is asked to stop.")


def read_options(given: Mapping[str, object]) -> Options:
    """The options of the environment, in place of which stand those that are given. Raises UsageError."""
    try:
        return Options(**given)  # type: ignore[arg-type]
    except SettingsError as error:
        raise UsageError(f"{error}; accepted is JSON, as in '[\"https://game.example\"]'") from None
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        where = f"--{name.replace('_', '-')}" if name in given else f"EVENMATCH_{name.upper()}"
        raise UsageError(f"{where} is {first['input']!r}: {first['msg']}") from None
