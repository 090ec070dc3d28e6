"""An in-memory copy of one ladder's queues, updated from the changes in the database.

It also predicts matches by the ladder's own system, and knows recent meetings and avoided names that no player has yet.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY, SECOND
from evenmatch.errors import InputError
from evenmatch.history import Floats
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.contexts import Contexts
from evenmatch.ledger.database import Database
from evenmatch.ledger.ladder_rows import last_change
from evenmatch.ledger.store import Head, Store
from evenmatch.live import live_sql
from evenmatch.live.live_sql import LiveMatchRow
from evenmatch.match_context import NO_CONTEXT, Context
from evenmatch.matchmaking import LineUps, Met, Policy, Proposal, Queue, Waiting, propose, why
from evenmatch.matchmaking.queue import WaitEstimate
from evenmatch.matchmaking.tickets import starts
from evenmatch.matchmaking.waiting import remember
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.parties import Level, ticket_of, with_levels, with_levels_of
from evenmatch.queues.queue_sql import OfferRow, Party, TicketUpdate
from evenmatch.queues.stored_queues import QueueSetup
from evenmatch.systems import forecasts
from evenmatch.systems.system import Records, Rules


class AvoidedNames:
    """The unknown names that the players of waiting tickets avoid."""

    def __init__(self) -> None:
        self._avoiders: defaultdict[str, dict[int, set[int]]] = defaultdict(dict)  # player ids by ticket, by name
        self._names: dict[int, list[str]] = {}  # by ticket

    def add(self, ticket: int, party: Party) -> None:
        """Note the names that the members of a ticket avoid, replacing earlier ones."""
        self.remove(ticket)
        for member in party.members:
            for name in member["avoid_unknown"]:
                self._avoiders[name].setdefault(ticket, set()).add(member["id"])
                self._names.setdefault(ticket, []).append(name)

    def remove(self, ticket: int) -> None:
        """Forget a ticket that no longer waits."""
        for name in self._names.pop(ticket, ()):
            self._avoiders[name].pop(ticket, None)
            if not self._avoiders[name]:
                del self._avoiders[name]

    def applied(self, party: Party) -> Party:
        """The party, with the players who avoid its members by name added to the members' own avoid lists."""
        if self._avoiders.keys().isdisjoint(party.names):
            return party
        members = []
        for member in party.members:
            changed = member.copy()
            avoiders = self._avoiders.get(member["name"], {}).values()
            changed["avoid"] = sorted({*member["avoid"], *(player for listed in avoiders for player in listed)})
            members.append(changed)
        return replace(party, members=tuple(members))


MEETINGS_KEPT_FOR = DAY  # microseconds; offers are stored no longer


