"""Settings of the server, from environment variables such as EVENMATCH_PORT and from command line options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from evenmatch.errors import UsageError

MEGABYTE = 2**20


class Options(BaseSettings):
    """Every setting of `evenmatch serve`; the environment variable is the upper-case name after EVENMATCH_."""

    model_config = SettingsConfigDict(env_prefix="EVENMATCH_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 for all addresses of this machine.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free port, which is printed.")
    open_reads: bool = Field(False, description="Let everyone read ladders, standings and matches without a key.")
    rate: float = Field(
        5000.0, gt=0, description="Requests per second that each key may send to this process, on average."
    )
    burst: int = Field(10_000, ge=1, description="Requests that a key may send at once after a pause.")
    player_rate: float = Field(20.0, gt=0, description="As `rate`, for each player's token.")
    player_burst: int = Field(60, ge=1, description="As `burst`, for each player's token.")
    open_rate: float = Field(20.0, gt=0, description="As `rate`, for each client address without a key.")
    open_burst: int = Field(100, ge=1, description="As `burst`, for each client address without a key.")
    body_limit: int = Field(8 * MEGABYTE, ge=1024, description="Largest request body, in bytes.")
    batch_limit: int = Field(1000, ge=1, le=10_000, description="Most matches in one batch report.")
    cors_origins: tuple[str, ...] = Field(
        (), description='Origins whose pages may read responses (CORS), as a JSON list: ["https://game.example"].'
    )
    pages: bool = Field(True, description="Serve the web site as well as the API.")
    guests: bool = Field(
        False, description="Let visitors of the web site queue under any name, without a key: for demonstrations."
    )
    private_webhooks: bool = Field(
        False, description="Send webhooks to loopback, private and link-local addresses too."
    )
    matchmaker: bool = Field(True, description="Run matchmakers for ladders that have none in another process.")
    jobs_at_once: int = Field(
        1,
        ge=1,
        le=64,
        description="Worker processes that correct, preview, rebuild or verify large ladders at a time; others wait.",
    )
    log_format: Literal["json", "text"] = Field("json", description="How log lines are written to standard error.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level that is logged.")
    stop_within: int = Field(
        30, ge=1, description="Seconds that running requests have to finish when the process is asked to stop."
    )


def read_options(given: Mapping[str, object]) -> Options:
    """The options of the environment, overridden by the given ones. Raises UsageError."""
    try:
        return Options(**given)  # type: ignore[arg-type]
    except SettingsError as error:
        raise UsageError(f"{error}; expected JSON, for example '[\"https://game.example\"]'") from None
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        where = f"--{name.replace('_', '-')}" if name in given else f"EVENMATCH_{name.upper()}"
        raise UsageError(f"{where} is {first['input']!r}: {first['msg']}") from None
