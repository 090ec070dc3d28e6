"""An in-memory copy of one ladder's queues, updated from the database's changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.errors import InputError
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import live_matches, offers, tickets
from evenmatch.ledger.tables.change_locks import last_change
from evenmatch.ledger.tables.live_matches import LiveMatchRow
from evenmatch.ledger.tables.offers import OfferRow
from evenmatch.ledger.tables.tickets import Party, TicketUpdate
from evenmatch.matchmaking import Policy, Proposal, Queue, Waiting, propose, why
from evenmatch.matchmaking.wait_estimate import remember
from evenmatch.matchmaking.wait_record import WaitEstimate
from evenmatch.service import stored_queues
from evenmatch.service.queues.avoided_names import AvoidedNames
from evenmatch.service.queues.odds import LadderOdds
from evenmatch.service.queues.parties import Level, ticket_of, with_levels, with_levels_of
from evenmatch.service.queues.recent_meetings import Meetings
from evenmatch.service.stored_queues import QueueSetup

BAND = 10  # percentiles
JUST = 5.0  # seconds since a ticket joined after which its wait is not estimated any more
FRESH = 0.5  # seconds for which read-only methods use the copy without reading changes


@dataclass(slots=True)
class WaitingTicket:
    """A waiting ticket; seen_at: last heartbeat, as it was last read."""

    party: Party
    queued_at: int
    seen_at: int


class Counts(NamedTuple):
    """Counts of what waits in a queue.

    oldest   longest waiting time of a ticket in seconds; 0 if none waits
    bands    players by percentile: 0 to 10, 10 to 20, …;  regions  players who can play in it, by region; none is 0
    """

    tickets: int
    players: int
    oldest: float
    bands: tuple[int, ...]
    regions: Mapping[str, int]


class QueueState:
    """The state that the matchmaker and `why` work on. Thread-safe: `lock` admits one thread at a time.

    setups    the queues; the `odds` of their policies are those of this state
    odds      predicts matches by the ladder's system
    held      waiting tickets, by number;  offers  open offers, by number
    openings  live matches with open slots to be filled, by id
    refused   tickets that a queue rejected, with the reason
    estimates  of the waits that was estimated at joining, for some tickets a second, by ticket and queue
    """

    def __init__(self, database: Database, ladder: int, name: str) -> None:
        self.ladder = ladder
        self.change = -1  # nothing read yet
        self.setups: dict[str, QueueSetup] = {}
        self.queues: dict[str, Queue] = {}
        self.held: dict[int, WaitingTicket] = {}
        self.offers: dict[int, OfferRow] = {}
        self.openings: dict[str, LiveMatchRow] = {}
        self.refused: dict[int, str] = {}
        self.estimates: dict[int, dict[str, WaitEstimate]] = {}
        self._arrived: list[int] = []  # tickets that joined since the last estimates
        self._avoiding = AvoidedNames()
        self.lock = threading.RLock()
        self._database = database
        self._meetings = Meetings()
        self.odds = LadderOdds(database, name, self._players)
        self._leveled: object = None  # the ratings that the levels of `held` are from
        self._read = -float("inf")  # time of the last read, monotonic clock

    def catch_up(self, now: int) -> None:
        """Read the changes since the last call. Raises StoreError."""
        with self.lock:
            with self._database.read() as store:
                last = last_change(store, self.ladder)
                if last != self.change:
                    self._read_changes(store, now)
                    self._tell_waits(now)
                self.change = last
            self._read = time.monotonic()

    def _read_changes(self, store: Store, now: int) -> None:
        self._set_up(stored_queues.read(store, self.ladder))
        since = now - round(self._meetings.longest(self.setups) * 1e6)
        offer_rows: Iterable[OfferRow]
        if self.change < 0:
            offer_rows = offers.read_recent(store, self.ladder, since)
            matches = live_matches.read_open(store, self.ladder)
            ticket_rows = tickets.read_waiting(store, self.ladder)
        else:
            offer_rows = offers.read_changed(store, self.ladder, self.change)
            matches = live_matches.read_changed(store, self.ladder, self.change)
            ticket_rows = tickets.read_changed(store, self.ladder, self.change)
        for offer in offer_rows:
            self._update_offer(offer)
        for match in matches:
            self._update_match(match, now)
        for row in ticket_rows:
            self._update_ticket(row, now)

    def _tell_waits(self, now: int) -> None:
        """Estimate the waits of some of the tickets that have just joined."""
        arrived = [ticket for ticket in self._arrived if ticket in self.held]
        self._arrived = []
        just = [ticket for ticket in arrived if now - self.held[ticket].queued_at < JUST * SECOND]
        for name, queue in self.queues.items() if just else ():
            for ticket, wait in remember(queue, just, now, self.setups[name].policy_at(now)).items():
                self.estimates.setdefault(ticket, {})[name] = wait

    def _end_waits(self, tickets: Iterable[int], now: int, queue: str | None = None) -> None:
        """Note that tickets no longer wait: with a match of this queue, or without one."""
        for name in self.queues:
            self.queues[name].waits.end(tickets, now, is_matched=name == queue)

    def _set_up(self, setups: Mapping[str, QueueSetup]) -> None:
        for name in self.queues.keys() - setups.keys():
            del self.queues[name]
        for name in setups.keys() - self.queues.keys():
            self.queues[name] = Queue()
        for name, setup in setups.items():
            known = self.setups.get(name)
            if known is None or known.change != setup.change:
                self.setups[name] = setup.with_odds(self.odds)
        self.setups = {name: self.setups[name] for name in setups}

    def _players(self) -> list[int]:
        return [player for held in self.held.values() for player in held.party.players]

    def set_levels(self, ratings: object, levels: Callable[[Sequence[int]], Mapping[int, Level]], now: int) -> None:
        """Read the levels of all waiting players again if `ratings`, which names the ladder's ratings, is new.

        Levels are stored with a ticket when it joins; a correction or another system makes them obsolete.
        """
        with self.lock:
            if ratings == self._leveled:
                return
            known = levels(self._players())
            for ticket, held in self.held.items():
                held.party = with_levels(held.party, known)
                if any(ticket in queue for queue in self.queues.values()):
                    self._take_out(ticket)
                    self._join(ticket, now, arriving=False)
            self._leveled = ratings

    def _update_offer(self, offer: OfferRow) -> None:
        self.offers.pop(offer.offer, None)
        if offer.state != offers.OFF:
            self._end_waits(offer.tickets, offer.made_at, offer.queue if offer.body["match"] is None else None)
        if offer.state == offers.OPEN:
            self.offers[offer.offer] = offer
        elif offer.state == offers.MADE and offer.match_id is not None:
            self._meetings.add(offer.match_id, offer.made_at, [slot["id"] for slot in offer.chairs])

    def _update_match(self, match: LiveMatchRow, now: int) -> None:
        self.openings.pop(match.match_id, None)
        if match.is_on and match.openings is not None:
            self.openings[match.match_id] = match
        if match.state != live_matches.OPEN:
            self._meetings.end(match.match_id, now)

    def _update_ticket(self, row: TicketUpdate, now: int) -> None:
        if row.party is None:
            self._forget(row.ticket, now)
            return
        self._avoiding.add(row.ticket, row.party)
        stored = self._avoiding.applied(row.party)
        if row.ticket not in self.held:
            self.held[row.ticket] = WaitingTicket(stored, row.queued_at, row.seen_at)
            self._join(row.ticket, now, arriving=row.change == row.ticket)
            if row.change == row.ticket:
                self._arrived.append(row.ticket)
        else:
            held, party = self.held[row.ticket], with_levels_of(stored, self.held[row.ticket].party)
            if row.queued_at == held.queued_at and party == held.party:
                return
            held.queued_at, held.party = row.queued_at, party
            self._take_out(row.ticket)
            self._join(row.ticket, now, arriving=False)

    def _forget(self, ticket: int, now: int) -> None:
        self.refused.pop(ticket, None)
        self.estimates.pop(ticket, None)
        self._avoiding.remove(ticket)
        self._end_waits((ticket,), now)
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
            setup = self.setups[name]
            met = self._meetings.of(now, setup.rematch_fade)
            try:
                queue_ticket = ticket_of(held.party, ticket, held.queued_at, setup.policy.roles, met)
                self.queues[name].join(queue_ticket, arriving=arriving)
            except InputError as error:  # for example when the queue's limit of regions is reached
                self.refused[ticket] = str(error)

    # read-only

    @contextmanager
    def _reading(self, now: int, change: int = 0) -> Iterator[None]:
        with self.lock:
            if self.change < change or time.monotonic() - self._read > FRESH:
                self.catch_up(now)
            yield

    def why(self, waiting: Mapping[int, int], now: int) -> dict[int, dict[str, Waiting]]:
        """What each waiting ticket among these waits for, by number and queue; `waiting`: change number by ticket."""
        with self._reading(now, max(waiting.values(), default=0)):
            return {
                number: {
                    name: why(number, queue, now, self.setups[name].policy_at(now))
                    for name, queue in self.queues.items()
                    if number in queue
                }
                for number in waiting
                if number in self.held
            }

    def counts(self, now: int) -> dict[str, Counts]:
        """Counts of waiting tickets and players, by queue."""
        with self._reading(now):
            return {name: self._count(name, now) for name in self.setups}

    def _count(self, name: str, now: int) -> Counts:
        waiting = [held for held in self.held.values() if name in held.party.queues]
        members = [member for held in waiting for member in held.party.members]
        bands, regions = [0] * (100 // BAND), dict.fromkeys(self.queues[name].region_names, 0)
        for member in members:
            bands[min(int(member["percentile"] // BAND), len(bands) - 1)] += 1
            for region, ping in member["ping"].items():
                limit = member["max_ping"]
                if region in regions and (limit is None or ping <= limit):
                    regions[region] += 1
        oldest = max((now - held.queued_at for held in waiting), default=0) / 1e6
        named = {region: count for region, count in regions.items() if count}
        return Counts(len(waiting), len(members), max(oldest, 0.0), tuple(bands), named)

    # for the matchmaker, which holds the lock across calls

    def propose(self, now: int, taken: list[int]) -> tuple[list[tuple[str, Proposal]], set[int]]:
        """Proposals as (queue, proposal), starting with the queue whose ticket waits longest, and the expired tickets.

        Tickets of a proposal are taken out of all queues and added to `taken`; see `give_back`.
        """
        proposals: list[tuple[str, Proposal]] = []
        expired: set[int] = set()
        for name in sorted(self.queues, key=lambda queue: (self._oldest(queue), queue)):
            proposed = propose(self.queues[name], now, self.policy(name, now))
            expired.update(proposed.expired.tolist())
            for proposal in proposed:
                proposals.append((name, proposal))
                self.take(proposal.tickets, taken)
        return proposals, expired - set(taken)

    def take(self, numbers: Sequence[int], taken: list[int]) -> None:
        """Take tickets out of all queues and add them to `taken`."""
        for ticket in numbers:
            self._take_out(ticket)
        taken += numbers

    def give_back(self, numbers: Iterable[int], now: int) -> None:
        """Put the tickets that still wait, as far as is known, back into their queues."""
        for ticket in numbers:
            if ticket in self.held and not any(ticket in queue for queue in self.queues.values()):
                self._join(ticket, now, arriving=False)

    @contextmanager
    def without(self, players: Iterable[int], now: int) -> Iterator[None]:
        """Take the tickets of these players out of all queues inside the `with` block."""
        numbers = {queue.ticket_of(player) for player in players for queue in self.queues.values()}
        taken: list[int] = []
        self.take(sorted(ticket for ticket in numbers if ticket is not None), taken)
        try:
            yield
        finally:
            self.give_back(taken, now)

    def policy(self, name: str, now: int) -> Policy:
        """The policy in force in a queue."""
        return self.setups[name].policy_at(now)

    def _oldest(self, name: str) -> int:
        queue = self.queues[name]
        order = queue.order()
        return int(queue.tickets["queued"][order].min()) if len(order) else 2**62
