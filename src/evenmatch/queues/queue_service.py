"""The queue service: joins, leaves and answers in batches, heartbeats, notifications, and ticket status."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.errors import ConflictError, EvenmatchError, ForbiddenError, InputError, StoreError, UnknownNameError
from evenmatch.experiment import ExperimentDesign
from evenmatch.ledger import ladder_rows, player_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_text
from evenmatch.live.live_sql import StoredConnection
from evenmatch.live.slots import seat_on
from evenmatch.operations.service import Service
from evenmatch.players.odds import stakes_by_id
from evenmatch.policy import Policy
from evenmatch.queues import audit, endings, kept_filters, queue_sql, stored_queues, ticket_status
from evenmatch.queues.audit import RecentOffer
from evenmatch.queues.changes import QueueChanges
from evenmatch.queues.joins import Outcome, admit
from evenmatch.queues.leases import Leases
from evenmatch.queues.parties import JoinProfiles, LevelBook, QueueFilter, check
from evenmatch.queues.playlists import with_locks
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_sql import OfferRow, Seat, TicketRow
from evenmatch.queues.requests import Accept, Decline, Join, Leave, QueueRequest, RequestResult, TicketAnswer
from evenmatch.queues.state import Counts, QueueState
from evenmatch.queues.stored_queues import Penalty, QueueExperiment, QueueSetup, penalty_of, second_policy
from evenmatch.queues.ticket_notifier import TicketNotifier
from evenmatch.queues.ticket_status import Status
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import PlayerStakes


def answer(changes: QueueChanges, request: TicketAnswer, ids: Mapping[str, int]) -> RequestResult:
    """Apply an answer to a ticket that `changes` has read. Repeating an answer changes nothing.

    ids  player ids by name
    Raises UnknownNameError, InputError, ForbiddenError or ConflictError, changing nothing, if that is impossible.
    """
    row = changes.tickets.get(request.ticket)
    if row is None:
        raise UnknownNameError("ticket", str(request.ticket), ())
    players = _answering_player(row, request, ids)
    if isinstance(request, Leave):
        _leave(changes, row, players)
    elif isinstance(request, Accept):
        _accept(changes, row, players, request)
    else:
        _decline(changes, row, players, request)
    return RequestResult(row.ticket, row.change, row.state, row.offer, row.match_id)


def _answering_player(row: TicketRow, request: TicketAnswer, ids: Mapping[str, int]) -> set[int] | None:
    """The id of the player who answers; None: the answer is for the whole party."""
    player = request.player
    if player is None:
        return None
    if ids.get(player) not in row.party.players:
        if request.only_own:
            raise of_another_party(row.ticket, player)
        raise InputError(
            f"player {player!r} is not in ticket {row.ticket}; its players are {', '.join(map(repr, row.party.names))}"
        )
    return {ids[player]}


def of_another_party(ticket: int, player: str) -> ForbiddenError:
    """The error for the token of a player who is not in a ticket. It names none of the ticket's players."""
    return ForbiddenError(f"ticket {ticket} belongs to another party; this token is only for {player!r}")


def _leave(changes: QueueChanges, row: TicketRow, players: set[int] | None) -> None:
    if row.state == queue_sql.GONE:
        return
    _refuse_matched(row)
    _refuse_elsewhere(row)
    if row.state == queue_sql.WAITING:
        changes.leave(row, set(), endings.LEFT)
    else:
        struck = players or _without_answer(changes, row)
        changes.leave(row, struck, endings.LEFT_OFFER.format(players=_names(row, struck)))


def _accept(changes: QueueChanges, row: TicketRow, players: set[int] | None, request: Accept) -> None:
    if row.state == queue_sql.MATCHED:
        return
    if row.state == queue_sql.GONE:
        raise ConflictError(f"ticket {row.ticket} has ended ({row.ended}); there is no offer to accept")
    _check_offer(row, request)
    changes.accept(row, players or set(row.party.players))


