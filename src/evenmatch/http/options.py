"""Settings of the server, from environment variables such as EVENMATCH_PORT and from command line options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from evenmatch.errors import UsageError
from evenmatch.http.hosts import AllowedHosts, check_proxy
from evenmatch.options import check_colour

Scope = Literal["report", "queue", "read", "ratings", "admin"]
MEGABYTE = 2**20
LOGO_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp"}  # by the ending of the file
LOOPBACK = ("localhost", "127.0.0.1", "::1")
LARGEST_LOGO = 100_000  # bytes; every page loads it


class Options(BaseSettings):
    """Every setting of `evenmatch serve`; the environment variable is the upper-case name after EVENMATCH_."""

    model_config = SettingsConfigDict(env_prefix="EVENMATCH_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 for all addresses of this machine.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free port, which is printed.")
    workers: int = Field(
        1, ge=1, le=64, description="Processes that serve at the port; more than one requires PostgreSQL."
    )
    follower: bool = Field(
        False,
        description="Serve reads only: no writes, no matchmaker, no webhooks. The database may be a hot standby.",
    )
    writes_at: str = Field("", description="URL that accepts writes, named in the answer when a follower refuses one.")
    open_reads: bool = Field(False, description="Let everyone read ladders, standings and matches without a key.")
    rate: float = Field(
        5000.0, gt=0, description="Requests per second that each key may send to a process, on average."
    )
    burst: int = Field(10_000, ge=1, description="Requests that a key may send at once after a pause.")
    player_rate: float = Field(20.0, gt=0, description="Like `rate`, for each player token.")
    player_burst: int = Field(60, ge=1, description="Like `burst`, for each player token.")
    open_rate: float = Field(20.0, gt=0, description="Like `rate`, for each client address without a valid key.")
    open_burst: int = Field(100, ge=1, description="Like `burst`, for each client address without a valid key.")
    body_limit: int = Field(
        8 * MEGABYTE,
        ge=1024,
        description="Largest body of match reports, imports and starting ratings, in bytes; others: 128 KiB.",
    )
    connections: int = Field(
        10_000,
        ge=1,
        description="Most open connections of a process; more get 503. The limit of open files may lower it.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted, as a JSON list of addresses and "
        'networks: ["10.0.0.0/8"]; ["*"]: all clients.',
    )
    hosts: tuple[str, ...] = Field(
        (),
        description="Host names at which the service answers browsers and requests without a key, as a JSON list: "
        '["rank.example"]; "*.rank.example" for all subdomains, "*" for any. Addresses and localhost always work.',
    )
    batch_limit: int = Field(1000, ge=1, le=10_000, description="Most matches in one batch report.")
    team_limit: int = Field(
        10_000, ge=2, description="Most teams in one match, on any ladder; a ladder's own limit, team_limit, is lower."
    )
    player_limit: int = Field(
        10_000, ge=2, description="Most players in one match, on any ladder; see the setting player_limit of a ladder."
    )
    running_limit: int = Field(
        10_000,
        ge=1,
        description="Most running matches of a ladder that game servers may announce; further ones get 429.",
    )
    cors_origins: tuple[str, ...] = Field(
        (), description='Origins whose pages may read responses (CORS), as a JSON list: ["https://game.example"].'
    )
    pages: bool = Field(True, description="Serve the web site as well as the API.")
    site_name: str = Field("evenmatch", min_length=1, max_length=40, description="Name of the web site.")
    accent: str = Field(
        "",
        description="Accent colour of the web site, such as #2a7de1; empty: evenmatch's. Links and buttons take its "
        "hue, in a lightness that is readable on every page.",
    )
    logo: str = Field(
        "", description="File with the logo of the web site: SVG, PNG or WebP, at most 100 kB; empty: evenmatch's."
    )
    imprint: str = Field(
        "",
        description="Address of the imprint, which every page then links to in its footer: https://…, or mailto:….",
    )
    imprint_name: str = Field("Imprint", min_length=1, max_length=40, description="Text of the link to the imprint.")
    texts: str = Field(
        "",
        description="Folder with catalogues for the web site, LANGUAGE.po, which add languages or replace texts; "
        "empty: none.",
    )
    docs: str = Field(
        "", description="Folder with the documentation site that `make docs` built, served at /docs; empty: not served."
    )
    guests: bool = Field(
        False, description="Let visitors of the web site join queues under any name, without a key: for demonstrations."
    )
    player_issuer: str = Field(
        "",
        description="URL of the identity provider of your players, for OpenID Connect: https://id.studio.example; "
        "empty: none.",
    )
    player_audience: str = Field(
        "",
        description="Audience (claim aud) with which tokens of the player issuer are accepted in place of this "
        "service's own; empty: they are not.",
    )
    player_claim: str = Field(
        "",
        description="Claim of the player issuer that is the player's name here, such as sub; empty: accounts are "
        "linked to players.",
    )
    player_client_id: str = Field(
        "", description="Client id of the web site at the player issuer, so that players can log in there; empty: none."
    )
    player_client_secret: str = Field("", repr=False, description="Client secret of the web site there; empty: none.")
    discord_client_id: str = Field(
        "", description="Client id of the web site at Discord, so that players can log in with it; empty: none."
    )
    discord_client_secret: str = Field("", repr=False, description="Client secret of the web site at Discord.")
    steam_login: bool = Field(False, description="Let players log in to the web site with Steam.")
    operator_issuer: str = Field(
        "", description="URL of the OpenID Connect provider at which operators log in (single sign-on); empty: none."
    )
    operator_client_id: str = Field("", description="Client id of the web site at the operator issuer.")
    operator_client_secret: str = Field("", repr=False, description="Client secret of the web site there.")
    operator_groups: dict[str, tuple[Scope, ...]] = Field(
        {},
        description='Scopes of each group of operators, as JSON: {"ladder-admins": ["admin"], "casters": ["ratings"]}.',
    )
    operator_groups_claim: str = Field(
        "groups", description="Claim of the operator issuer with the list of an operator's groups."
    )
    private_webhooks: bool = Field(
        False, description="Also send webhooks to loopback, private and link-local addresses."
    )
    matchmaker: bool = Field(True, description="Run matchmakers for ladders that have none in another process.")
    jobs_at_once: int = Field(
        1,
        ge=1,
        le=64,
        description="Corrections, previews and rebuilds of large ladders that a process runs at a time; others wait.",
    )
    log_format: Literal["json", "text"] = Field("json", description="How log lines are written to standard error.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level that is logged.")
    stop_within: int = Field(
        10,
        ge=1,
        description="Most seconds from SIGTERM to the end of the process; running requests get half of them to finish.",
    )

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            check_proxy(entry)
        return entries

    @field_validator("accent")
    @classmethod
    def _check_accent(cls, colour: str) -> str:
        return check_colour(colour) if colour else colour

    @field_validator("logo")
    @classmethod
    def _check_logo(cls, path: str) -> str:
        if path and Path(path).suffix.lower() not in LOGO_TYPES:
            raise ValueError(f"expected a file that ends in {', '.join(LOGO_TYPES)}")
        if path and not Path(path).is_file():
            raise ValueError("there is no such file")
        if path and Path(path).stat().st_size > LARGEST_LOGO:
            raise ValueError(f"the file is larger than {LARGEST_LOGO:,} bytes")
        return path

    @field_validator("imprint")
    @classmethod
    def _check_imprint(cls, address: str) -> str:
        if address and not address.startswith(("https://", "http://", "mailto:")):
            raise ValueError("expected an address that begins with https://, http:// or mailto:")
        return address

    @field_validator("texts")
    @classmethod
    def _check_texts(cls, path: str) -> str:
        if path and not Path(path).is_dir():
            raise ValueError("there is no such folder")
        return path

    @field_validator("docs")
    @classmethod
    def _check_docs(cls, path: str) -> str:
        if path and not (Path(path) / "index.html").is_file():
            raise ValueError("expected a folder with an index.html, such as build/docs after `make docs`")
        return path

    @field_validator("player_issuer", "operator_issuer")
    @classmethod
    def _check_issuer(cls, url: str) -> str:
        host = urlsplit(url).hostname
        if url and not (host and (url.startswith("https://") or (url.startswith("http://") and host in LOOPBACK))):
            raise ValueError("expected the URL of an OpenID Connect provider, https://…")
        return url

    @field_validator("player_audience", "player_claim", "player_client_id", "operator_client_id")
    @classmethod
    def _check_has_issuer(cls, value: str, info: ValidationInfo) -> str:
        issuer = f"{str(info.field_name).partition('_')[0]}_issuer"
        if value and not info.data.get(issuer):
            raise ValueError(f"it has no effect without EVENMATCH_{issuer.upper()}; set both")
        return value

    @field_validator("hosts")
    @classmethod
    def _check_hosts(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        AllowedHosts(entries, "")
        return entries


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
