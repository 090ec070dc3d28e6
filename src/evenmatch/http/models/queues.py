"""Queues, tickets and offers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel, examples
from evenmatch.http.models.matches import PlayerStakesOut
from evenmatch.http.models.options import (
    OptionsRequest,
    OptionsResponse,
    checked_fields,
    passed_fields,
    response_fields,
)
from evenmatch.http.models.policies import PolicyOptions, QueuePolicy
from evenmatch.options import options_of
from evenmatch.service.queue_filter import QueueFilter
from evenmatch.service.queue_rules import QueueRules

Names = Annotated[list[Name], Field(max_length=64)]
Ping = Annotated[float, Field(ge=0, le=1e9, description="Milliseconds.")]


class PartyMember(RequestModel):
    """A player of a party and their requirements for a match."""

    player: Name
    within: Annotated[float, Field(ge=0, le=100)] | None = Field(
        default=None,
        description="Largest difference in percentiles to the other players; default: as in the filter that the player "
        "keeps on the ladder, else 2.",
    )
    loose: bool | None = Field(
        default=None,
        description="True: `within` grows with waiting time; false: it stays as given; default: as the player keeps "
        "it, else true.",
    )
    roles: list[Name] = Field(default_factory=list, max_length=64, description="Roles the player plays; empty: any.")
    ping: dict[Name, Ping] = Field(
        default_factory=dict, max_length=64, description="Ping by region; empty: any region."
    )
    max_ping: Ping | None = Field(
        default=None, description="Highest ping that the player accepts; default: as the player keeps it, else any."
    )
    regions: Annotated[list[Name], Field(max_length=64)] | None = Field(
        default=None,
        description="Regions where the player plays, empty: any; default: as the player keeps it, else any.",
    )
    attributes: Annotated[dict[Name, Annotated[list[Name], Field(max_length=64)]], Field(max_length=64)] | None = Field(
        default=None,
        description="Values that the player accepts, by attribute that the queue's policy declares (`map`: maps), "
        "not named: all; default: as the player keeps it, else all.",
    )
    vetoes: Annotated[list[Name], Field(max_length=64)] | None = Field(
        default=None, description="Maps that the player does not play; default: as the player keeps it, else none."
    )
    avoid: list[Name] = Field(
        default_factory=list, max_length=256, description="Players who must not be in the same match."
    )


class JoinRequest(RequestModel):
    """A party that joins one or more queues."""

    model_config = examples(
        {
            "queues": ["main"],
            "members": [
                {"player": "ann", "within": 5, "loose": False, "ping": {"eu": 20, "us": 110}},
                {"player": "bob", "ping": {"eu": 35}, "avoid": ["joe"]},
            ],
        }
    )

    members: list[PartyMember] = Field(min_length=1, max_length=50)
    queues: list[Name] = Field(min_length=1, max_length=64, description="The ticket waits in all of these queues.")
    request_id: Name | None = Field(
        default=None, description="Chosen by you: repeating the request returns the same ticket."
    )
    playlist: dict[Name, list[Name]] = Field(
        default={},
        description="Queues of other ladders in which the party waits too, by ladder; the first match ends it all.",
    )


class OfferAnswer(RequestModel):
    """An accept or decline of an offer."""

    model_config = examples({"player": "ann"})

    player: Name | None = Field(
        default=None, description="The player of the party who answers; default: the whole party."
    )
    offer: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The offer that is answered; default: the current one."
    )


class AttributeCountOut(ResponseModel):
    """The values of an attribute that a ticket accepts, and how many other waiting players accept any of them."""

    accepts: list[str]
    players: int


class WaitingOut(ResponseModel):
    """The search state of a ticket in one queue."""

    window: tuple[float, float] | None = Field(
        description="Range of percentiles that all other players must be in; null: not shown."
    )
    strict: bool
    widens_in: float | None = Field(description="Seconds until the range widens; null: it does not widen further.")
    widens_to: tuple[float, float] | None
    needed: int = Field(description="Number of further players that a match needs.")
    within: int = Field(description="Players who could be in a match with this ticket now.")
    estimate: float | None = Field(
        description="Estimated further waiting time in seconds, the median; null: no suitable players queued recently."
    )
    upper: float | None = Field(
        default=None, description="Further seconds within which nine of ten such tickets find a match; null: unknown."
    )
    attributes: dict[str, AttributeCountOut] = Field(
        default_factory=dict, description="The attributes that keep other waiting players apart from this ticket."
    )
    sentences: list[str] = Field(description="The same information in sentences.")


class OfferOut(ResponseModel):
    """An offered match.

    accepted  number of its players who have accepted
    own       whether each player of this ticket has accepted
    match_id  the running match whose open slots are offered; null: a new match
    """

    offer: int
    queue: str
    deadline: Moment
    players: int
    accepted: int
    own: dict[str, bool]
    teams: list[int] = Field(description="Number of players of each team who received the offer.")
    match_id: str | None
    region: str | None
    attributes: dict[str, str] = Field(
        default_factory=dict, description="The value of each attribute with which the match is played."
    )
    map: str | None = Field(default=None, description="Null: the queue has no maps.")
    odds: list[float] | None = Field(
        description="Predicted score of each team by the ladder's rating system, a draw counts half, as `POST …/odds` "
        "gives it; null: the system cannot predict such a match, or the ladder does not show its ratings."
    )
    spread: float | None = Field(
        description="Difference in percentiles between the lowest and the highest player; null: not shown."
    )
    costs: dict[str, float] = Field(
        description="Costs of the match by name, in equivalent seconds of waiting; empty: not shown."
    )
    stakes: dict[str, PlayerStakesOut] = Field(
        description="Ratings of this ticket's players after a win, a draw, a loss and quitting half-way, in a match "
        "of 600 seconds that ends 2 : 1; empty: not known, or not shown."
    )


class MatchedPlayer(ResponseModel):
    """A player of a match."""

    player: str
    role: str | None


class MatchedOut(ResponseModel):
    """The match that a ticket was assigned to."""

    match_id: str
    state: Literal["open", "closed", "cancelled", "expired"]
    queue: str | None
    region: str | None
    attributes: dict[str, str] = Field(default_factory=dict)
    map: str | None = None
    started_at: Moment
    teams: list[list[MatchedPlayer]]


TicketState = Literal["waiting", "offered", "elsewhere", "matched", "gone"]


class LinkedTicketOut(ResponseModel):
    """The ticket of the same party on another ladder of its playlist."""

    ladder: str
    ticket: int
    state: TicketState


class TicketOut(ResponseModel):
    """A ticket and its state.

    state    waiting; offered: players must accept or decline; elsewhere: a match is offered on another ladder of the
             playlist; matched: play; gone: removed, `ended` says why
    playlist the party's tickets on other ladders
    follow   the one of them to follow instead of this: it has an offer or a match, or waits while this one is gone
    change   number of the latest change; send it as `after` to wait for the next one
    waiting  the search state by queue, while the ticket waits
    matchmaker  starting: no matches are made until it runs, and that time does not count as waiting
    """

    ticket: int
    ladder: str
    state: TicketState
    change: int
    players: list[str]
    queues: list[str]
    queued_at: Moment
    waited: float | None = Field(description="Seconds; null: it no longer waits.")
    ended: str | None
    offer: OfferOut | None
    match: MatchedOut | None
    waiting: dict[str, WaitingOut]
    matchmaker: Literal["running", "starting"] = "running"
    playlist: list[LinkedTicketOut] = Field(default=[])
    follow: LinkedTicketOut | None = None


class TicketChange(ResponseModel):
    """The result of a queue request: the new state of the ticket.

    playlist  the party's tickets on other ladders, by ladder, after a join
    """

    ticket: int
    ladder: str
    state: TicketState
    change: int
    offer: int | None
    match_id: str | None
    playlist: dict[str, int] = Field(default={})


@passed_fields(options_of(QueueRules))
class QueueRulesIn(OptionsRequest):
    """Time limits of a queue, in seconds; omitted ones have their defaults."""


@checked_fields(options_of(QueueFilter), regions=Names, attributes=dict[Name, Names], vetoes=Names)
class FilterChange(OptionsRequest):
    """A filter to keep; omitted values get their defaults."""

    model_config = examples({"within": 5, "loose": False, "regions": ["eu"]})


@response_fields(options_of(QueueFilter), regions=list[str], attributes=dict[str, list[str]], vetoes=list[str])
class FilterOut(OptionsResponse):
    """The filter of a player on a ladder, used where a join names no value."""

    model_config = examples({"player": "ann", "ladder": "arena", "kept": True, "within": 5, "loose": False})

    player: str
    ladder: str
    kept: bool = Field(description="False: the player keeps none, and these are the defaults.")


class SetQueue(RequestModel):
    """The policy by which a queue makes matches, and its rules."""

    model_config = examples({"policy": {"preset": "balanced", "team_size": 6}, "rules": {"accept_within": 20}})

    policy: PolicyOptions = Field(default=PolicyOptions(), strict=False)
    rules: QueueRulesIn = Field(default_factory=QueueRulesIn)


class PolicyFitOut(ResponseModel):
    """The last fit of a queue's policy to the players who join it."""

    fitted_at: Moment
    adopted: bool = Field(description="Whether the queue got the fitted policy.")
    explanation: list[str] = Field(description="The result in sentences.")


class QueueOut(ResponseModel):
    """A queue and the number of players who wait in it."""

    ladder: str
    queue: str
    change: int
    policy: QueuePolicy
    rules: dict[str, float | None]
    matchmaker: Literal["running", "starting"] = Field(
        default="running", description="Starting: no matches are made until it runs."
    )
    tickets: int
    players: int
    by_percentile: list[int] = Field(
        description="Waiting players in bands of ten percentiles; empty: the ladder does not show percentiles."
    )
    by_region: dict[str, int] = Field(description="Waiting players who can play in a region, by region.")
    fit: PolicyFitOut | None = Field(
        default=None, description="Null: the rule `auto_within` is not set, or there was no fit yet."
    )


class QueuesPage(ResponseModel):
    """The queues of a ladder."""

    items: list[QueueOut]


class PenaltyOut(ResponseModel):
    """The penalty of a player who declined, did not answer, or quit."""

    player: str
    ladder: str
    strikes: float = Field(description="Number of strikes; it decreases with time.")
    until: Moment | None = Field(description="Time until which the player may not queue; null: may queue now.")


class TicketOf(ResponseModel):
    """The ticket or match of a player; both null: neither."""

    player: str
    ladder: str
    ticket: int | None
    match_id: str | None