def _decline(changes: QueueChanges, row: TicketRow, players: set[int] | None, request: Decline) -> None:
    if row.state == queue_sql.GONE:
        return
    _refuse_matched(row)
    _check_offer(row, request)
    struck = players or _without_answer(changes, row)
    changes.leave(row, struck, endings.DECLINED.format(players=_names(row, struck)))


def _refuse_matched(row: TicketRow) -> None:
    if row.state == queue_sql.MATCHED:
        raise ConflictError(f"ticket {row.ticket} already has its match, {row.match_id!r}")


def _refuse_elsewhere(row: TicketRow) -> None:
    if row.state == queue_sql.ELSEWHERE:
        raise ConflictError(
            f"the party of ticket {row.ticket} has an offer on another ladder of its playlist; answer it there"
        )


def _check_offer(row: TicketRow, request: Accept | Decline) -> None:
    """Raise ConflictError unless the ticket has an offer, and the one that the answer names, if it names one."""
    _refuse_elsewhere(row)
    if row.state != queue_sql.OFFERED:
        off = "" if request.offer is None else f": offer {request.offer} was cancelled"
        raise ConflictError(f"ticket {row.ticket} is waiting and has no open offer{off}")
    if request.offer not in (None, row.offer):
        raise ConflictError(f"ticket {row.ticket} has offer {row.offer}, not {request.offer}; answer offer {row.offer}")


def _without_answer(changes: QueueChanges, row: TicketRow) -> set[int]:
    """The players of an offered ticket who have not accepted, or all players if everyone has."""
    assert row.offer is not None
    players = set(row.party.players)
    return players - changes.offers[row.offer].said or players


def _names(row: TicketRow, players: set[int]) -> str:
    return ", ".join(member["name"] for member in row.party.members if member["id"] in players)


OFFERS_IN_MEMORY = 4096
ByTicket = Mapping[int, Mapping[str, PlayerStakes]]


class OfferStakes:
    """The stakes of offers, computed when a ticket of the offer is first read. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], ByTicket] = OrderedDict()
        self._guard = threading.Lock()

    def add(self, store: Store, head: Head, statuses: Mapping[int, Status], now: int) -> dict[int, Status]:
        """These tickets by number, with their players' stakes in offered matches. now: microseconds."""
        offered = {status.offer.offer for status in statuses.values() if status.offer is not None}
        if not offered:
            return dict(statuses)
        with self._guard:
            missing = [offer for offer in sorted(offered) if (head.ladder, offer) not in self._known]
        computed = {
            (head.ladder, number): _by_ticket(store, head, row, now)
            for number, row in queue_sql.read_offers(store, head.ladder, missing).items()
        }
        with self._guard:
            self._known.update(computed)
            while len(self._known) > OFFERS_IN_MEMORY:
                self._known.popitem(last=False)
            known = {offer: self._known.get((head.ladder, offer), {}) for offer in offered}
        return {
            number: status
            if status.offer is None
            else replace(status, offer=replace(status.offer, stakes=known[status.offer.offer].get(number, {})))
            for number, status in statuses.items()
        }


def _by_ticket(store: Store, head: Head, offer: OfferRow, now: int) -> ByTicket:
    """The stakes by ticket and name. Empty for an offer of open slots, or a line-up that cannot be rated."""
    if offer.body["match"] is not None:
        return {}
    teams: Sequence[Sequence[int]] = [[slot["id"] for slot in team] for team in offer.body["teams"]]
    try:
        stakes = stakes_by_id(store, head, now, teams, StakeAssumptions())
    except InputError:  # too many players, or a line-up that the system cannot rate
        return {}
    tickets: dict[int, dict[str, PlayerStakes]] = {}
    for slot in offer.chairs:
        tickets.setdefault(slot["ticket"], {})[slot["player"]] = stakes[slot["id"]]
    return tickets


logger = logging.getLogger(__name__)

