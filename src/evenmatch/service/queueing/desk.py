"""The desk of a service's queues: who comes, goes and answers, many at a time; and what each is told."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from evenmatch.errors import EvenmatchError, StoreError, UnknownNameError
from evenmatch.ledger import people
from evenmatch.ledger.store import Store
from evenmatch.service.callers.deeds import Deed
from evenmatch.service.queueing import penalties, queue_rules, queue_setting, recently, statuses, tickets
from evenmatch.service.queueing.answers import answer
from evenmatch.service.queueing.bell import Bell, Listener
from evenmatch.service.queueing.joins import Joins, Outcome, Seat, check_queues, seats
from evenmatch.service.queueing.leases import Leases
from evenmatch.service.queueing.levels import LevelBook, Levels
from evenmatch.service.queueing.lines import advance
from evenmatch.service.queueing.mirror import Counts, Mirror
from evenmatch.service.queueing.parties import check
from evenmatch.service.queueing.penalties import Penalty
from evenmatch.service.queueing.queue_rules import QueueRules, QueueSetup
from evenmatch.service.queueing.recently import Recent
from evenmatch.service.queueing.statuses import Status
from evenmatch.service.queueing.turns import Turn
from evenmatch.service.queueing.wishes import Answer, Join, Wish
from evenmatch.service.service import Service


class Desk:
    """The queues of a service's ladders. Any number of threads may share one; the database is the truth.

    Raises StoreError wherever the database fails: what was not acknowledged can be sent again.
    """

    def __init__(self, service: Service, loaded: threading.Event | None = None) -> None:
        """`loaded`: set once the kernels of the matchmaker are loaded; None: whatever needs them loads them."""
        self.service, self.bell, self.loaded = service, Bell(service.database), loaded
        self.levels = LevelBook(service)
        self.leases = Leases(service.database, f"process {secrets.token_hex(8)}", wall=service.clock)
        self._mirrors: dict[str, Mirror] = {}
        self._seen: dict[str, set[int]] = {}
        self._guard = threading.Lock()

    def noting(self, deed: Deed) -> Desk:
        """The same; what is changed by it is noted in the audit trail, in the same transaction."""
        other = copy(self)
        other.service = self.service.noting(deed)
        return other

    # queues

    def set_queue(
        self, ladder: str, name: str, policy: Mapping[str, object], rules: QueueRules | None = None
    ) -> QueueSetup:
        """Make a queue, or replace it; who waits there goes on waiting.

        policy  as Policy.from_data reads it; team_size is the ladder's where it names none
        """
        levels = self.levels.of(ladder)
        with self.service.database.write() as connection:
            store = Store(connection, self.service.database.rows)
            made = queue_setting.set_queue(store, levels, name, policy, rules)
            self.service.note(store)
            return made

    def remove_queue(self, ladder: str, name: str, *, force: bool = False) -> int:
        """Remove a queue; how many tickets are gone with it. ConflictError where some are there and `force` is False.

        Raises UnknownNameError where there is none of that name.
        """
        number = self.levels.of(ladder).ladder
        with self.service.database.write() as connection:
            store = Store(connection, self.service.database.rows)
            removed = queue_setting.remove_queue(store, number, name, force=force, now=self.service.clock())
            self.service.note(store)
            self.bell.announce(store, ladder, removed.touched)
        self.bell.ring(ladder, removed.touched)
        return removed.gone

    def queues(self, ladder: str) -> list[QueueSetup]:
        """The queues of a ladder, by name."""
        with self.service.database.read() as connection:
            store = Store(connection, self.service.database.rows)
            return list(queue_rules.read(store, store.head(ladder).ladder).values())

    def queue(self, ladder: str, name: str) -> QueueSetup:
        """A queue of a ladder. Raises UnknownNameError."""
        return queue_rules.find({one.name: one for one in self.queues(ladder)}, name)

    def recent(self, ladder: str, limit: int) -> list[Recent]:
        """The matches that the queues of a ladder offered last, the latest first, at most so many."""
        with self.service.database.read() as connection:
            store = Store(connection, self.service.database.rows)
            return recently.recent(store, store.head(ladder).ladder, limit)

    # players

    def do(self, ladder: str, wishes: Sequence[Wish]) -> list[Outcome]:
        """Do what these wishes say, in one transaction; of each what it led to, or the error why it was refused.

        Answers go first, then those who join. Raises UnknownNameError where there is no such ladder.
        """
        if not wishes:
            return []
        levels = self.levels.of(ladder)
        refused = _refused(wishes)
        try:
            outcomes, touched = self._do(ladder, levels, wishes, dict(refused))
        except StoreError as error:
            if "deadlock" not in str(error):  # with a player who goes from one ladder to another
                raise
            outcomes, touched = self._do(ladder, levels, wishes, dict(refused))
        self.bell.ring(ladder, touched)
        return outcomes

    def _do(
        self, ladder: str, levels: Levels, wishes: Sequence[Wish], outcomes: dict[int, Outcome]
    ) -> tuple[list[Outcome], list[int]]:
        """Do it once; `outcomes` holds what was refused before, by place."""
        joining = {at: one for at, one in enumerate(wishes) if isinstance(one, Join) and at not in outcomes}
        answering = {at: one for at, one in enumerate(wishes) if not isinstance(one, Join)}
        with self.service.database.write() as connection:
            store = Store(connection, self.service.database.rows)
            if joining:
                store.rows.share_names(connection)
            first = advance(store, levels.ladder, len(wishes))
            now = self.service.clock()
            setups = queue_rules.read(store, levels.ladder)
            turn = Turn(store, levels.ladder, setups, now, first, len(wishes))
            self._answer(turn, answering, outcomes)
            self._join(turn, levels, joining, outcomes)
            touched = sorted(turn.touched)
            self.bell.announce(store, ladder, touched)
        return [outcomes[at] for at in range(len(wishes))], touched

    @staticmethod
    def _answer(turn: Turn, wishes: Mapping[int, Answer], outcomes: dict[int, Outcome]) -> None:
        if not wishes:
            return
        turn.read([one.ticket for one in wishes.values()])
        ids = people.ids_of(turn.store, sorted({one.player for one in wishes.values() if one.player is not None}))
        for at, wish in wishes.items():
            try:
                outcomes[at] = answer(turn, wish, ids)
            except EvenmatchError as error:
                outcomes[at] = error
        turn.keep()

    @staticmethod
    def _join(turn: Turn, levels: Levels, wishes: Mapping[int, Join], outcomes: dict[int, Outcome]) -> None:
        granted: dict[int, Join] = {}
        for at, wish in wishes.items():
            try:
                levels.view.settings.check_open(levels.view.head.name)
                check_queues(wish, turn.setups)
            except EvenmatchError as error:
                outcomes[at] = error
            else:
                granted[turn.first + at] = wish
        if granted:
            ids = people.admit(turn.store, _names(granted.values()))[0]
            joined = Joins(turn.store, levels, ids, turn.now).join(granted)
            outcomes |= {number - turn.first: told for number, told in joined.items()}

    def statuses(self, ladder: str, numbers: Sequence[int], *, why: bool = True) -> dict[int, Status]:
        """Those of these tickets that there are, by number; asking is a sign of life of each.

        why  with what each waits for
        """
        now = self.service.clock()
        lease = lease_of(self.levels.of(ladder).ladder)
        until = None if self.leases.is_held(lease) else self.leases.watch(lease).held_at or 0
        with self.service.database.read() as connection:
            store = Store(connection, self.service.database.rows)
            found = statuses.read(store, store.head(ladder).ladder, numbers, now, until)
        waiting = {one.ticket: one.change for one in found.values() if one.state == tickets.WAITING}
        for one in found.values():
            if one.waited is not None:
                self.seen(ladder, one.ticket)
        if why and waiting and until is None and self._is_loaded():
            told = self.mirror(ladder).why(waiting, now)
            found |= {number: replace(found[number], waiting=one) for number, one in told.items()}
        return found

    def is_matching(self, ladder: str) -> bool:
        """Whether a process makes the matches of a ladder now; False while the matchmaker starts."""
        return self.leases.is_held(lease_of(self.levels.of(ladder).ladder))

    def _is_loaded(self) -> bool:
        return self.loaded is None or self.loaded.is_set()

    def status(self, ladder: str, ticket: int, *, why: bool = True) -> Status:
        """A ticket now. Raises UnknownNameError where there is none of this number, or it was long ago."""
        found = self.statuses(ladder, [ticket], why=why)
        if ticket not in found:
            raise UnknownNameError("ticket", str(ticket), ())
        return found[ticket]

    def seat(self, ladder: str, player: str) -> Seat | None:
        """Where a player waits or plays on a ladder; None: nowhere. Raises UnknownNameError for a player."""
        with self.service.database.read() as connection:
            store = Store(connection, self.service.database.rows)
            number, who = store.head(ladder).ladder, people.find(store, player)
            found = seats(store, [who]).get(who)
            return found if found is not None and found.ladder == number else None

    def seen(self, ladder: str, ticket: int) -> None:
        """Note a sign of life, to be written with others."""
        with self._guard:
            self._seen.setdefault(ladder, set()).add(ticket)

    def flush_seen(self) -> None:
        """Write the signs of life noted since, as of now."""
        with self._guard:
            noted, self._seen = self._seen, {}
        for ladder, numbers in noted.items():
            with self.service.database.write() as connection:
                store = Store(connection, self.service.database.rows)
                number = store.head(ladder).ladder
                advance(store, number, 0)
                tickets.note_seen(store, number, sorted(numbers), self.service.clock())

    def penalties(self, ladder: str, player: str) -> Penalty | None:
        """A player's strikes, as they have faded by the ladder's slowest queue; None: they have none."""
        with self.service.database.read() as connection:
            store = Store(connection, self.service.database.rows)
            number = store.head(ladder).ladder
            rules = [one.rules for one in queue_rules.read(store, number).values()] or [QueueRules()]
            slowest = max(rules, key=lambda one: one.penalty_fades)
            return penalties.of(store, number, people.find(store, player), self.service.clock(), slowest)

    def forgive(self, ladder: str, player: str) -> bool:
        """Forget a player's strikes; whether there were any."""
        with self.service.database.write() as connection:
            store = Store(connection, self.service.database.rows)
            number = store.head(ladder).ladder
            advance(store, number, 0)
            had = penalties.forgive(store, number, people.find(store, player))
            self.service.note(store)
            return had

    # who follows

    def mirror(self, ladder: str) -> Mirror:
        """The queues of a ladder as this process follows them. Raises UnknownNameError where there is none."""
        with self._guard:
            known = self._mirrors.get(ladder)
        if known is not None:
            return known
        number = self.levels.of(ladder).ladder
        with self._guard:
            return self._mirrors.setdefault(ladder, Mirror(self.service.database, number))

    def counts(self, ladder: str) -> dict[str, Counts]:
        """Who waits, by queue."""
        return self.mirror(ladder).counts(self.service.clock())

    def listen(self, listener: Listener) -> None:
        """Call this with the ladder and the numbers of tickets after each change of theirs; see bell.Bell."""
        self.bell.listen(listener)

    def hear(self, stop: threading.Event) -> None:
        """Hear of changes by other processes until `stop`: for a thread of its own. SQLite tells nothing."""
        self.bell.hear(stop)


def lease_of(ladder: int) -> str:
    """The lease of whoever makes the matches of a ladder (by number)."""
    return f"matchmaker of ladder {ladder}"


def _refused(wishes: Sequence[Wish]) -> dict[int, Outcome]:
    """Which wishes no ladder could grant, by place."""
    found: dict[int, Outcome] = {}
    for at, wish in enumerate(wishes):
        if isinstance(wish, Join):
            try:
                check(wish)
            except EvenmatchError as error:
                found[at] = error
    return found


def _names(wishes: Iterable[Join]) -> set[str]:
    """Everybody whom these wishes name."""
    return {name for wish in wishes for one in wish.members for name in (one.name, *one.avoid)}
