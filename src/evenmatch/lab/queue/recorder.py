"""Recorder that collects the events of a run, tick by tick, and builds the Run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.queue.matches import collect_matches
from evenmatch.lab.queue.run_result import MATCHED, WAITING, Run
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.ticket_columns import append
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import Tickets, Whole
from evenmatch.policy import Policy


class Record:
    """Tickets and matches of a run so far."""

    def __init__(self) -> None:
        self._parts: list[Tickets] = []
        self._row: dict[int, int] = {}  # row of each waiting ticket
        self._count = 0
        self._fates: list[tuple[Whole, int, int]] = []  # rows, fate, time
        self._times: list[int] = []
        self._rows: list[Whole] = []
        self._proposals: list[Proposals] = []
        self._waiting: list[int] = []

    def join(self, tickets: Tickets) -> None:
        """Record tickets that joined."""
        self._parts.append(tickets)
        self._row.update(zip(tickets.id.tolist(), range(self._count, self._count + len(tickets)), strict=True))
        self._count += len(tickets)

    def leave(self, tickets: Sequence[int], fate: int, now: int) -> Whole:
        """Record tickets that left the queue with this fate; return their rows."""
        rows = np.array([self._row.pop(ticket) for ticket in tickets], np.int64)
        self._fates.append((rows, fate, now))
        return rows

    def decide(self, now: int, proposals: Proposals, waiting: int) -> None:
        """Record the matches of a tick and the number of players still waiting."""
        self._waiting.append(waiting)
        if len(proposals):
            self._times.append(now)
            self._rows.append(self.leave(proposals.ticket.tolist(), MATCHED, now))
            self._proposals.append(proposals)

    def tickets(self) -> Tickets:
        """All tickets in order of joining."""
        return append(self._parts)

    def run(
        self,
        name: str,
        policy: Policy,
        scenario: Scenario | None,
        tickets: Tickets,
        skill: Floats,
        ticks: Whole,
        *,
        cpu_seconds: float,
        passed_over: int,
        seed: int,
    ) -> Run:
        """Build the Run."""
        fate = np.full(self._count, WAITING, np.int8)
        left = np.full(self._count, ticks[-1] if len(ticks) else 0, np.int64)
        for rows, kind, now in self._fates:
            fate[rows] = kind
            left[rows] = now
        matches = collect_matches(self._times, self._rows, self._proposals)
        waiting = np.array(self._waiting, np.int64)
        return Run(
            *(name, policy, scenario, tickets, skill, fate, left, matches, ticks, waiting),
            cpu_seconds=cpu_seconds,
            passed_over=passed_over,
            seed=seed,
        )
