"""Answers that show experiments of queues."""

from __future__ import annotations

import math

from evenmatch.calibration import Measure
from evenmatch.experiment import ARMS
from evenmatch.http.models.base import moment
from evenmatch.http.models.experiments import (
    ComparedFigureOut,
    DesignOut,
    EstimateOut,
    ExperimentAuditOut,
    ExperimentOut,
    NeededOut,
)
from evenmatch.http.models.policies import QueuePolicy
from evenmatch.service.queries.experiment_audit import ComparedFigure, ExperimentAudit, Needed
from evenmatch.service.queue_experiment import QueueExperiment


def experiment_out(ladder: str, experiment: QueueExperiment) -> ExperimentOut:
    """An experiment of a ladder's queue."""
    return ExperimentOut(
        experiment=experiment.number,
        ladder=ladder,
        queue=experiment.queue,
        started_at=moment(experiment.started_at),
        stopped_at=None if experiment.stopped_at is None else moment(experiment.stopped_at),
        design=DesignOut.model_validate(experiment.design.to_data()),
        first=QueuePolicy.model_validate(experiment.first.to_data()),
        second=QueuePolicy.model_validate(experiment.second.to_data()),
    )


def experiment_audit_out(ladder: str, audited: ExperimentAudit) -> ExperimentAuditOut:
    """The comparison of the two policies of an experiment."""
    return ExperimentAuditOut(
        experiment=experiment_out(ladder, audited.experiment),
        slices=dict(zip(ARMS, audited.slices, strict=True)),
        formed=dict(zip(ARMS, audited.formed, strict=True)),
        counted=dict(zip(ARMS, audited.counted, strict=True)),
        figures=[_figure(compared) for compared in audited.figures],
        summary=audited.summary,
    )


def estimate_out(measure: Measure) -> EstimateOut:
    """A figure with its interval; NaN as null."""
    return EstimateOut(value=known(measure.value), low=known(measure.low), high=known(measure.high))


def known(value: float) -> float | None:
    """The value; None for NaN."""
    return None if math.isnan(value) else value


def _figure(compared: ComparedFigure) -> ComparedFigureOut:
    return ComparedFigureOut(
        figure=compared.figure.name,  # type: ignore[arg-type] # one of FIGURES
        first=estimate_out(compared.first),
        second=estimate_out(compared.second),
        difference=estimate_out(compared.difference),
        better=compared.better,  # type: ignore[arg-type] # an arm
        verdict=compared.verdict,
        seen=_needed(compared.seen),
        worth=_needed(compared.worth),
    )


def _needed(needed: Needed) -> NeededOut:
    return NeededOut(size=known(needed.size), matches=needed.matches, days=needed.days)
