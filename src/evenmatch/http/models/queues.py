"""Queues, policies, tickets and offers; experiments with two policies; the audit of a queue."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from evenmatch.attributes import Attribute
from evenmatch.experiment import ExperimentDesign
from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel, examples
from evenmatch.http.models.matches import PlayerStakesOut
from evenmatch.http.models.options import (
    OptionsRequest,
    OptionsResponse,
    checked_fields,
    passed_fields,
    response_fields,
)
from evenmatch.options import options_of
from evenmatch.policy import Policy
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.stored_queues import QueueRules

Texts = Annotated[list[str], Field(max_length=256)]
Step = Annotated[list[float], Field(min_length=2, max_length=2)]


@passed_fields(options_of(Attribute), values=Texts)
class AttributeOptions(OptionsRequest):
    """An attribute on which all players of a match agree."""


@response_fields(options_of(Attribute), values=Texts)
class QueueAttribute(OptionsResponse):
    """An attribute on which all players of a match agree."""


@passed_fields(
    options_of(Policy),
    steps=Annotated[list[Step], Field(max_length=256)],
    roles=dict[str, int],
    attributes=dict[str, AttributeOptions],
    maps=Texts,
)
class PolicyOptions(OptionsRequest):
    """Options of a policy; omitted ones are those of the preset, and an omitted team size is that of the ladder."""

    # Unknown names pass here, so that Policy can suggest the right option; the document does not allow them.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    preset: str = Field(
        default="balanced",
        description="The policy that provides all options omitted here; auto: that of the queue so far, which is then "
        "fitted to the players who join (rule `auto_within`).",
    )


@response_fields(
    options_of(Policy),
    steps=Annotated[list[Step], Field(max_length=256)],
    roles=dict[str, int],
    attributes=dict[str, QueueAttribute],
    maps=Texts,
)
class QueuePolicy(OptionsResponse):
    """All options of a queue's policy."""


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


class EstimateOut(ResponseModel):
    """A figure with its 95 % interval; null where too few matches define it."""

    value: float | None
    low: float | None
    high: float | None


@passed_fields(options_of(ExperimentDesign))
class StartExperiment(OptionsRequest):
    """The policy that is tried in a queue beside its own, and how they share it."""

    model_config = examples({"policy": {"preset": "quick"}, "share": 0.5, "seed": 7})

    policy: PolicyOptions = Field(
        default=PolicyOptions(),
        strict=False,
        description="The policy that is tried; team sizes and roles are those of the queue.",
    )


@response_fields(options_of(ExperimentDesign))
class DesignOut(OptionsResponse):
    """How two policies share a queue."""


class ExperimentOut(ResponseModel):
    """An experiment of a queue: in slices of time drawn with the seed, the second policy decides alone."""

    experiment: int = Field(description="Number of the change that started it.")
    ladder: str
    queue: str
    started_at: Moment
    stopped_at: Moment | None = Field(description="Null: it runs.")
    design: DesignOut
    first: QueuePolicy = Field(description="The queue's own policy, arm a.")
    second: QueuePolicy = Field(description="The policy that is tried, arm b.")


class NeededOut(ResponseModel):
    """The matches needed to know a difference of this size with a chance of 80 %."""

    size: float | None
    matches: int | None = Field(description="Further matches of both policies; 0: enough; null: unknown.")
    days: float | None = Field(description="Days at the rate so far; null: unknown.")


class ComparedFigureOut(ResponseModel):
    """A figure of the two policies."""

    figure: Literal["wait_median", "wait_p95", "spread", "slope", "rematches", "per_hour"] = Field(
        description="Waits in seconds, of each party; mean spread in percentiles; calibration slope; share of players "
        "who meet a player of another party again within ten minutes; matches per hour."
    )
    first: EstimateOut
    second: EstimateOut
    difference: EstimateOut = Field(description="Second minus first.")
    better: Literal["a", "b"] | None = Field(description="The policy that does better with confidence; null: neither.")
    verdict: str = Field(description="The difference in words.")
    seen: NeededOut = Field(description="For a difference of the size seen; `matches` is 0 if it is known.")
    worth: NeededOut = Field(description="For the smallest difference worth knowing, see the design.")


class ExperimentAuditOut(ResponseModel):
    """The comparison of the two policies that share a queue, over the matches formed in a period."""

    experiment: ExperimentOut
    slices: dict[str, int] = Field(description="Slices of time, by arm.")
    formed: dict[str, int] = Field(description="Matches formed, by arm.")
    counted: dict[str, int] = Field(description="Matches after the washout, which alone are compared, by arm.")
    figures: list[ComparedFigureOut]
    summary: str = Field(description="Which policy does better on what.")


class AuditGroupOut(ResponseModel):
    """The quality of the predictions of some matches."""

    label: str
    matches: int
    slope: EstimateOut = Field(description="Calibration slope: 1 is calibrated, below 1 the odds were too extreme.")
    brier: EstimateOut = Field(description="Mean squared error of the predicted scores; 0.25 for even odds.")
    stomps: EstimateOut = Field(description="Share of matches whose lead exceeded the ladder's `stomp_margin`.")
    quits: EstimateOut = Field(description="Share of matches with a quitter.")


class AuditClassesOut(ResponseModel):
    """The matches by classes of one property."""

    by: str
    groups: list[AuditGroupOut]


class ReliabilityOut(ResponseModel):
    """Favourites with similar odds: predicted and actual score, 0..1, with the 95 % interval of the actual one."""

    predicted: float
    observed: float
    low: float | None
    high: float | None
    matches: float


class WaitAccuracyOut(ResponseModel):
    """Waits of the parties of formed matches, compared with what was estimated when they joined."""

    parties: int = Field(description="Parties with an estimate: some of those that join in a second have one.")
    within_estimate: EstimateOut = Field(description="Share of them that waited less than `estimate`; ideal: 0.5.")
    within_upper: EstimateOut = Field(description="Share of them that waited less than `upper`; ideal: 0.9.")


class QueueAuditOut(ResponseModel):
    """The predictions of a queue in a period, compared with the results."""

    ladder: str
    queue: str
    since: Moment
    until: Moment
    formed: int
    unpredicted: int = Field(description="Matches that the ladder's system could not predict.")
    unplayed: int = Field(description="Matches that were not reported, or voided.")
    changed: int = Field(description="Matches played by another line-up than the one predicted.")
    overall: AuditGroupOut
    classes: list[AuditClassesOut]
    reliability: list[ReliabilityOut]
    warning: str | None = Field(description="A sentence, where the odds are with confidence not calibrated.")
    waits: WaitAccuracyOut
    experiments: list[ExperimentAuditOut] = Field(description="Those that ran in the period, the latest first.")
