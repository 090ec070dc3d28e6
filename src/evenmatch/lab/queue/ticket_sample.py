"""Arrivals drawn at random from the tickets of a real queue, as the source of a simulated one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.lab.queue.ticket_columns import pick
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import Tickets, Whole

WARMING = 600  # most tickets for the warm-up call of a matchmaker


class TicketSample:
    """An ArrivalSource: tickets of a queue, in random order and at random times of a steady rate.

    Each ticket comes once before any comes again. One whose players still wait is passed over.

    tickets   those to draw from, at least one
    arrivals  players per second
    seconds   simulated time;  tick  seconds between two decisions
    """

    def __init__(self, tickets: Tickets, arrivals: float, seconds: float, tick: float, seed: int) -> None:
        rng = np.random.default_rng([seed, len(tickets)])
        mean_size = len(tickets.player) / len(tickets)
        times = np.sort(rng.random(rng.poisson(arrivals / mean_size * seconds))) * seconds
        rounds = -(-len(times) // len(tickets))
        rows = np.concatenate([np.empty(0, np.int64), *(rng.permutation(len(tickets)) for _ in range(rounds))])
        queued = np.floor(times * SECOND).astype(np.int64)
        self._arriving = replace(pick(tickets, rows[: len(times)]), id=np.arange(len(times)), queued=queued)
        count = int(np.floor(seconds / tick + 1e-9))
        self.ticks: Whole = np.rint(np.arange(1, count + 1) * tick * SECOND).astype(np.int64)
        self.passed_over = 0
        self._arrived = np.searchsorted(queued, self.ticks, side="right")
        self._waiting: set[int] = set()

    def sample(self) -> Tickets:
        """Typical tickets for the warm-up call of a matchmaker."""
        return pick(self._arriving, np.arange(min(len(self._arriving), WARMING)))

    def joining(self, index: int) -> Tickets:
        """Tickets that join at this tick."""
        kept = []
        for row in range(self._arrived[index - 1] if index else 0, self._arrived[index]):
            players = self._players(row)
            if self._waiting.isdisjoint(players):
                self._waiting.update(players)
                kept.append(row)
            else:
                self.passed_over += len(players)
        return pick(self._arriving, np.array(kept, np.int64))

    def leaving(self, _index: int) -> list[int]:
        """Tickets that are cancelled: none, players wait until they have a match."""
        return []

    def decided(self, _index: int, proposals: Proposals, gave_up: list[int]) -> None:
        """Receive the tickets that left the queue at this tick."""
        for ticket in [*proposals.ticket.tolist(), *gave_up]:
            self._waiting.difference_update(self._players(ticket))

    def skill(self, player: Whole) -> Floats:
        """True skill of these players, which is not known."""
        return np.full(len(player), np.nan)

    def _players(self, row: int) -> list[int]:
        start = self._arriving.start
        players: list[int] = self._arriving.player[start[row] : start[row + 1]].tolist()
        return players