class Meetings:
    """Recent matches with their players and times. The time is the end if known, otherwise the creation."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        self._players: defaultdict[str, set[int]] = defaultdict(set)
        self._matches: defaultdict[int, list[str]] = defaultdict(list)  # by player, the latest last
        self._pruned = 0

    @staticmethod
    def longest(setups: Mapping[str, QueueSetup]) -> float:
        """Seconds from the creation of a match until no queue counts it as a meeting."""
        return max((setup.rematch_fade + setup.rules.longest_match for setup in setups.values()), default=0.0)

    def add(self, match_id: str, time: int, players: Sequence[int]) -> None:
        """Add players to a match that was created, or that they joined, at a time."""
        self._times[match_id] = max(time, self._times.get(match_id, time))
        for player in set(players) - self._players[match_id]:
            self._matches[player].append(match_id)
        self._players[match_id].update(players)

    def end(self, match_id: str, now: int) -> None:
        """Set the end time of a match."""
        if match_id in self._times:
            self._times[match_id] = now

    def of(self, now: int, fade: float) -> Callable[[int], tuple[Met, ...]]:
        """A function that returns the players whom a player met in the last `fade` seconds, with the latest times."""
        self._prune(now)
        since = now - round(fade * 1e6)

        def met(player: int) -> tuple[Met, ...]:
            latest: dict[int, int] = {}
            for match_id in self._matches.get(player, ()):
                time = self._times[match_id]
                if time > since:
                    others = self._players[match_id] - {player}
                    latest |= {other: max(time, latest.get(other, time)) for other in others}
            return tuple(Met(*item) for item in sorted(latest.items()))

        return met

    def _prune(self, now: int) -> None:
        if now - self._pruned < MEETINGS_KEPT_FOR // 100:
            return
        self._pruned = now
        for match_id in [match_id for match_id, ended in self._times.items() if ended < now - MEETINGS_KEPT_FOR]:
            del self._times[match_id]
            for player in self._players.pop(match_id):
                self._matches[player].remove(match_id)
                if not self._matches[player]:
                    del self._matches[player]


class LadderOdds:
    """Predicts matches of one ladder as `POST …/odds` does: by its system, as of the last recorded match.

    The policies of all the ladder's queues use it as `odds`. States stay in memory until a match is recorded. Not
    thread-safe.

    players  returns the players whose states are likely to be needed; they are read in one statement
    """

    def __init__(self, database: Database, ladder: str, players: Callable[[], Iterable[int]]) -> None:
        self._database, self._ladder, self._players = database, ladder, players
        self._head: Head | None = None
        self._rules: Rules | None = None
        self._row: dict[int, int] = {}
        self._state: Records = np.empty(0, [])
        self._ladders: Records | None = None
        self._columns: Sequence[str] = ()
        self._contexts: tuple[Ids, Contexts] | None = None  # of the players in `_row`
        self._now, self._is_current = 0, False

    def begin_tick(self, now: int) -> None:
        """Predict matches as of this time, microseconds. The next prediction reads the ladder's changes."""
        self._now, self._is_current = now, False

    def __call__(self, line_ups: LineUps, context: Context = NO_CONTEXT) -> Floats:
        """See matchmaking.OddsFunction. Raises StoreError."""
        chance = self._chances(line_ups, context)
        return chance[:, 0] if line_ups.teams == 2 else np.maximum(chance, 1 - chance).max(axis=1)

    def expected(
        self, matches: Sequence[Sequence[Sequence[int]]], context: Context = NO_CONTEXT
    ) -> list[list[float] | None]:
        """The predicted score of each team, given by the ids of its players. A draw counts half.

        context  what they play on, such as {"map": "dust"}; columns that the ladder does not declare are ignored
        None: the system cannot predict the match, or a team is empty. Raises StoreError.
        """
        scores: list[list[float] | None] = [None] * len(matches)
        for count in {len(teams) for teams in matches}:
            chosen = [index for index, teams in enumerate(matches) if len(teams) == count and all(teams)]
            teams = [team for index in chosen for team in matches[index]]
            player = np.array([player for team in teams for player in team], np.int64)
            chance = self._chances(LineUps(count, starts([len(team) for team in teams]), player, np.empty(0)), context)
            first, second = np.triu_indices(count, 1)
            total = np.zeros((len(chosen), count))
            for pair in range(len(first)):
                total[:, first[pair]] += chance[:, pair]
                total[:, second[pair]] += 1 - chance[:, pair]
            for index, expected in zip(chosen, (total / (count - 1)).tolist(), strict=True):
                scores[index] = None if math.isnan(expected[0]) else expected
        return scores

    def _chances(self, line_ups: LineUps, context: Context = NO_CONTEXT) -> Floats:
        """The predicted score of the first team against the second, for each pair of teams; float64 (M, pairs)."""
        players = line_ups.player.tolist()
        rules, state, now = self._states(players)
        if rules.system.teams not in (None, line_ups.teams):
            return np.full((len(line_ups), line_ups.teams * (line_ups.teams - 1) // 2), np.nan)
        rows = np.fromiter(map(self._row.__getitem__, players), np.int64, len(players))
        teams = forecasts.LineUpTeams(line_ups.start, rows)
        ladders, known = self._in_context(rules, context, line_ups.player)
        predicted = forecasts.line_up_forecasts(rules, state, teams, line_ups.teams, now, ladders, known)
        chance: Floats = predicted[:, :, 0] + predicted[:, :, 1] / 2
        return chance

    def _in_context(
        self, rules: Rules, context: Context, players: Ids
    ) -> tuple[Records, forecasts.LineUpContext | None]:
        """The records of ladder and context values, and what is known about these players of `_row` under them."""
        assert self._head is not None
        assert self._ladders is not None
        declared = {name: value for name, value in context.items() if name in self._columns}
        if not declared:
            return self._ladders, None
        ids = np.fromiter(self._row, np.int64, len(self._row))
        if self._contexts is None or len(self._contexts[0]) != len(ids):
            with self._database.read() as store:
                self._contexts = ids, rating_rows.read_contexts(store, self._head, rules, ids)
        return self._contexts[1].of_line_up(self._columns, declared, players, rules, self._ladders)

    def _states(self, players: Sequence[int]) -> tuple[Rules, Records, int]:
        """The ladder's rules, the states that `_row` points into, and the time of the prediction."""
        if not self._is_current or not self._row.keys() >= set(players):
            with self._database.read() as store:
                self._catch_up(store)
                self._read({*players, *self._players()} - self._row.keys(), store)
            self._is_current = True
        assert self._head is not None
        assert self._rules is not None
        latest = self._now if self._head.time is None else max(self._now, self._head.time)
        return self._rules, self._state, latest

    def _catch_up(self, store: Store) -> None:
        """Drop all states if a match was recorded after they were read."""
        old, head = self._head, store.head(self._ladder)
        if old is None or _versions(old) != _versions(head):
            plan = event_rows.read_plan(store, head, head.planned)
            self._rules, self._columns = plan.last_rules, plan.context_columns
        assert self._rules is not None
        if old is None or (*_versions(old), old.position) != (*_versions(head), head.position):
            self._row, self._state, self._contexts = {}, self._rules.newcomers(0), None
        self._head, self._ladders = head, rating_rows.read_ladder_records(head, self._rules)

    def _read(self, players: set[int], store: Store) -> None:
        """Read the states of these players. Players without a match on the ladder are newcomers."""
        assert self._head is not None
        assert self._rules is not None
        ids: Ids = np.array(sorted(players), np.int64)
        roster = rating_rows.read_roster(store, self._head, self._rules, ids)
        state = self._rules.newcomers(len(ids))
        state[ids.searchsorted(roster.ids)] = roster.records
        self._row |= dict(zip(ids.tolist(), range(len(self._state), len(self._state) + len(ids)), strict=True))
        self._state = np.concatenate((self._state, state))


def _versions(head: Head) -> tuple[int, int, int, int]:
    """The values on which the rules of a ladder depend."""
    return head.ladder, head.generation, head.corrected, head.planned


BAND = 10  # percentiles
ESTIMATED_UNTIL = 5.0  # seconds after joining; the waits of older tickets are not estimated
FRESH_FOR = 0.5  # seconds for which read-only methods use the copy without reading changes


@dataclass(slots=True)
class WaitingTicket:
    """A waiting ticket. seen_at: the last heartbeat, as last read."""

    party: Party
    queued_at: int
    seen_at: int


class Counts(NamedTuple):
    """What waits in a queue, in numbers.

    oldest   longest wait of a ticket in seconds; 0 if none waits
    bands    players by percentile: 0 to 10, 10 to 20, …
    regions  players who can play in each region, without regions where nobody can
    """

    tickets: int
    players: int
    oldest: float
    bands: tuple[int, ...]
    regions: Mapping[str, int]


class QueueState:
    """The state on which the matchmaker and `why` work. Thread-safe: `lock` admits one thread at a time.

    setups    the queues; the `odds` of their policies are those of this state
    odds      predicts matches by the ladder's system
    held      waiting tickets, by number;  offers  pending offers, by number
    openings  live matches with open slots to be filled, by id
    refused   tickets that a queue rejected, with the reason
    estimates  of the waits at joining, by ticket and queue, for a few tickets per second
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
        self._leveled: object = None  # identifies the ratings from which the levels of `held` come
        self._read = -float("inf")  # time of the last read, monotonic clock

    def catch_up(self, now: int) -> None:
        """Read the changes since the last call. Raises StoreError."""
        with self.lock:
            with self._database.read() as store:
                last = last_change(store, self.ladder)
                if last != self.change:
                    self._read_changes(store, now)
                    self._estimate_waits(now)
                self.change = last
            self._read = time.monotonic()

    def _read_changes(self, store: Store, now: int) -> None:
        self._set_up(stored_queues.read(store, self.ladder))
        since = now - round(self._meetings.longest(self.setups) * 1e6)
        offer_rows: Iterable[OfferRow]
        if self.change < 0:
            offer_rows = queue_sql.read_recent_offers(store, self.ladder, since)
            matches = live_sql.read_open(store, self.ladder)
            ticket_rows = queue_sql.read_waiting_tickets(store, self.ladder)
        else:
            offer_rows = queue_sql.read_changed_offers(store, self.ladder, self.change)
            matches = live_sql.read_changed(store, self.ladder, self.change)
            ticket_rows = queue_sql.read_changed_tickets(store, self.ladder, self.change)
        for offer in offer_rows:
            self._update_offer(offer)
        for match in matches:
            self._update_match(match, now)
        for row in ticket_rows:
            self._update_ticket(row, now)

    def _estimate_waits(self, now: int) -> None:
        """Estimate the waits of some tickets that have just joined."""
        arrived = [ticket for ticket in self._arrived if ticket in self.held]
        self._arrived = []
        just = [ticket for ticket in arrived if now - self.held[ticket].queued_at < ESTIMATED_UNTIL * SECOND]
        for name, queue in self.queues.items() if just else ():
            for ticket, wait in remember(queue, just, now, self.setups[name].policy_at(now)).items():
                self.estimates.setdefault(ticket, {})[name] = wait

    def _end_waits(self, tickets: Iterable[int], now: int, queue: str | None = None) -> None:
        """Note that tickets no longer wait. queue: the one with their match; None: they have no match."""
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
        """Read the levels of all waiting players again if the ladder's ratings, identified by `ratings`, are new.

        Levels are stored with a ticket when it joins. A correction or another system makes them obsolete.
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
        if offer.state != queue_sql.OFF:
            self._end_waits(offer.tickets, offer.made_at, offer.queue if offer.body["match"] is None else None)
        if offer.state in queue_sql.OFFERS_PENDING:
            self.offers[offer.offer] = offer
        elif offer.state == queue_sql.MADE and offer.match_id is not None:
            self._meetings.add(offer.match_id, offer.made_at, [slot["id"] for slot in offer.chairs])

    def _update_match(self, match: LiveMatchRow, now: int) -> None:
        self.openings.pop(match.match_id, None)
        if match.is_on and match.openings is not None:
            self.openings[match.match_id] = match
        if match.state != live_sql.OPEN:
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
            if self.change < change or time.monotonic() - self._read > FRESH_FOR:
                self.catch_up(now)
            yield

    def why(self, waiting: Mapping[int, int], now: int) -> dict[int, dict[str, Waiting]]:
        """What the waiting tickets among these wait for, by number and queue. waiting: change number by ticket."""
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
        """The proposals as (queue, proposal), and the expired tickets. The queue with the oldest ticket goes first.

        Tickets of a proposal are taken out of all queues and added to `taken`; see `give_back`.
        """
        proposals: list[tuple[str, Proposal]] = []
        expired: set[int] = set()
        searching = [name for name in self.queues if self.setups[name].paused is None]
        for name in sorted(searching, key=lambda queue: (self._oldest(queue), queue)):
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
        """Return those tickets to their queues that still wait according to this state."""
        for ticket in numbers:
            if ticket in self.held and not any(ticket in queue for queue in self.queues.values()):
                self._join(ticket, now, arriving=False)

    @contextmanager
    def without(self, players: Iterable[int], now: int) -> Iterator[None]:
        """Take the tickets of these players out of all queues within the `with` block."""
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