WRITE_EVERY = 5.0  # seconds
GRACE = WRITE_EVERY + 1  # seconds until a heartbeat that was given in time has been written


class Heartbeats:
    """The heartbeats of requests to this process since the last write. Thread-safe."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._noted: dict[str, set[int]] = {}  # tickets by ladder
        self._guard = threading.Lock()

    def note(self, ladder: str, status: Status) -> None:
        """Note a heartbeat of a ticket's party, on all ladders where it waits."""
        if status.waited is None:
            return
        with self._guard:
            self._noted.setdefault(ladder, set()).add(status.ticket)
            for entry in status.playlist:
                self._noted.setdefault(entry.ladder, set()).add(entry.ticket)

    def write(self) -> None:
        """Write the heartbeats noted since the last call, with the present time.

        Raises StoreError if a ladder cannot be written. The next call writes its heartbeats.
        """
        with self._guard:
            noted, self._noted = self._noted, {}
        failure: StoreError | None = None
        for ladder, numbers in noted.items():
            try:
                with self._database.write() as store:
                    number = store.head(ladder).ladder
                    ladder_rows.lock_changes(store, number)
                    queue_sql.set_heartbeats(store, number, sorted(numbers), self._clock())
            except StoreError as error:
                failure = error
                with self._guard:
                    self._noted.setdefault(ladder, set()).update(numbers)
        if failure is not None:
            raise failure

    def run(self, stop: threading.Event) -> None:
        """Write every five seconds until `stop` is set, and once more at the end.

        Required in every process that answers requests, whether or not it runs matchmakers.
        """
        is_last = False
        while not is_last:
            is_last = stop.wait(WRITE_EVERY)
            try:
                self.write()
            except EvenmatchError as error:
                logger.warning("heartbeats of tickets cannot be written: %s", error)


NOTHING_KNOWN: Mapping[int, int] = {}


