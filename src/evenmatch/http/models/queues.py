"""Queues, policies, tickets and offers; experiments with two policies; the audit of a queue."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from evenmatch.attributes import Attribute
from evenmatch.experiment import ExperimentDesign
from evenmatch.http.models.base import (
    Moment,
    Name,
    RequestModel,
    ResponseModel,
    ShownTime,
    Text,
    examples,
    none_for_nan,
)
from evenmatch.http.models.from_options import (
    OptionsRequest,
    OptionsResponse,
    checked_fields,
    passed_fields,
    response_fields,
)
from evenmatch.http.models.from_records import Shown, fields_of
from evenmatch.http.models.matches import PlayerStakesOut
from evenmatch.matchmaking import Waiting
from evenmatch.options import options_of
from evenmatch.policy import Policy
from evenmatch.queues.audit import QueueAudit
from evenmatch.queues.experiment_audit import ComparedFigure
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.policy_fits import LastFit
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.stored_queues import LONGEST_MESSAGE, QueueExperiment
from evenmatch.queues.ticket_status import LinkedTicket, OfferStatus, Status

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
        description="The policy that provides all options omitted here; auto: the queue's current policy, which is "
        "then fitted to the players who join (rule `auto_within`).",
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


@fields_of(Waiting, "ticket", "waited", "hindrances", "others")
class WaitingOut(ResponseModel):
    """What a ticket waits for in one queue."""

    window: Annotated[tuple[float, float] | None, BeforeValidator(none_for_nan)] = Field(
        description="Range of percentiles that all other players must be in; null: not shown."
    )
    sentences: list[str] = Field(description="The same information in sentences.")


@fields_of(OfferStatus, "made_at", "ping")
class OfferOut(ResponseModel):
    """An offered match, as one of its tickets sees it."""

    stakes: dict[str, PlayerStakesOut] = Field(
        description="Ratings of this ticket's players after a win, a draw, a loss and quitting halfway, in a match "
        "of 600 seconds that ends 2 : 1; empty: not known, or not shown."
    )


@fields_of(Status)
class TicketOut(ResponseModel):
    """A ticket and its state."""

    ladder: str
    offer: OfferOut | None
    waiting: dict[str, WaitingOut] = Field(description="The search state by queue, while the ticket waits.")
    follow: Shown[LinkedTicket] | None = Field(
        description="The ticket of the playlist to follow instead, because it has an offer or a match, or is still "
        "waiting after this one has ended."
    )


@passed_fields(options_of(QueueRules))
class QueueRulesIn(OptionsRequest):
    """Time limits of a queue, in seconds; omitted ones have their defaults."""


@checked_fields(options_of(QueueFilter), regions=Names, attributes=dict[Name, Names], vetoes=Names)
class FilterChange(OptionsRequest):
    """A filter to store; omitted values get their defaults."""

    model_config = examples({"within": 5, "loose": False, "regions": ["eu"]})


@response_fields(options_of(QueueFilter), regions=list[str], attributes=dict[str, list[str]], vetoes=list[str])
class FilterOut(OptionsResponse):
    """The stored filter of a player on a ladder. A join uses its values where it has none of its own."""

    model_config = examples({"player": "ann", "ladder": "arena", "kept": True, "within": 5, "loose": False})

    player: str
    ladder: str
    kept: bool = Field(description="False: the player has no stored filter, and these are the defaults.")


class SetQueue(RequestModel):
    """The policy by which a queue makes matches, and its rules."""

    model_config = examples({"policy": {"preset": "balanced", "team_size": 6}, "rules": {"accept_within": 20}})

    policy: PolicyOptions = Field(default=PolicyOptions(), strict=False)
    rules: QueueRulesIn = Field(default_factory=QueueRulesIn)


class PauseQueue(RequestModel):
    """The pause of a queue."""

    model_config = examples({"message": "Maintenance until 18:00 UTC"})

    message: Annotated[Text, Field(max_length=LONGEST_MESSAGE)] = Field(
        default="", description="Shown to players who wait or try to join."
    )


class QueueOut(ResponseModel):
    """A queue and the number of players who wait in it."""

    ladder: str
    queue: str
    change: int
    policy: QueuePolicy
    rules: dict[str, float | str | None]
    paused: str | None = Field(
        description="The operator's message, which may be empty, while the queue is paused; null: it is not paused."
    )
    matchmaker: Literal["running", "starting"] = Field(
        default="running", description="Starting: no matches are made until it runs."
    )
    tickets: int
    players: int
    by_percentile: list[int] = Field(
        description="Waiting players in bands of ten percentiles; empty: the ladder does not show percentiles."
    )
    by_region: dict[str, int] = Field(description="Waiting players who can play in a region, by region.")
    fit: Shown[LastFit] | None = Field(
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
    until: ShownTime | None = Field(description="Time until which the player may not queue; null: may queue now.")


class TicketOf(ResponseModel):
    """The ticket or match of a player; both null: neither."""

    player: str
    ladder: str
    ticket: int | None
    match_id: str | None


@passed_fields(options_of(ExperimentDesign))
class StartExperiment(OptionsRequest):
    """The policy to test in a queue, and how it shares the queue with the queue's own policy."""

    model_config = examples({"policy": {"preset": "quick"}, "share": 0.5, "seed": 7})

    policy: PolicyOptions = Field(
        default=PolicyOptions(),
        strict=False,
        description="The policy to test. Team sizes and roles come from the queue.",
    )


@response_fields(options_of(ExperimentDesign))
class DesignOut(OptionsResponse):
    """How two policies share a queue."""


@fields_of(QueueExperiment, "number")
class ExperimentOut(ResponseModel):
    """An experiment of a queue: in slices of time drawn with the seed, the second policy decides alone."""

    experiment: int = Field(description="Number of the change that started it.")
    ladder: str
    design: DesignOut
    first: QueuePolicy = Field(description="The queue's own policy, arm a.")
    second: QueuePolicy = Field(description="The tested policy, arm b.")


@fields_of(ComparedFigure)
class ComparedFigureOut(ResponseModel):
    """A figure of the two policies, and its difference: the second minus the first."""

    figure: Literal["wait_median", "wait_p95", "spread", "slope", "rematches", "per_hour"] = Field(
        description="Waits in seconds, of each party; mean spread in percentiles; calibration slope; share of players "
        "who meet a player of another party again within ten minutes; matches per hour."
    )


class ExperimentAuditOut(ResponseModel):
    """The comparison of the two policies that share a queue, over the matches formed in a period."""

    experiment: ExperimentOut
    slices: dict[str, int] = Field(description="Slices of time, by arm.")
    formed: dict[str, int] = Field(description="Matches formed, by arm.")
    counted: dict[str, int] = Field(description="Matches after the washout, by arm; only these are compared.")
    figures: list[ComparedFigureOut]
    summary: str = Field(description="Which policy does better, by figure.")


@fields_of(QueueAudit)
class QueueAuditOut(ResponseModel):
    """The predictions of a queue in a period, compared with the results."""

    since: Moment
    until: Moment
    experiments: list[ExperimentAuditOut] = Field(description="Experiments that ran in the period, latest first.")
