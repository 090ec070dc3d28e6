"""A run of a queue: tickets, their outcomes and matches."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.matches import MatchQuality, RunMatches, weigh
from evenmatch.lab.queue.rule_checks import BrokenRules, broken
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.matchmaking.tickets import Tickets, Whole
from evenmatch.policy import Policy

WAITING, MATCHED, CANCELLED, EXPIRED, OVERTAKEN = range(5)
OUTCOMES = 3  # index of the random stream that decides who wins


@dataclass(frozen=True, eq=False)
class Run:
    """Result of one matchmaker for one sequence of tickets.

    name         name of the matchmaker or policy
    tickets      all T tickets in order of joining, with S members
    skill        float64 (S,)  true skill of the members; NaN if unknown
    fate         int8 (T,)     WAITING at the end, MATCHED, CANCELLED, EXPIRED (removed after the policy's longest
                               wait) or OVERTAKEN (replaced because a replayed player joined again)
    left         int64 (T,)    when it left, microseconds; for waiting tickets the time of the last tick
    ticks        int64 (N,)    times of the decisions
    waiting      int64 (N,)    players still waiting after each decision
    cpu_seconds  CPU time of the matchmaker
    passed_over  players who arrived while they still waited or played
    seed         seed of the match results
    """

    name: str
    policy: Policy
    scenario: Scenario | None
    tickets: Tickets
    skill: Floats
    fate: NDArray[np.int8]
    left: Whole
    matches: RunMatches
    ticks: Whole
    waiting: Whole
    cpu_seconds: float
    passed_over: int = 0
    seed: int = field(default=0)

    @cached_property
    def worth(self) -> MatchQuality:
        """Quality of each match."""
        luck = np.random.default_rng([self.seed, OUTCOMES])
        return weigh(self.matches, self.tickets, self.skill, self.policy, luck)

    @cached_property
    def broken(self) -> BrokenRules:
        """Rules broken by the matches."""
        return broken(self.matches, self.tickets, self.policy)

    @cached_property
    def waits(self) -> Floats:
        """Wait of each ticket until it left, or until the end; seconds, float64 (T,)."""
        return (self.left - self.tickets.queued) / SECOND

    @cached_property
    def sizes(self) -> Whole:
        """Number of members of each ticket, int64 (T,)."""
        return np.diff(self.tickets.start)

    @property
    def matched(self) -> Flags:
        """Tickets that were matched, bool (T,)."""
        return np.asarray(self.fate == MATCHED)

    def players(self, fate: int) -> int:
        """Number of players of tickets with this fate; a player who joined twice counts twice."""
        return int(self.sizes[self.fate == fate].sum())
