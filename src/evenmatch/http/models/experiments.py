"""Experiments with two policies in one queue: their design, and the comparison of the policies."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenmatch.experiment import ExperimentDesign
from evenmatch.http.models.base import Moment, ResponseModel, examples
from evenmatch.http.models.options import OptionsRequest, OptionsResponse, passed_fields, response_fields
from evenmatch.http.models.policies import PolicyOptions, QueuePolicy
from evenmatch.options import options_of


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
