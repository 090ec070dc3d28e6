"""When the parties of a scenario arrive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.queue_matches import SECOND
from evenmatch.lab.queue_scenario import Scenario
from evenmatch.matchmaking.tickets import Whole

ARRIVALS = 1  # the stream of randomness that decides it
GRID = 1.0  # seconds, on which rates that change are added up; finer for quick changes


def arrival_times(scenario: Scenario) -> Whole:
    """When each party arrives, microseconds from the start, ascending; all before the last tick.

    A Poisson process whose rate may change: so many parties as Poisson's law gives for the whole, each where an even
    draw of the expected number so far falls.
    """
    if scenario.kind == "recorded":
        times = np.array(scenario.times)
        return whole(times[times < scenario.seconds])
    rng = np.random.default_rng([scenario.seed, ARRIVALS])
    expected = EXPECTED[scenario.kind]
    grid = np.linspace(0.0, scenario.seconds, max(2, int(np.ceil(scenario.seconds / GRID)) * 4 + 1))
    so_far = expected(scenario, grid) * scenario.arrivals / scenario.party_size
    drawn = np.sort(rng.random(rng.poisson(so_far[-1]))) * so_far[-1]
    return whole(np.interp(drawn, so_far, grid))


def whole(seconds: Floats) -> Whole:
    """The same in microseconds, rounded down."""
    microseconds: Whole = np.floor(seconds * SECOND).astype(np.int64)
    return microseconds


def _steady(_scenario: Scenario, time: Floats) -> Floats:
    return time


def _daily(scenario: Scenario, time: Floats) -> Floats:
    """Rises from the average at first: the integral of 1 + swing sin(2πt/period)."""
    turn = 2.0 * np.pi / scenario.period
    so_far: Floats = time + scenario.swing / turn * (1.0 - np.cos(turn * time))
    return so_far


def _bursts(scenario: Scenario, time: Floats) -> Floats:
    """Some come evenly, the others in bursts that fade exponentially; the first burst is half an interval away."""
    since = time - scenario.burst_every / 2.0
    whole = np.maximum(np.floor(since / scenario.burst_every) + 1.0, 0.0)
    fade = np.exp(-scenario.burst_every / scenario.burst_seconds)
    into = np.where(since >= 0, since % scenario.burst_every, 0.0)
    # Tails of all bursts so far: a geometric series.
    left = np.exp(-into / scenario.burst_seconds) * (1.0 - fade**whole) / (1.0 - fade)
    so_far: Floats = (1.0 - scenario.burst_share) * time + scenario.burst_share * scenario.burst_every * (whole - left)
    return so_far


EXPECTED: dict[str, Callable[[Scenario, Floats], Floats]] = {"poisson": _steady, "daily": _daily, "bursts": _bursts}
