"""A small simulated queue (about a second) that shows the effect of a policy's steps on waits and evenness."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from evenmatch.lab.queue.run_result import Run
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking.propose import propose
from evenmatch.policy import Policy, presets

YOURS = "yours"
LEAST, MOST = 6.0, 12.0  # bounds of the simulated minutes
PLAYERS = 3000  # enough arrivals for a stable result
TICK = 3.0  # seconds between decisions; a run's CPU time is mostly proportional to their number


class TrialCrowd(NamedTuple):
    """Players of a trial.

    arrivals      players per second
    share_strict  share of players whose filter never widens
    patience      mean wait in seconds after which players give up; None: never
    """

    arrivals: float = 5.0
    team_size: int = 6
    share_strict: float = 0.25
    patience: float | None = None

    @property
    def minutes(self) -> float:
        """Simulated minutes: shorter for more arrivals per second."""
        return min(max(PLAYERS / self.arrivals / 60.0, LEAST), MOST)

    @property
    def scenario(self) -> Scenario:
        """Scenario to simulate."""
        return Scenario(
            arrivals=self.arrivals,
            minutes=self.minutes,
            tick=TICK,
            share_strict=self.share_strict,
            patience=self.patience,
        )


class Steps(NamedTuple):
    """Widening of loose filters: times in seconds and widths in percentiles."""

    times: tuple[float, ...]
    widths: tuple[float, ...]

    @property
    def in_order(self) -> Steps:
        """Sorted steps: the first at 0, each at least one second after and no narrower than the one before."""
        times = accumulate((0.0, *self.times[1:]), lambda before, time: max(time, before + 1.0))
        return Steps(tuple(times), tuple(accumulate(self.widths, max)))


def steps_of(policy: Policy) -> Steps:
    """Return the steps of a policy."""
    times, widths = zip(*policy.steps, strict=True)
    return Steps(times, widths)


def policy_of(crowd: TrialCrowd, steps: Steps) -> Policy:
    """The balanced policy with these steps; tickets that reached the last step are matched first."""
    times, widths = steps.in_order
    pairs = tuple(zip(times, widths, strict=True))
    return replace(presets()["balanced"], team_size=crowd.team_size, steps=pairs, overdue_after=times[-1])


def try_steps(crowd: TrialCrowd, steps: Steps) -> Run:
    """Simulate these steps. Raises BadParameterError for a value out of range."""
    return simulate(crowd.scenario, propose, policy_of(crowd, steps), name=YOURS)


def try_preset(crowd: TrialCrowd, name: str) -> Run:
    """Simulate a preset policy with the same arrivals."""
    return simulate(crowd.scenario, propose, replace(presets()[name], team_size=crowd.team_size), name=name)
