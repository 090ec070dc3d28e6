"""Experiments of queues as text: what runs, and the comparison of the two policies."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from evenmatch.cli.shared.database_options import counted
from evenmatch.cli.shared.output import note, print_table, printable

if TYPE_CHECKING:
    from evenmatch.calibration import Measure
    from evenmatch.service.queries.experiment_audit import ComparedFigure, ExperimentAudit, ExperimentFigure, Needed
    from evenmatch.service.queue_experiment import QueueExperiment

COMPARED = ("", "A", "B", "B − A", "more matches needed", "to know", "verdict")


def described(experiment: QueueExperiment) -> str:
    """An experiment in a sentence."""
    from evenmatch.times import iso_time

    design = experiment.design
    ended = "" if experiment.stopped_at is None else f" until {iso_time(experiment.stopped_at)}"
    return (
        f"experiment {experiment.number}: since {iso_time(experiment.started_at)}{ended}, a second policy decides in "
        f"{design.share:.0%} of the slices of {design.slice_seconds:g} s, seed {design.seed}, washout "
        f"{design.washout:g} s"
    )


def print_comparison(audited: ExperimentAudit) -> None:
    """Print the comparison of the two policies."""
    print(printable(described(audited.experiment)))
    counts = [
        f"{arm}: {counted(slices, 'slice')}, {counted(formed, 'match', 'matches')} formed, {after} of them counted"
        for arm, slices, formed, after in zip("AB", audited.slices, audited.formed, audited.counted, strict=True)
    ]
    print("; ".join(counts))
    print_table("A: the queue's own policy, B: the second one", COMPARED, [_row(row) for row in audited.figures])
    print(printable(audited.summary))
    note("each interval is wrong once in twenty times: the more figures, and the more often you look, the more often")


def estimate(measure: Measure, scale: float, decimals: int) -> str:
    """A value with its interval, such as 0.97 (0.91 to 1.04)."""
    value, low, high = (scale * number for number in (measure.value, measure.low, measure.high))
    if isnan(value):
        return "–"
    interval = "" if isnan(low) else f" ({low:.{decimals}f} to {high:.{decimals}f})"
    return f"{value:.{decimals}f}{interval}"


def _row(compared: ComparedFigure) -> list[str]:
    figure = compared.figure
    unit = f", {figure.unit}" if figure.unit else ""
    needed = compared.seen if compared.seen.matches == 0 else compared.worth
    values = (compared.first, compared.second, compared.difference)
    return [
        f"{figure.label}{unit}",
        *(estimate(value, figure.scale, figure.decimals) for value in values),
        _matches(needed),
        _size(figure, needed),
        compared.verdict,
    ]


def _matches(needed: Needed) -> str:
    if needed.matches is None or needed.days is None:
        return "–"
    return "none" if needed.matches == 0 else f"{needed.matches:,} ({needed.days:,.1f} days)"


def _size(figure: ExperimentFigure, needed: Needed) -> str:
    return "–" if isnan(needed.size) else f"{figure.scale * needed.size:.{figure.decimals}f}"