class QueueService:
    """The queues of a service's ladders. Thread-safe. All state that matters is in the database.

    Every method may raise StoreError when the database fails. Requests without an answer can be repeated.
    """

    def __init__(self, service: Service, loaded: threading.Event | None = None) -> None:
        """loaded: an event that is set when the matchmaker's kernels are loaded; None: they are loaded on use."""
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
        """Create a queue, or replace its policy and rules and keep its tickets.

        policy  as for Policy.from_data; team_size defaults to that of the ladder
        """
        stored_queues.check_name(name)
        levels = self.levels.of(ladder)
        with self.service.database.write() as store:
            change = ladder_rows.reserve_changes(store, levels.ladder, 1)
            before = stored_queues.read(store, levels.ladder).get(name)
            given, chosen = stored_queues.with_auto(policy, QueueRules() if rules is None else rules, before)
            parsed = stored_queues.policy_of(given, levels.view.settings.team_size)
            setup = QueueSetup(name, change, parsed, chosen)
            if before is not None:
                setup = setup._replace(experiment=before.experiment, paused=before.paused)
            if setup.experiment is not None and parsed != setup.experiment.first:
                raise setup.experiment.refusal("stop the experiment before you change the policy")
            stored_queues.check_map_choice(store, ladder, parsed)
            stored_queues.put(store, levels.ladder, setup)
            self.service.note(store)
            return setup

    def check_policy(self, ladder: str, policy: Policy) -> None:
        """Raise BadParameterError if the ladder's queues cannot have this policy."""
        with self.service.database.read() as store:
            stored_queues.check_map_choice(store, ladder, policy)

    def pause_queue(self, ladder: str, name: str, message: str | None) -> QueueSetup:
        """Pause a queue with a message to players, which may be empty; None: resume it.

        A paused queue refuses joins and makes no offers. Its tickets keep waiting, and open offers can be accepted.
        Raises UnknownNameError for an unknown queue.
        """
        paused = None if message is None else stored_queues.check_message(message)
        number = self.levels.of(ladder).ladder
        with self.service.database.write() as store:
            change = ladder_rows.reserve_changes(store, number, 1)
            setup = stored_queues.find(stored_queues.read(store, number), name)
            setup = setup._replace(change=change, paused=paused)
            stored_queues.put(store, number, setup)
            self.service.note(store)
            return setup

    def start_experiment(
        self, ladder: str, name: str, policy: Mapping[str, object], design: Mapping[str, object]
    ) -> QueueExperiment:
        """Let a second policy share a queue with its own. A repeated request returns the running experiment.

        policy  as for Policy.from_data; team sizes and roles default to those of the queue
        design  options of ExperimentDesign
        Raises UnknownNameError for an unknown queue, ConflictError if the queue runs another experiment.
        """
        number = self.levels.of(ladder).ladder
        with self.service.database.write() as store:
            change = ladder_rows.reserve_changes(store, number, 1)
            setup = stored_queues.find(stored_queues.read(store, number), name)
            second, made = second_policy(policy, setup.policy), ExperimentDesign.from_data(design)
            experiment = QueueExperiment(change, name, self.service.clock(), None, made, setup.policy, second)
            if (running := setup.experiment) is not None:
                if (second, made) != (running.second, running.design):
                    raise running.refusal("stop it before you start another")
                experiment = running  # the request was repeated
            else:
                stored_queues.check_map_choice(store, ladder, second)
                queue_sql.insert_experiment(store, number, experiment.stored)
                stored_queues.put(store, number, setup._replace(change=change))
            self.service.note(store)
            return experiment

    def stop_experiment(self, ladder: str, name: str) -> QueueExperiment:
        """Stop the experiment of a queue. From then on its own policy decides alone; the audit still compares both.

        A repeated request returns the experiment that was stopped last. Raises UnknownNameError for an unknown queue,
        ConflictError if it never had an experiment.
        """
        number, now = self.levels.of(ladder).ladder, self.service.clock()
        with self.service.database.write() as store:
            change = ladder_rows.reserve_changes(store, number, 1)
            setup = stored_queues.find(stored_queues.read(store, number), name)
            if setup.experiment is None:  # the request may be repeated
                earlier = queue_sql.read_experiments(store, number, name, 0, now)
                if not earlier:
                    raise ConflictError(f"queue {name!r} runs no experiment")
                stopped = QueueExperiment.of(earlier[0])
            else:
                queue_sql.stop_experiment(store, number, name, now)
                stored_queues.put(store, number, setup._replace(change=change))
                stopped = setup.experiment._replace(stopped_at=now)
            self.service.note(store)
            return stopped

    def remove_queue(self, ladder: str, name: str, *, force: bool = False) -> int:
        """Remove a queue with its tickets and return their number.

        Raises UnknownNameError for an unknown queue, ConflictError if there are tickets, unless `force` is set.
        """
        number = self.levels.of(ladder).ladder

        def remove(counts: Mapping[int, int]) -> tuple[int, dict[str, list[int]]]:
            with self.service.database.write() as store:
                changes = QueueChanges(store, number, self.service.clock(), counts)
                gone = _remove_queue(changes, name, force=force)
                self.service.note(store)
                return gone, self.notifier.announce_changed(store, ladder, changes.touched)

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
            return [(name, queue) for _, name, queue, _ in queue_sql.read_all_queues(store) if name != ladder]

    def recent(self, ladder: str, limit: int) -> list[RecentOffer]:
        """The latest offers of a ladder's queues, newest first, at most `limit`."""
        with self.service.database.read() as store:
            return audit.recent(store, store.head(ladder).ladder, limit)

    # players

    def apply(self, ladder: str, requests: Sequence[QueueRequest]) -> list[Outcome]:
        """Carry out requests in one transaction. Returns the result of each, or the error that refuses it.

        Answers are processed first, then joins. Raises UnknownNameError for an unknown ladder.
        """
        if not requests:
            return []
        profiles = {ladder: self.levels.of(ladder)}
        refused: dict[int, Outcome] = {}
        counts = {profiles[ladder].ladder: len(requests)}
        for index, request in enumerate(requests):
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
            return self._apply(ladder, profiles, requests, dict(refused), locks)

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
        """Try once. Returns the outcomes, and the changed tickets by ladder.

        outcomes  of the requests already refused, by index;  counts  see QueueChanges
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
        ids = player_rows.ids_of(changes.store, sorted(names))
        for index, request in answers.items():
            try:
                outcomes[index] = answer(changes, request, ids)
            except EvenmatchError as error:
                outcomes[index] = error
        changes.write()

    def allocate(self, ladder: str, offer: int, connection: StoredConnection) -> bool:
        """Begin the match of an offer that wants a game server, on this one. False: the offer no longer wants one."""
        number = self.levels.of(ladder).ladder

        def begin(counts: Mapping[int, int]) -> tuple[bool, dict[str, list[int]]]:
            with self.service.database.write() as store:
                changes = QueueChanges(store, number, self.service.clock(), counts)
                changes.read_offers([offer])
                row = changes.offers.get(offer)
                if row is None or row.state != queue_sql.ALLOCATING or row.deadline < changes.now:
                    return False, {}
                changes.complete(row, connection)
                changes.write()
                return True, self.notifier.announce_changed(store, ladder, changes.touched)

        has_begun, touched = with_locks({number: 1}, begin)
        self.notifier.ring_changed(touched)
        return has_begun

    def statuses(
        self, ladder: str, numbers: Sequence[int], since: Mapping[int, int] = NOTHING_KNOWN
    ) -> dict[int, Status]:
        """The status of the existing tickets among these, by number.

        Reading does not count as a heartbeat, because the reader may not be allowed to see a ticket: see `heartbeats`.

        since  change numbers by ticket; `waiting`, which is expensive, is left out for tickets that have not changed
        """
        now = self.service.clock()
        lease = lease_of(self.levels.of(ladder).ladder)
        until = None if self.leases.is_held(lease) else self.leases.watch(lease).held_at or 0
        with self.service.database.read() as store:
            head = store.head(ladder)
            statuses = ticket_status.read(store, head.ladder, numbers, now, until)
            statuses = self._offer_stakes.add(store, head, statuses, now)
            statuses = ticket_status.with_receipts(store, head, statuses)
            setups = stored_queues.read(store, head.ladder)
        changed = [status for status in statuses.values() if status.change > since.get(status.ticket, -1)]
        waiting = {status.ticket: status.change for status in changed if status.state == queue_sql.WAITING}
        if waiting and until is None and self._is_loaded():
            reasons = self.queue_state(ladder).why(waiting, now)
            statuses |= {number: replace(statuses[number], waiting=reason) for number, reason in reasons.items()}
        return {number: self._with_pauses(status, setups) for number, status in statuses.items()}

    @staticmethod
    def _with_pauses(status: Status, setups: Mapping[str, QueueSetup]) -> Status:
        """The status of a ticket, without a search in its queues that are paused."""
        if status.state != queue_sql.WAITING:
            return status
        known = {name: setups[name].paused for name in status.queues if name in setups}
        paused = {name: message for name, message in known.items() if message is not None}
        waiting = {name: entry for name, entry in status.waiting.items() if name not in paused}
        return replace(status, paused=paused, waiting=waiting) if paused else status

    def is_matching(self, ladder: str) -> bool:
        """Whether some process runs the matchmaker of a ladder. False while it starts."""
        return self.leases.is_held(lease_of(self.levels.of(ladder).ladder))

    def _is_loaded(self) -> bool:
        return self.loaded is None or self.loaded.is_set()

    def status(self, ladder: str, ticket: int) -> Status:
        """The status of a ticket. Raises UnknownNameError if it is unknown or has been deleted."""
        statuses = self.statuses(ladder, [ticket])
        if ticket not in statuses:
            raise UnknownNameError("ticket", str(ticket), ())
        return statuses[ticket]

    def member_name(self, ladder: str, ticket: int, player: str) -> str | None:
        """The name under which a player joined a ticket, by any name that the player has had since; None: not in it."""
        with self.service.database.read() as store:
            rows = queue_sql.read_tickets(store, store.head(ladder).ladder, [ticket])
            ids = player_rows.ids_of(store, [player])
        members = rows[ticket].party.members if ticket in rows else ()
        return next((member["name"] for member in members if member["id"] == ids.get(player)), None)

    def seat(self, ladder: str, player: str) -> Seat | None:
        """Where a player waits or plays on a ladder; None: nowhere, or an unknown name."""
        with self.service.database.read() as store:
            number, ids = store.head(ladder).ladder, player_rows.ids_of(store, [player])
            return seat_on(store, number, ids[player]) if player in ids else None

    def filter_of(self, ladder: str, player: str) -> QueueFilter | None:
        """A player's stored filter on a ladder; None: none. Raises UnknownNameError for an unknown ladder."""
        with self.service.database.read() as store:
            number, ids = store.head(ladder).ladder, player_rows.ids_of(store, [player])
            return kept_filters.read(store, number, list(ids.values())).get(ids.get(player, -1))

    def set_filter(self, ladder: str, player: str, chosen: QueueFilter | None) -> None:
        """Store a player's filter, or delete it if it is None, and apply it to the ticket in which the player waits.

        Raises UnknownNameError for an unknown ladder, ConflictError for a player who has neither played there nor
        waits there, and InputError for a party that could play nowhere with the filter or for an attribute, a value or
        a map that no queue of the ladder declares.
        """
        check_text("player name", player)
        with self.service.database.write(share_names=True) as store:
            head = store.head(ladder)
            ladder_rows.lock_changes(store, head.ladder)
            touched = kept_filters.change(store, head, player, chosen)
            self.service.note(store)
            self.notifier.announce(store, ladder, touched)
        self.notifier.ring(ladder, touched)

    def penalties(self, ladder: str, player: str) -> Penalty | None:
        """A player's strikes on a ladder; None: none, or an unknown name."""
        with self.service.database.read() as store:
            return penalty_of(store, store.head(ladder).ladder, player, self.service.clock())

    def forgive(self, ladder: str, player: str) -> bool:
        """Delete a player's strikes and return whether there were any. An unknown name has none."""
        with self.service.database.write() as store:
            number = store.head(ladder).ladder
            ladder_rows.lock_changes(store, number)
            ids = player_rows.ids_of(store, [player])
            had = player in ids and queue_sql.delete_penalty(store, number, ids[player])
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
            return ladder_rows.last_change(store, head.ladder)


