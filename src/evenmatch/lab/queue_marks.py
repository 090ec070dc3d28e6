"""Where runs stand in a picture of wait against evenness, whatever draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenmatch.lab.queue_run import Run

TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
SMALLEST = 0.1  # seconds or percentiles: nothing has a place at zero on a scale that multiplies
NEAR = 1.7  # times: marks whose names would meet


class Mark(NamedTuple):
    """A run that made matches, by its place among the runs.

    wait, late    seconds that half and 95 of 100 of the players wait at most
    spread, wide  percentiles that half and 95 of 100 of the matches span at most
    broken        players for whom a rule was broken
    side          left or right: where its name meets no other
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
    """The mark of each run that made a match."""
    figures = {at: run.summary() for at, run in enumerate(runs) if run.matches}
    middles = {at: (_place(found, "wait_p50"), _place(found, "spread_p50")) for at, found in figures.items()}
    return [
        Mark(
            at=at,
            name=runs[at].name,
            wait=middles[at][0],
            late=_place(found, "wait_p95"),
            spread=middles[at][1],
            wide=_place(found, "spread_p95"),
            broken=runs[at].broken.players,
            side=_side(at, middles),
        )
        for at, found in figures.items()
    ]


def _side(at: int, middles: Mapping[int, tuple[float, float]]) -> str:
    """To the left where another mark is near on the right."""
    wait, spread = middles[at]
    for one, (other, height) in middles.items():
        near = max(other / wait, wait / other, height / spread, spread / height) < NEAR
        if near and (other, one) > (wait, at):
            return "left"
    return "right"


def _place(found: Mapping[str, object], name: str) -> float:
    value = found[name]
    assert isinstance(value, float)
    return max(value, SMALLEST)
