"""The audit of a queue: what it predicted of its matches, and what was reported."""

from __future__ import annotations

from pydantic import Field

from evenmatch.http.models.base import Moment, ResponseModel
from evenmatch.http.models.experiments import EstimateOut, ExperimentAuditOut


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
