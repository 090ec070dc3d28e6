"""The queue service: join, leave and answer requests in batches, and the status of tickets."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

from evenmatch.errors import EvenmatchError, InputError, StoreError, UnknownNameError
from evenmatch.ledger.tables import change_locks, penalties, player_identities, queues, tickets
from evenmatch.ledger.tables.seats import Seat
from evenmatch.ledger.text import check_text
from evenmatch.service import stored_queues
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.penalties import Penalty, penalty_of
from evenmatch.service.player_seats import seat_on
from evenmatch.service.queue_experiment import QueueExperiment
from evenmatch.service.queue_filter import QueueFilter
from evenmatch.service.queue_rules import QueueRules
from evenmatch.service.queues import kept_filters, queue_setup, recent_offers, ticket_status
from evenmatch.service.queues.changes import QueueChanges
from evenmatch.service.queues.heartbeats import Heartbeats
from evenmatch.service.queues.join_profiles import JoinProfiles, LevelBook
from evenmatch.service.queues.joins import Outcome, admit
from evenmatch.service.queues.leases import Leases
from evenmatch.service.queues.notifications import Listener, TicketNotifier
from evenmatch.service.queues.offer_stakes import OfferStakes
from evenmatch.service.queues.parties import check
from evenmatch.service.queues.playlists import with_locks
from evenmatch.service.queues.queue_state import Counts, QueueState
from evenmatch.service.queues.recent_offers import RecentOffer
from evenmatch.service.queues.requests import Join, QueueRequest, TicketAnswer
from evenmatch.service.queues.ticket_answers import answer
from evenmatch.service.queues.ticket_status import Status
from evenmatch.service.service import Service
from evenmatch.service.stored_queues import QueueSetup

NOTHING_KNOWN: Mapping[int, int] = {}


class QueueService:
    """The queues of a service's ladders. Thread-safe; all state that matters is in the database.

    Every method may raise StoreError when the database fails; requests without an answer can be repeated.
    """

    def __init__(self, service: Service, loaded: threading.Event | None = None) -> None:
        """`loaded`: an event that is set when the matchmaker's kernels are loaded; None: they are loaded on use."""
        self.service, self.notifier, self.loaded = service, TicketNotifier(service.database), loaded
        self.levels = LevelBook(service)
        self._offer_stakes = OfferStakes()
        self.heartbeats = Heartbeats(service.database, service.clock)
        self.leases = Leases(service.database, f"process {secrets.token_hex(8)}", wall=service.clock)
        self._states: dict[str, QueueState] = {}
        self._guard = threading.Lock()

    def noting(self, audit_entry: AuditEntry) -> QueueService:
        """A copy whose changes are recorded in the audit trail, in the same transaction."""
        other = copy(self)
        other.service = self.service.noting(audit_entry)
        return other

    # queues

    def set_queue(
        self, ladder: str, name: str, policy: Mapping[str, object], rules: QueueRules | None = None
    ) -> QueueSetup:
        """Create a queue, or replace its policy and rules; its tickets stay.

        policy  as for Policy.from_data; the default of team_size is the ladder's
        """
        levels = self.levels.of(ladder)
        with self.service.database.write() as store:
            setup = queue_setup.set_queue(store, levels, name, policy, rules)
            self.service.note(store)
            return setup

    def start_experiment(
        self, ladder: str, name: str, policy: Mapping[str, object], design: Mapping[str, object]
    ) -> QueueExperiment:
        """Let a second policy share a queue with its own; a repeated request returns the running experiment.

        policy  as for Policy.from_data; team sizes and roles are those of the queue
        design  options of ExperimentDesign
        Raises UnknownNameError for an unknown queue, ConflictError if the queue runs another experiment.
        """
        number = self.levels.of(ladder).ladder
        with self.service.database.write() as store:
            started = queue_setup.start_experiment(store, number, name, policy, design, self.service.clock())
            self.service.note(store)
            return started

    def stop_experiment(self, ladder: str, name: str) -> QueueExperiment:
        """Stop the experiment of a queue, whose own policy decides alone from then on; its matches stay comparable.

        A repeated request returns the experiment that was stopped last. Raises UnknownNameError for an unknown queue,
        ConflictError if it never had an experiment.
        """
        number = self.levels.of(ladder).ladder
        with self.service.database.write() as store:
            stopped = queue_setup.stop_experiment(store, number, name, self.service.clock())
            self.service.note(store)
            return stopped

    def remove_queue(self, ladder: str, name: str, *, force: bool = False) -> int:
        """Remove a queue with its tickets; return their number. Raises ConflictError if there are some, unless `force`.

        Raises UnknownNameError for an unknown queue.
        """
        number = self.levels.of(ladder).ladder

        def remove(counts: Mapping[int, int]) -> tuple[int, dict[str, list[int]]]:
            with self.service.database.write() as store:
                removed = queue_setup.remove_queue(
                    store, number, name, force=force, now=self.service.clock(), counts=counts
                )
                self.service.note(store)
                return removed.gone, self.notifier.announce_changed(store, ladder, removed.touched)

        gone, touched = with_locks({number: 1}, remove)
        self.notifier.ring_changed(touched)
        return gone

    def queues(self, ladder: str) -> list[QueueSetup]:
        """The queues of a ladder, by name."""
        with self.service.database.read() as store:
            return list(stored_queues.read(store, store.head(ladder).ladder).values())

    def queue(self, ladder: str, name: str) -> QueueSetup:
        """A queue of a ladder. Raises UnknownNameError."""
        return stored_queues.find({setup.name: setup for setup in self.queues(ladder)}, name)

    def queues_elsewhere(self, ladder: str) -> list[tuple[str, str]]:
        """(ladder, queue) of every queue of the other ladders, ordered."""
        with self.service.database.read() as store:
            return [named for named in queues.read_names(store) if named[0] != ladder]

    def recent(self, ladder: str, limit: int) -> list[RecentOffer]:
        """The latest offers of a ladder's queues, newest first, at most `limit`."""
        with self.service.database.read() as store:
            return recent_offers.recent(store, store.head(ladder).ladder, limit)

    # players

    def apply(self, ladder: str, wishes: Sequence[QueueRequest]) -> list[Outcome]:
        """Carry out requests in one transaction; return for each its result, or the error if it was refused.

        Answers come first, then joins. Raises UnknownNameError for an unknown ladder.
        """
        if not wishes:
            return []
        profiles = {ladder: self.levels.of(ladder)}
        refused: dict[int, Outcome] = {}
        counts = {profiles[ladder].ladder: len(wishes)}
        for index, request in enumerate(wishes):
            if isinstance(request, Join):
                try:
                    check(request)
                    others = self._profiles_of_others(ladder, request)
                except EvenmatchError as error:
                    refused[index] = error
                    continue
                profiles |= others
                for other in others.values():
                    counts[other.ladder] = counts.get(other.ladder, 0) + 1

        def attempt(locks: Mapping[int, int]) -> tuple[list[Outcome], dict[str, list[int]]]:
            return self._apply(ladder, profiles, wishes, dict(refused), locks)

        try:
            outcomes, touched = with_locks(counts, attempt)
        except StoreError as error:
            if "deadlock" not in str(error):  # possible when a player moves from one ladder to another
                raise
            outcomes, touched = with_locks(counts, attempt)
        self.notifier.ring_changed(touched)
        return outcomes

    def _profiles_of_others(self, ladder: str, join: Join) -> dict[str, JoinProfiles]:
        """The join profiles of the other ladders of a playlist. Raises UnknownNameError, InputError."""
        if ladder in join.playlist:
            raise InputError(f"the playlist names ladder {ladder!r}, whose queues are in `queues`; name other ladders")
        return {other: self.levels.of(other) for other in join.playlist}

    def _apply(
        self,
        ladder: str,
        profiles: Mapping[str, JoinProfiles],
        requests: Sequence[QueueRequest],
        outcomes: dict[int, Outcome],
        counts: Mapping[int, int],
    ) -> tuple[list[Outcome], dict[str, list[int]]]:
        """Try once; return the outcomes, and the changed tickets by ladder.

        outcomes  the requests refused so far, by index;  counts  see QueueChanges
        """
        joins, answers = {}, {}
        for index, request in enumerate(requests):
            if not isinstance(request, Join):
                answers[index] = request
            elif index not in outcomes:
                joins[index] = request
        with self.service.database.write(share_names=bool(joins)) as store:
            changes = QueueChanges(store, profiles[ladder].ladder, self.service.clock(), counts)
            self._answer(changes, answers, outcomes)
            outcomes |= admit(changes, ladder, profiles, joins)
            touched = self.notifier.announce_changed(store, ladder, changes.touched)
        return [outcomes[index] for index in range(len(requests))], touched

    @staticmethod
    def _answer(changes: QueueChanges, answers: Mapping[int, TicketAnswer], outcomes: dict[int, Outcome]) -> None:
        if not answers:
            return
        changes.read([request.ticket for request in answers.values()])
        names = {request.player for request in answers.values() if request.player is not None}
        ids = player_identities.ids_of(changes.store, sorted(names))
        for index, request in answers.items():
            try:
                outcomes[index] = answer(changes, request, ids)
            except EvenmatchError as error:
                outcomes[index] = error
        changes.keep()

    def statuses(
        self, ladder: str, numbers: Sequence[int], since: Mapping[int, int] = NOTHING_KNOWN
    ) -> dict[int, Status]:
        """The status of the existing tickets among these, by number.

        Reading is no heartbeat, since the reader may not be allowed to see a ticket: see `heartbeats`.

        since  change numbers by ticket: a ticket that has not changed since is returned without what it waits for,
               which takes long to find
        """
        now = self.service.clock()
        lease = lease_of(self.levels.of(ladder).ladder)
        until = None if self.leases.is_held(lease) else self.leases.watch(lease).held_at or 0
        with self.service.database.read() as store:
            head = store.head(ladder)
            statuses = ticket_status.read(store, head.ladder, numbers, now, until)
            statuses = self._offer_stakes.add(store, head, statuses, now)
        changed = [status for status in statuses.values() if status.change > since.get(status.ticket, -1)]
        waiting = {status.ticket: status.change for status in changed if status.state == tickets.WAITING}
        if waiting and until is None and self._is_loaded():
            reasons = self.queue_state(ladder).why(waiting, now)
            statuses |= {number: replace(statuses[number], waiting=reason) for number, reason in reasons.items()}
        return statuses

    def is_matching(self, ladder: str) -> bool:
        """Whether some process runs the matchmaker of a ladder now; False while it starts."""
        return self.leases.is_held(lease_of(self.levels.of(ladder).ladder))

    def _is_loaded(self) -> bool:
        return self.loaded is None or self.loaded.is_set()

    def status(self, ladder: str, ticket: int) -> Status:
        """The status of a ticket. Raises UnknownNameError if it is unknown or was deleted as old."""
        statuses = self.statuses(ladder, [ticket])
        if ticket not in statuses:
            raise UnknownNameError("ticket", str(ticket), ())
        return statuses[ticket]

    def is_member(self, ladder: str, ticket: int, player: str) -> bool:
        """Whether a player is in a ticket: a name that they were given since it joined will do."""
        with self.service.database.read() as store:
            rows = tickets.read(store, store.head(ladder).ladder, [ticket])
            ids = player_identities.ids_of(store, [player])
        return ticket in rows and ids.get(player) in rows[ticket].party.players

    def seat(self, ladder: str, player: str) -> Seat | None:
        """Where a player waits or plays on a ladder; None: nowhere, also for an unknown name."""
        with self.service.database.read() as store:
            number, ids = store.head(ladder).ladder, player_identities.ids_of(store, [player])
            return seat_on(store, number, ids[player]) if player in ids else None

    def filter_of(self, ladder: str, player: str) -> QueueFilter | None:
        """The filter that a player keeps on a ladder; None: none. Raises UnknownNameError for an unknown ladder."""
        with self.service.database.read() as store:
            number, ids = store.head(ladder).ladder, player_identities.ids_of(store, [player])
            return kept_filters.read(store, number, list(ids.values())).get(ids.get(player, -1))

    def set_filter(self, ladder: str, player: str, chosen: QueueFilter | None) -> None:
        """Keep a player's filter (None: forget it), also for the ticket in which they wait, which keeps its place.

        Raises UnknownNameError for an unknown ladder, ConflictError for a player who has not played there nor waits,
        InputError for a party that could play nowhere with it and for an attribute, a value or a map that no queue of
        the ladder declares.
        """
        check_text("player name", player)
        with self.service.database.write(share_names=True) as store:
            head = store.head(ladder)
            change_locks.lock(store, head.ladder)
            touched = kept_filters.change(store, head, player, chosen)
            self.service.note(store)
            self.notifier.announce(store, ladder, touched)
        self.notifier.ring(ladder, touched)

    def penalties(self, ladder: str, player: str) -> Penalty | None:
        """A player's strikes on a ladder; None: none, also for an unknown name."""
        with self.service.database.read() as store:
            return penalty_of(store, store.head(ladder).ladder, player, self.service.clock())

    def forgive(self, ladder: str, player: str) -> bool:
        """Delete a player's strikes; return whether there were any: not for an unknown name."""
        with self.service.database.write() as store:
            number = store.head(ladder).ladder
            change_locks.lock(store, number)
            ids = player_identities.ids_of(store, [player])
            had = player in ids and penalties.delete(store, number, ids[player])
            if had:
                self.service.note(store)
            return had

    # state in memory, and notifications

    def queue_state(self, ladder: str) -> QueueState:
        """The copy of a ladder's queues in this process's memory. Raises UnknownNameError for an unknown ladder."""
        with self._guard:
            known = self._states.get(ladder)
        if known is not None:
            return known
        number = self.levels.of(ladder).ladder
        with self._guard:
            return self._states.setdefault(ladder, QueueState(self.service.database, number, ladder))

    def counts(self, ladder: str) -> dict[str, Counts]:
        """Counts of waiting tickets and players, by queue."""
        return self.queue_state(ladder).counts(self.service.clock())

    def last_change(self, ladder: str) -> int:
        """The last change number of a ladder's tickets, offers and live matches; 0: none yet."""
        with self.service.reading(ladder) as (store, head):
            return change_locks.last_change(store, head.ladder)

    def listen(self, listener: Listener) -> None:
        """Call `listener` with the ladder and the numbers of changed tickets; see notifications.TicketNotifier."""
        self.notifier.listen(listener)

    def hear(self, stop: threading.Event) -> None:
        """Receive notifications of other processes until `stop` is set; run it in its own thread (PostgreSQL only)."""
        self.notifier.hear(stop)


def lease_of(ladder: int) -> str:
    """The name of the lease for the matchmaker of a ladder (by its id)."""
    return f"matchmaker of ladder {ladder}"
