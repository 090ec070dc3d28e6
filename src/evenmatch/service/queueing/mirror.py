"""The queues of one ladder in memory, following the database from change to change."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from evenmatch.errors import InputError
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.matchmaking import Odds, Policy, Proposal, Queue, Waiting, propose, why
from evenmatch.service.playing import live
from evenmatch.service.playing.live import Live
from evenmatch.service.queueing import offers, queue_rules, tickets
from evenmatch.service.queueing.meetings import Meetings
from evenmatch.service.queueing.offers import OfferRow
from evenmatch.service.queueing.parties import Party
from evenmatch.service.queueing.queue_rules import QueueSetup
from evenmatch.service.queueing.tickets import Seen

BAND = 10  # percentiles
FRESH = 0.5  # seconds for which what was read is taken for the present, by those who only look


@dataclass(slots=True)
class Held:
    """A ticket that waits; seen_at: as it was last read."""

    party: Party
    queued_at: int
    seen_at: int


class Counts(NamedTuple):
    """Who waits in a queue.

    oldest   seconds that the longest-waiting ticket has waited; 0 where none waits
    bands    players by percentile: 0 to 10, 10 to 20 …;  regions  players who can play there, by region
    """

    tickets: int
    players: int
    oldest: float
    bands: tuple[int, ...]
    regions: Mapping[str, int]


class Mirror:
    """What the matchmaker reads, and by which `why` answers. Safe to share between threads: one at a time is in it.

    setups    the queues, their policies with the odds of the ladder's system
    held      tickets that wait, by number;  offers  the open ones, by number
    openings  running matches with seats to be filled, by id
    refused   tickets that no queue takes, and why
    """

    def __init__(self, database: Database, ladder: int) -> None:
        self.ladder = ladder
        self.change = -1  # nothing was read yet
        self.setups: dict[str, QueueSetup] = {}
        self.queues: dict[str, Queue] = {}
        self.held: dict[int, Held] = {}
        self.offers: dict[int, OfferRow] = {}
        self.openings: dict[str, Live] = {}
        self.refused: dict[int, str] = {}
        self.lock = threading.RLock()
        self._database = database
        self._meetings = Meetings()
        self._odds: dict[int, Odds | None] = {}  # by team size
        self._read = -float("inf")  # when, on the monotonic clock

    def catch_up(self, now: int) -> None:
        """Read what changed since the last time. Raises StoreError."""
        with self.lock:
            with self._database.read() as connection:
                store = Store(connection, self._database.rows)
                last = live.last_change(store, self.ladder)
                if last != self.change:
                    self._read_changes(store, now)
                self.change = last
            self._read = time.monotonic()

    def _read_changes(self, store: Store, now: int) -> None:
        begins = self.change < 0
        self._set_up(queue_rules.read(store, self.ladder))
        since = now - round(self._meetings.longest(self.setups) * 1e6)
        for offer in (
            offers.lately(store, self.ladder, since) if begins else offers.changed(store, self.ladder, self.change)
        ):
            self._follow_offer(offer)
        for match in live.running(store, self.ladder) if begins else live.changed(store, self.ladder, self.change):
            self._follow_match(match, now)
        for row in tickets.waiting(store, self.ladder) if begins else tickets.changed(store, self.ladder, self.change):
            self._follow_ticket(row, now)

    def _set_up(self, found: Mapping[str, QueueSetup]) -> None:
        for name in self.queues.keys() - found.keys():
            del self.queues[name]
        for name in found.keys() - self.queues.keys():
            self.queues[name] = Queue()
        for name, setup in found.items():
            known = self.setups.get(name)
            if known is None or known.change != setup.change:
                self.setups[name] = self._foretold(setup)
        self.setups = {name: self.setups[name] for name in found}

    def _foretold(self, setup: QueueSetup) -> QueueSetup:
        return setup._replace(policy=replace(setup.policy, odds=self._odds.get(setup.policy.team_size)))

    def foretell(self, odds: Mapping[int, Odds | None]) -> None:
        """Let policies foretell matches by these odds, by team size; None, or none: by the policy's own curve."""
        with self.lock:
            if odds == self._odds:
                return
            self._odds = dict(odds)
            self.setups = {name: self._foretold(setup) for name, setup in self.setups.items()}

    def _follow_offer(self, offer: OfferRow) -> None:
        self.offers.pop(offer.offer, None)
        if offer.state == offers.OPEN:
            self.offers[offer.offer] = offer
        elif offer.state == offers.MADE and offer.match_id is not None:
            self._meetings.add(offer.match_id, offer.made_at, [chair["id"] for chair in offer.chairs])

    def _follow_match(self, match: Live, now: int) -> None:
        self.openings.pop(match.match_id, None)
        if match.is_on and match.openings is not None:
            self.openings[match.match_id] = match
        if match.state != live.OPEN:
            self._meetings.end(match.match_id, now)

    def _follow_ticket(self, row: Seen, now: int) -> None:
        if row.party is None:
            self._forget(row.ticket)
        elif row.ticket not in self.held:
            self.held[row.ticket] = Held(row.party, row.queued_at, row.seen_at)
            self._join(row.ticket, now, arriving=row.change == row.ticket)
        elif row.queued_at != self.held[row.ticket].queued_at:
            self.held[row.ticket].queued_at = row.queued_at
            self._take_out(row.ticket)
            self._join(row.ticket, now, arriving=False)

    def _forget(self, ticket: int) -> None:
        self.refused.pop(ticket, None)
        if self.held.pop(ticket, None) is not None:
            self._take_out(ticket)

    def _take_out(self, ticket: int) -> None:
        for queue in self.queues.values():
            if ticket in queue:
                queue.leave(ticket)

    def _join(self, ticket: int, now: int, *, arriving: bool) -> None:
        held = self.held[ticket]
        for name in held.party.queues:
            if name not in self.queues:
                continue
            policy = self.setups[name].policy
            met = self._meetings.of(now, policy.rematch_fade)
            try:
                self.queues[name].join(held.party.ticket(ticket, held.queued_at, policy.roles, met), arriving=arriving)
            except InputError as error:  # as where a queue knows as many regions as it can
                self.refused[ticket] = str(error)

    # for who only looks

    @contextmanager
    def _looking(self, now: int, change: int = 0) -> Iterator[None]:
        with self.lock:
            if self.change < change or time.monotonic() - self._read > FRESH:
                self.catch_up(now)
            yield

    def why(self, waiting: Mapping[int, int], now: int) -> dict[int, dict[str, Waiting]]:
        """What those of these tickets wait for that do, by number and queue; `waiting`: the change of each."""
        with self._looking(now, max(waiting.values(), default=0)):
            return {
                number: {
                    name: why(number, queue, now, self.setups[name].policy)
                    for name, queue in self.queues.items()
                    if number in queue
                }
                for number in waiting
                if number in self.held
            }

    def counts(self, now: int) -> dict[str, Counts]:
        """Who waits, by queue."""
        with self._looking(now):
            return {name: self._count(name, now) for name in self.setups}

    def _count(self, name: str, now: int) -> Counts:
        there = [one for one in self.held.values() if name in one.party.queues]
        members = [member for one in there for member in one.party.members]
        bands, regions = [0] * (100 // BAND), dict.fromkeys(self.queues[name].region_names, 0)
        for member in members:
            bands[min(int(member["percentile"] // BAND), len(bands) - 1)] += 1
            for region, ping in member["ping"].items():
                limit = member["max_ping"]
                if region in regions and (limit is None or ping <= limit):
                    regions[region] += 1
        oldest = max((now - one.queued_at for one in there), default=0) / 1e6
        return Counts(len(there), len(members), max(oldest, 0.0), tuple(bands), regions)

    # for the matchmaker, who holds the lock from one to the next

    def propose(self, now: int, taken: list[int]) -> tuple[list[tuple[str, Proposal]], set[int]]:
        """The matches that can begin, by queue, the one that has waited longest first; and tickets to be given up.

        Tickets of a proposal stand in no queue any more, and are added to `taken`: see `give_back`.
        """
        found: list[tuple[str, Proposal]] = []
        expired: set[int] = set()
        for name in sorted(self.queues, key=lambda one: (self._oldest(one), one)):
            made = propose(self.queues[name], now, self.setups[name].policy)
            expired.update(made.expired.tolist())
            for proposal in made:
                found.append((name, proposal))
                self.take(proposal.tickets, taken)
        return found, expired - set(taken)

    def take(self, numbers: Sequence[int], taken: list[int]) -> None:
        """Take tickets out of all queues, and note them in `taken`."""
        for ticket in numbers:
            self._take_out(ticket)
        taken += numbers

    def give_back(self, numbers: Iterable[int], now: int) -> None:
        """Let those of these tickets stand in their queues again that still wait as far as is known."""
        for ticket in numbers:
            if ticket in self.held and not any(ticket in queue for queue in self.queues.values()):
                self._join(ticket, now, arriving=False)

    @contextmanager
    def without(self, players: Iterable[int], now: int) -> Iterator[None]:
        """As if these players did not wait, inside the block."""
        found = {queue.ticket_of(player) for player in players for queue in self.queues.values()}
        taken: list[int] = []
        self.take(sorted(ticket for ticket in found if ticket is not None), taken)
        try:
            yield
        finally:
            self.give_back(taken, now)

    def policy(self, name: str) -> Policy:
        """The policy of a queue."""
        return self.setups[name].policy

    def _oldest(self, name: str) -> int:
        queue = self.queues[name]
        order = queue.order()
        return int(queue.tickets["queued"][order].min()) if len(order) else 2**62