def _remove_queue(changes: QueueChanges, name: str, *, force: bool) -> int:
    """Remove a queue with its tickets and offers, and return the number of tickets."""
    store, ladder = changes.store, changes.ladder
    stored_queues.find(changes.setups, name)
    open_tickets = [row for row in queue_sql.read_open_tickets(store, ladder) if name in row.party.queues]
    if open_tickets and not force:
        count = f"{len(open_tickets)} ticket{'s wait' if len(open_tickets) > 1 else ' waits'}"
        raise ConflictError(f"{count} in queue {name!r}; wait until it is empty, or force the removal")
    reason = endings.QUEUE_REMOVED.format(queue=repr(name))
    changes.read([row.ticket for row in open_tickets])
    for offer in list(changes.offers.values()):
        changes.cancel(offer, {row.ticket: reason for row in open_tickets})
    for row in open_tickets:
        if row.offer is None:
            changes.drop(row.ticket, row.party.players, reason)
    changes.write()
    queue_sql.delete_queue(store, ladder, name)
    queue_sql.stop_experiment(store, ladder, name, changes.now)
    return len(open_tickets)


def lease_of(ladder: int) -> str:
    """The name of the lease for the matchmaker of a ladder (by its id)."""
    return f"matchmaker of ladder {ladder}"
