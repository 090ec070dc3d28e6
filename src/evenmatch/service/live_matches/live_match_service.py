"""Live matches: announced by a game server or created by a queue, tracked, and recorded in the ledger when closed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from evenmatch.errors import InputError, StoreError, UnknownNameError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import change_locks, events, live_matches, player_identities
from evenmatch.ledger.tables.live_matches import CLOSED, EXPIRED, OPEN, LiveMatchRow
from evenmatch.service.live_matches import closure, open_seats
from evenmatch.service.live_matches.announcement import announce
from evenmatch.service.live_matches.attendance import Ending, Presence, late_switchers, quitters
from evenmatch.service.live_matches.departures import move
from evenmatch.service.live_matches.expiries import Expiries
from evenmatch.service.live_matches.match_slots import check_on
from evenmatch.service.live_matches.match_status import MatchStatus, status_of, statuses_of
from evenmatch.service.recording.first_receipts import first_receipts
from evenmatch.service.recording.receipts import MatchReceipt
from evenmatch.service.service import Service
from evenmatch.service.settings import Settings

KEPT = 86_400_000_000  # microseconds that a finished match stays readable after its expiry time
EVERY = 2.0  # seconds between two searches for expired matches
PRUNE_EVERY = 60.0  # seconds

log = logging.getLogger(__name__)


class Running:
    """The live matches of all ladders. Safe to use from many threads and processes.

    Every change is durable when the call returns. Raises UnknownNameError for an unknown ladder or match, ConflictError
    for a request that contradicts the match's state.
    """

    def __init__(self, service: Service, clock: Callable[[], int] | None = None) -> None:
        self._service = service
        self._clock = service.clock if clock is None else clock
        self._expiries = Expiries(service.database)

    @contextmanager
    def _read(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        database = self._service.database
        with database.read() as store:
            yield store, store.head(ladder)

    @contextmanager
    def _write(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        """A write transaction that holds the ladder's change lock."""
        database = self._service.database
        with database.write() as store:
            head = store.head(ladder)
            change_locks.lock(store, head.ladder)
            yield store, head

    def announce(
        self,
        ladder: str,
        match_id: str,
        teams: Sequence[Sequence[str]],
        *,
        started_at: int | None = None,
        expires_in: float | None = None,
        queue: str | None = None,
        everywhere: bool = True,
    ) -> MatchStatus:
        """Begin a match, or confirm the start of one that a queue created; repeating the call changes nothing.

        started_at  microseconds since the epoch; None: now, or the creation time of a match that a queue created
        expires_in  seconds from its start until it expires unless closed; None: the queue's longest_match
        queue       the queue whose rules penalize players who leave; None: no penalties
        everywhere  False: the caller is limited to some ladders, so the players cannot queue on this ladder alone
        Raises RateLimitError if the ladder has too many live matches for another one.
        """
        with self._write(ladder) as (store, head):
            limits = self._service.match_limits.on(ladder, Settings.read(head.settings))
            limits.check(f"match {match_id!r}", len(teams), sum(map(len, teams)))
            now = self._clock()
            most = self._service.match_limits.running
            start = (started_at, expires_in, queue)
            match = announce(store, head, match_id, teams, *start, now, everywhere=everywhere, most=most)
            return status_of(store, ladder, match)

    def leaves(
        self, ladder: str, match_id: str, presences: Sequence[Presence], *, everywhere: bool = True
    ) -> MatchStatus:
        """Record players who left or joined, in order, all or nothing; repeating the call changes nothing.

        A player who leaves may queue again, with a strike if a queue created the match; returning removes the strike.

        everywhere  as in `announce`
        """
        with self._write(ladder) as (store, head):
            match = _find(store, head, match_id)
            match = move(store, head, match, presences, self._clock(), everywhere=everywhere)
            limits = self._service.match_limits.on(ladder, Settings.read(head.settings))
            limits.check(f"match {match_id!r}", len(match.body["teams"]), len(match.slots()))
            return status_of(store, ladder, match)

    def openings(
        self,
        ladder: str,
        match_id: str,
        queue: str | None = None,
        seats: Sequence[int] | None = None,
        *,
        everywhere: bool = True,
    ) -> MatchStatus:
        """Ask a queue to fill `seats` open slots for each team; None: withdraw. queue None: the match's own.

        everywhere  False: the caller is limited to some ladders, so the match may not outlast the queue's longest_match
        """
        with self._write(ladder) as (store, head):
            match = _find(store, head, match_id)
            limited_at = None if everywhere else self._clock()
            openings = open_seats.request_backfill(store, head, match, queue, seats, limited_at)
            if openings != match.openings:
                check_on(match)
                match = match._replace(openings=openings, change=change_locks.advance(store, head.ladder, 1))
                live_matches.put(store, head.ladder, match)
            return status_of(store, ladder, match)

    def close(self, ladder: str, match_id: str, ending: Ending) -> MatchReceipt:
        """End a match and record it under its id; return its receipt. Repeating the call returns the first receipt.

        Each player's seconds are their attendance; a player who had joined but was absent at the end counts as a
        quitter. Raises what Service.record raises; after an InputError the match goes on as before.
        """
        with self._write(ladder) as (store, head):
            match = _find(store, head, match_id)
            if closure.was_closed_so(match, ending):
                return first_receipts(store, head, [match_id])[match_id]
            finished, noted = closure.begin_close(store, head, match, ending, self._clock())
        try:
            receipt = self._service.record(finished, rated=ending.rated)
        except InputError:
            with self._write(ladder) as (store, head):
                closure.reopen(store, head, match_id, ending)
            raise
        with self._write(ladder) as (store, head):
            window = Settings.read(head.settings).switch_window
            late = late_switchers(match, finished, window, noted["ended_at"]) if window else set()
            quitter_ids = {match_id: quitters(match, noted["ended_at"]) | late}
            closure.settle(store, head, quitter_ids, {match_id: noted}, self._clock())
        return receipt

    def settle_reported(
        self, ladder: str, match_ids: Sequence[str], quitters: Mapping[str, Iterable[str]]
    ) -> list[str]:
        """Close the live matches among these, which were reported as finished matches; return their ids.

        quitters  by match: the names of the players who quit and get a strike
        """
        with self._read(ladder) as (store, head):
            live = live_matches.ids_of_open(store, head.ladder, match_ids)
            if not live:
                return []
            names = {name for match_id in live for name in quitters.get(match_id, ())}
            ids = player_identities.ids_of(store, sorted(names))
        quitter_ids = {match_id: {ids[name] for name in quitters.get(match_id, ()) if name in ids} for match_id in live}
        with self._write(ladder) as (store, head):
            return closure.settle(store, head, quitter_ids, {}, self._clock())

    def cancel(self, ladder: str, match_id: str, reason: str | None = None) -> MatchStatus:
        """End a match without rating it and remove its strikes; cancelling twice changes nothing."""
        with self._write(ladder) as (store, head):
            match = closure.cancel(store, head, _find(store, head, match_id), reason)
            return status_of(store, ladder, match)

    def status(self, ladder: str, match_id: str) -> MatchStatus:
        """A match that is live or ended recently (about a day)."""
        with self._read(ladder) as (store, head):
            return status_of(store, ladder, _find(store, head, match_id))

    def on(self, ladder: str) -> list[MatchStatus]:
        """The live matches, the latest change last."""
        with self._read(ladder) as (store, head):
            return statuses_of(store, ladder, live_matches.read_open(store, head.ladder))

    def count(self, ladder: str) -> int:
        """The number of live matches."""
        with self._read(ladder) as (store, head):
            return live_matches.count_open(store, head.ladder)

    def expire(self, ladder: str, now: int | None = None) -> list[str]:
        """End overdue matches without rating them and free their players; return their ids."""
        time = self._clock() if now is None else now
        with self._read(ladder) as (_, head):
            number = head.ladder
        due = self._expiries.due(number, time)
        if not due:
            return []
        expired = []
        with self._write(ladder) as (store, head):
            recorded = events.find(store, head, due)  # already in the ledger, although the live match was not closed
            for match in live_matches.read(store, head.ladder, due).values():
                if match.state == OPEN and match.expires_at <= time:
                    closure.end(store, head, match, CLOSED if match.match_id in recorded else EXPIRED)
                    expired += [match.match_id] if match.match_id not in recorded else []
        return sorted(expired)

    def prune(self, ladder: str) -> int:
        """Delete matches that ended long ago; return their number."""
        count = 0
        while True:
            with self._write(ladder) as (store, head):
                deleted = live_matches.delete_older_than(store, head.ladder, self._clock() - KEPT)
            count += deleted
            if not deleted:
                return count

    def run(self, stop: threading.Event) -> None:
        """Expire and prune matches of all ladders until `stop` is set. Safe to run in many processes."""
        rounds = round(PRUNE_EVERY / EVERY)
        count = 0
        while not stop.wait(EVERY):
            try:
                for ladder in self._ladders():
                    self.expire(ladder)
                    if count % rounds == 0:
                        self.prune(ladder)
            except StoreError as error:
                log.warning("expiring live matches failed and will be tried again: %s", error)
            count += 1

    def _ladders(self) -> list[str]:
        database = self._service.database
        with database.read() as store:
            return change_locks.read_ladders(store)


def _find(store: Store, head: Head, match_id: str) -> LiveMatchRow:
    match = live_matches.read(store, head.ladder, [match_id]).get(match_id)
    if match is None:
        raise UnknownNameError(f"live match of ladder {head.name!r}", match_id, [])
    return match
