"""A run of a queue: who came, what became of them, the matches, and the figures that sum it up."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue_matches import SECOND, Matches, Worth, weigh
from evenmatch.lab.queue_rules import Broken, broken
from evenmatch.lab.queue_scenario import Scenario
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.tickets import Tickets, Whole

WAITING, MATCHED, CANCELLED, EXPIRED, OVERTAKEN = range(5)
OUTCOMES = 3  # the stream of randomness that decides who wins


@dataclass(frozen=True, eq=False)
class Run:
    """What one matchmaker did with one stream of tickets.

    name         of the matchmaker or policy
    tickets      all T that joined, in this order, with S members; `skill` float64 (S,) their true one, nan if not told
    fate         int8 (T,)   WAITING at the end, MATCHED, CANCELLED, EXPIRED (given up by the policy) or OVERTAKEN (a
                             replayed player joined again)
    left         int64 (T,)  when, microseconds; of those who wait, the time of the last tick
    ticks        int64 (N,)  times of the decisions; `waiting` int64 (N,) players who waited on after each
    cpu_seconds  spent inside the matchmaker
    passed_over  players who arrived while they still waited or played
    seed         decides who wins
    """

    name: str
    policy: Policy
    scenario: Scenario | None
    tickets: Tickets
    skill: Floats
    fate: NDArray[np.int8]
    left: Whole
    matches: Matches
    ticks: Whole
    waiting: Whole
    cpu_seconds: float
    passed_over: int = 0
    seed: int = field(default=0)

    @cached_property
    def worth(self) -> Worth:
        """What each match was worth."""
        luck = np.random.default_rng([self.seed, OUTCOMES])
        return weigh(self.matches, self.tickets, self.skill, self.policy, luck)

    @cached_property
    def broken(self) -> Broken:
        """Whose rules the matches broke."""
        return broken(self.matches, self.tickets, self.policy)

    @cached_property
    def waits(self) -> Floats:
        """How long each ticket waited, or has waited at the end; seconds, float64 (T,)."""
        return (self.left - self.tickets.queued) / SECOND

    @cached_property
    def sizes(self) -> Whole:
        """Members of each ticket, int64 (T,)."""
        return np.diff(self.tickets.start)

    @property
    def matched(self) -> Flags:
        """The tickets that found a match, bool (T,)."""
        return np.asarray(self.fate == MATCHED)

    def players(self, fate: int) -> int:
        """Players of the tickets with this fate; who came twice counts twice."""
        return int(self.sizes[self.fate == fate].sum())

    def summary(self) -> dict[str, object]:
        """The figures as plain numbers, None where there is nothing to measure; see `queue_figures.summary`."""
        from evenmatch.lab.queue_figures import summary

        return summary(self)
