"""The bodies that webhooks receive, for the OpenAPI document; evenmatch.webhooks.payloads writes them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenmatch.http.models.base import ResponseModel, ShownTime


class WebhookEvent(ResponseModel):
    """An event of a ladder."""

    ladder: str


class RatedPlayer(ResponseModel):
    """What a match did to a player's rating."""

    player: str
    before: float
    after: float
    change: float
    percentile: int | None
    division: str | None
    expected: float = Field(description="The team's expected score before the match, 0 to 1.")


class MatchRatedEvent(WebhookEvent):
    """A match was rated."""

    event: Literal["match.rated"]
    match_id: str
    position: int = Field(description="Position in the ladder's ledger.")
    played_at: ShownTime
    teams: list[list[RatedPlayer]]


class OfferedPlayer(ResponseModel):
    """A player of an offered match."""

    player: str
    ticket: int
    role: str | None


class OfferEvent(WebhookEvent):
    """An offered match; of a backfill, only the players who join."""

    offer: int
    queue: str
    teams: list[list[OfferedPlayer]]
    region: str | None
    attributes: dict[str, str]
    map: str | None
    odds: list[float] | None
    spread: float


class ProposalMadeEvent(OfferEvent):
    """A match was offered to its players."""

    event: Literal["proposal.made"]
    made_at: ShownTime
    deadline: ShownTime
    backfill: str | None = Field(description="The running match whose open slots are offered; null: a new match.")


class MatchMadeEvent(OfferEvent):
    """All players accepted an offered match."""

    event: Literal["match.made"]
    match_id: str
    backfill: bool = Field(description="True: the players fill open slots of a running match.")


class ServerWantedEvent(OfferEvent):
    """All players accepted, and a game server is wanted until the deadline. The answer is used."""

    event: Literal["server.wanted"]
    deadline: ShownTime


class FoundServer(ResponseModel):
    """The answer to `server.wanted`."""

    address: str = Field(min_length=1, max_length=512)
    tokens: dict[str, str] = Field(description="What each player presents to the server, by name.")


class SeasonEvent(WebhookEvent):
    """A season was opened or closed."""

    season: int
    title: str
    position: int
    opened_at: ShownTime
    closed_at: ShownTime | None


class SeasonOpenedEvent(SeasonEvent):
    """A season was opened."""

    event: Literal["season.opened"]


class SeasonClosedEvent(SeasonEvent):
    """A season was closed."""

    event: Literal["season.closed"]


class RatingsDecayedEvent(WebhookEvent):
    """Ratings of inactive players were lowered."""

    event: Literal["ratings.decayed"]
    position: int
    until: ShownTime
    players: int
    grace_days: float
    rate: float
    floor: float | None
    stop: float | None


EVENT_MODELS: dict[str, type[WebhookEvent]] = {
    "match.rated": MatchRatedEvent,
    "proposal.made": ProposalMadeEvent,
    "match.made": MatchMadeEvent,
    "season.opened": SeasonOpenedEvent,
    "season.closed": SeasonClosedEvent,
    "ratings.decayed": RatingsDecayedEvent,
    "server.wanted": ServerWantedEvent,
}
