"""Positions of runs in a chart of wait against evenness, shared by the matplotlib and plotly versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.run_result import Run

TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
SMALLEST = 0.1  # seconds or percentiles: lower bound, since a logarithmic scale has no zero
NEAR = 1.7  # marks closer than this factor have overlapping labels


class Mark(NamedTuple):
    """A run that made matches; `at` is its index among the runs.

    wait, late    median and 95th percentile of the players' waits, seconds
    spread, wide  median and 95th percentile of the matches' spreads, percentiles
    broken        players with a broken rule
    side          left or right: side of the label without overlap
    """

    at: int
    name: str
    wait: float
    late: float
    spread: float
    wide: float
    broken: int
    side: str


def marks(runs: Sequence[Run]) -> list[Mark]:
    """Marks of all runs that made a match."""
    figures = {index: summary_of(run) for index, run in enumerate(runs) if run.matches}
    medians = {
        index: (_place(summary, "wait_p50"), _place(summary, "spread_p50")) for index, summary in figures.items()
    }
    return [
        Mark(
            at=index,
            name=runs[index].name,
            wait=medians[index][0],
            late=_place(summary, "wait_p95"),
            spread=medians[index][1],
            wide=_place(summary, "spread_p95"),
            broken=runs[index].broken.players,
            side=_side(index, medians),
        )
        for index, summary in figures.items()
    ]


def _side(index: int, middles: Mapping[int, tuple[float, float]]) -> str:
    """Side of the label: left if another mark is close on the right."""
    wait, spread = middles[index]
    for other_index, (other_wait, other_spread) in middles.items():
        near = max(other_wait / wait, wait / other_wait, other_spread / spread, spread / other_spread) < NEAR
        if near and (other_wait, other_index) > (wait, index):
            return "left"
    return "right"


def _place(found: Mapping[str, object], name: str) -> float:
    value = found[name]
    assert isinstance(value, float)
    return max(value, SMALLEST)
