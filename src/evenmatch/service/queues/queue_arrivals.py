"""The players who recently joined a queue: their tickets, and how fast they come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY, HOUR, SECOND
from evenmatch.errors import InputError
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import tickets
from evenmatch.ledger.tables.tickets import TicketUpdate
from evenmatch.matchmaking import Ticket, Tickets
from evenmatch.service.queues.parties import ticket_of
from evenmatch.service.stored_queues import QueueSetup

KEPT = DAY  # tickets are stored no longer
LEAST_JOINS = 200  # players; fewer say too little about a queue
MOST_READ = 20_000  # tickets, drawn evenly from more
QUIETER = 0.25  # share of the players who join in hours that are quieter than the one that counts


class QueueArrivals(NamedTuple):
    """The players who joined a queue in the last day.

    tickets   of the parties, a sample if they are very many
    joins     players who joined
    arrivals  players per second in the hour that counts: three of four players join in hours at least as busy
    """

    tickets: Tickets
    joins: int
    arrivals: float

    @property
    def is_sufficient(self) -> bool:
        """Whether enough players joined for a policy to be fitted to them."""
        return self.joins >= LEAST_JOINS and self.arrivals > 0


def read(store: Store, ladder: int, setup: QueueSetup, now: int) -> QueueArrivals:
    """Read the tickets of a queue that were queued within a day before `now`."""
    rows, every = tickets.read_since(store, ladder, now - KEPT, MOST_READ)
    fitting = [ticket for row in rows if (ticket := _ticket(row, setup)) is not None]
    joined = Tickets.of(fitting)
    counts = np.diff(joined.start) * every
    return QueueArrivals(joined, int(counts.sum()), _typical_rate(joined.queued, counts, now))


def _ticket(row: TicketUpdate, setup: QueueSetup) -> Ticket | None:
    """The ticket as the matchmaker sees it; None: it is for other queues, or is refused by the present policy."""
    party = row.party
    if party is None or setup.name not in party.queues or len(party.members) > setup.policy.team_size:
        return None
    try:
        return ticket_of(party, row.ticket, row.queued_at, setup.policy.roles, lambda _player: ())
    except InputError:
        return None


def _typical_rate(queued: np.ndarray, players: np.ndarray, now: int) -> float:
    """Players per second in the hour that counts, of the hours since the first of them joined."""
    if not len(queued):
        return 0.0
    first = int(queued.min())
    hours = max(1, -(-(now - first) // HOUR))
    length = max(now - first, SECOND) / hours
    hour = np.minimum(((queued - first) / length).astype(np.int64), hours - 1)
    joined = np.sort(np.bincount(hour, weights=players, minlength=hours))
    counting = int(np.searchsorted(np.cumsum(joined), QUIETER * joined.sum(), side="right"))
    return float(joined[min(counting, hours - 1)]) * SECOND / length
