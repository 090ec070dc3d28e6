"""The options of a matchmaking policy, typed for requests and responses.

Only types, so that a client need not load the matchmaker: matchmaking.policy.Policy declares the effect and range of
each option and checks the values; `http.app` adds them to the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from evenmatch.http.models.base import RequestModel, ResponseModel

Step = Annotated[list[float], Field(min_length=2, max_length=2)]


def _none(value: object) -> object:
    """Convert "none", which documents written for TOML use, to JSON's null."""
    return None if value == "none" else value


Number = Annotated[float | None, BeforeValidator(_none)]
Whole = Annotated[int | None, BeforeValidator(_none)]


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


LEFT_OUT: Any = Field(default=None, json_schema_extra=_without_default)


class PolicyOptions(RequestModel):
    """Options of a policy; omitted ones are those of the preset, and an omitted team size is that of the ladder."""

    # Unknown names pass here, so that Policy can suggest the right option; the document does not allow them.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    preset: str = Field(default="balanced", description="The policy that provides all options omitted here.")
    team_size: int = LEFT_OUT
    teams: int = LEFT_OUT
    min_team_size: Whole = LEFT_OUT
    smaller_after: float = LEFT_OUT
    steps: list[Step] = LEFT_OUT
    uncertainty: float = LEFT_OUT
    max_odds: Number = LEFT_OUT
    max_rating_spread: Number = LEFT_OUT
    odds_scale: float = LEFT_OUT
    max_ping: Number = LEFT_OUT
    max_wait: Number = LEFT_OUT
    overdue_after: Number = LEFT_OUT
    party_wait: float = LEFT_OUT
    newcomer_wait: float = LEFT_OUT
    rematch_wait: float = LEFT_OUT
    rematch_fade: float = LEFT_OUT
    even_spread: float = LEFT_OUT
    spread_share: float = LEFT_OUT
    spread_cost: float = LEFT_OUT
    odds_cost: float = LEFT_OUT
    roles: dict[str, int] = LEFT_OUT


class QueuePolicy(ResponseModel):
    """All options of a queue's policy."""

    team_size: int
    teams: int
    min_team_size: int | None
    smaller_after: float
    steps: list[Step]
    uncertainty: float
    max_odds: float | None
    max_rating_spread: float | None
    odds_scale: float
    max_ping: float | None
    max_wait: float | None
    overdue_after: float | None
    party_wait: float
    newcomer_wait: float
    rematch_wait: float
    rematch_fade: float
    even_spread: float
    spread_share: float
    spread_cost: float
    odds_cost: float
    roles: dict[str, int]
