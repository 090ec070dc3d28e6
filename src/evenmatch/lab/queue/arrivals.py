"""Arrival times of a scenario's parties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.matchmaking.tickets import Whole

ARRIVALS = 1  # index of the random stream for arrivals
GRID = 1.0  # seconds; grid of the cumulative arrival rate has four points per GRID


def arrival_times(scenario: Scenario) -> Whole:
    """Arrival time of each party in microseconds from the start, ascending; all before the last tick.

    An inhomogeneous Poisson process: the number of parties is Poisson distributed, and their times are obtained by
    inverting the cumulative expected number of arrivals.
    """
    if scenario.kind == "recorded":
        times = np.array(scenario.times)
        return whole(times[times < scenario.seconds])
    rng = np.random.default_rng([scenario.seed, ARRIVALS])
    expected = EXPECTED[scenario.kind]
    grid = np.linspace(0.0, scenario.seconds, max(2, int(np.ceil(scenario.seconds / GRID)) * 4 + 1))
    cumulative = expected(scenario, grid) * scenario.arrivals / scenario.party_size
    drawn = np.sort(rng.random(rng.poisson(cumulative[-1]))) * cumulative[-1]
    return whole(np.interp(drawn, cumulative, grid))


def whole(seconds: Floats) -> Whole:
    """Convert seconds to microseconds, rounded down."""
    microseconds: Whole = np.floor(seconds * SECOND).astype(np.int64)
    return microseconds


def _steady(_scenario: Scenario, time: Floats) -> Floats:
    return time


def _daily(scenario: Scenario, time: Floats) -> Floats:
    """Integral of 1 + swing sin(2πt/period)."""
    frequency = 2.0 * np.pi / scenario.period
    cumulative: Floats = time + scenario.swing / frequency * (1.0 - np.cos(frequency * time))
    return cumulative


def _bursts(scenario: Scenario, time: Floats) -> Floats:
    """Uniform arrivals plus exponentially decaying bursts, the first after half an interval."""
    since = time - scenario.burst_every / 2.0
    whole = np.maximum(np.floor(since / scenario.burst_every) + 1.0, 0.0)
    fade = np.exp(-scenario.burst_every / scenario.burst_seconds)
    into = np.where(since >= 0, since % scenario.burst_every, 0.0)
    # Arrivals still to come from all bursts so far: a geometric series.
    remaining = np.exp(-into / scenario.burst_seconds) * (1.0 - fade**whole) / (1.0 - fade)
    cumulative: Floats = (1.0 - scenario.burst_share) * time + scenario.burst_share * scenario.burst_every * (
        whole - remaining
    )
    return cumulative


EXPECTED: dict[str, Callable[[Scenario, Floats], Floats]] = {"poisson": _steady, "daily": _daily, "bursts": _bursts}
