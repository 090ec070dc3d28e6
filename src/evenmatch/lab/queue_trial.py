"""A small queue, simulated in about a second, to see at once what a policy's steps do to waits and evenness."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from evenmatch.lab.queue_run import Run
from evenmatch.lab.queue_scenario import Scenario
from evenmatch.lab.queue_simulation import simulate
from evenmatch.matchmaking.policy import Policy, presets
from evenmatch.matchmaking.propose import propose

YOURS = "yours"
LEAST, MOST = 6.0, 12.0  # minutes that are watched
PLAYERS = 3000  # of so many who came enough is seen
TICK = 3.0  # seconds between decisions: what a run costs is mostly these


class Crowd(NamedTuple):
    """Who comes: players a second, the size of teams, the share who are strict, mean patience in seconds or None."""

    arrivals: float = 5.0
    team_size: int = 6
    share_strict: float = 0.25
    patience: float | None = None

    @property
    def minutes(self) -> float:
        """How long the queue is watched: the shorter the more come."""
        return min(max(PLAYERS / self.arrivals / 60.0, LEAST), MOST)

    @property
    def scenario(self) -> Scenario:
        """What is simulated."""
        return Scenario(
            arrivals=self.arrivals,
            minutes=self.minutes,
            tick=TICK,
            share_strict=self.share_strict,
            patience=self.patience,
        )


class Steps(NamedTuple):
    """How far filters widen, in percentiles, and after how many seconds each."""

    times: tuple[float, ...]
    widths: tuple[float, ...]

    @property
    def in_order(self) -> Steps:
        """The same with each step a second later than the one before at the least, and no narrower; the first at 0."""
        times = accumulate((0.0, *self.times[1:]), lambda before, time: max(time, before + 1.0))
        return Steps(tuple(times), tuple(accumulate(self.widths, max)))


def steps_of(policy: Policy) -> Steps:
    """The steps of a policy."""
    times, widths = zip(*policy.steps, strict=True)
    return Steps(times, widths)


def policy_of(crowd: Crowd, steps: Steps) -> Policy:
    """The balanced policy with these steps; who has reached the last one comes first."""
    times, widths = steps.in_order
    pairs = tuple(zip(times, widths, strict=True))
    return replace(presets()["balanced"], team_size=crowd.team_size, steps=pairs, overdue_after=times[-1])


def try_steps(crowd: Crowd, steps: Steps) -> Run:
    """A run of these steps. Raises BadParameterError where a value is outside what it accepts."""
    return simulate(crowd.scenario, propose, policy_of(crowd, steps), name=YOURS)


def try_preset(crowd: Crowd, name: str) -> Run:
    """A run of a policy that ships, with the same arrivals."""
    return simulate(crowd.scenario, propose, replace(presets()[name], team_size=crowd.team_size), name=name)
