"""Matches that are on: announced by a game server or made by a queue, followed, closed into the ledger."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from evenmatch.errors import InputError, StoreError, UnknownNameError
from evenmatch.ledger import people
from evenmatch.ledger.store import Head, Store
from evenmatch.service.playing import closing, live, openings
from evenmatch.service.playing.announcing import announce
from evenmatch.service.playing.expiries import Expiries
from evenmatch.service.playing.live import CLOSED, EXPIRED, OPEN, Live
from evenmatch.service.playing.moving import move
from evenmatch.service.playing.presence import Ending, Presence, quitters
from evenmatch.service.playing.status import MatchStatus, status_of
from evenmatch.service.queueing.lines import advance
from evenmatch.service.receipts import Receipt
from evenmatch.service.recording import first_receipts
from evenmatch.service.service import Service

KEPT = 86_400_000_000  # microseconds that a match which is over is remembered, from when it would have expired
EVERY = 2.0  # seconds between two looks for what has expired
PRUNE_EVERY = 60.0  # seconds

log = logging.getLogger(__name__)


class Running:
    """The running matches of all ladders. Any number of threads and processes may have one each.

    Every call is durable when it returns. Raises UnknownNameError for a ladder or match that is not known,
    ConflictError for what contradicts what is known of it.
    """

    def __init__(self, service: Service, clock: Callable[[], int] | None = None) -> None:
        self._service = service
        self._clock = service.clock if clock is None else clock
        self._expiries = Expiries(service.database)

    @contextmanager
    def _read(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        database = self._service.database
        with database.read() as connection:
            store = Store(connection, database.rows)
            yield store, store.head(ladder)

    @contextmanager
    def _write(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        """A ladder whose line is locked."""
        database = self._service.database
        with database.write() as connection:
            store = Store(connection, database.rows)
            head = store.head(ladder)
            live.lock(store, head.ladder)
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
    ) -> MatchStatus:
        """Begin a match, or confirm the start of one that a queue made; the same again changes nothing.

        started_at  microseconds since the epoch; None: now, or for a made match when it was made
        expires_in  seconds after its start until it expires if nobody closes it; None: as its queue says
        queue       by whose rules who leaves is struck; None: nobody is
        """
        with self._write(ladder) as (store, head):
            match = announce(store, head, match_id, teams, started_at, expires_in, queue, self._clock())
            return status_of(store, ladder, match)

    def leaves(self, ladder: str, match_id: str, told: Sequence[Presence]) -> MatchStatus:
        """Note who left and who came, in order; all or, where one is refused, nothing. The same again is harmless.

        Who leaves may queue again, after a strike if a queue made the match; the strike is taken back if they return.
        """
        with self._write(ladder) as (store, head):
            match = move(store, head, _known(store, head, match_id), told, self._clock())
            return status_of(store, ladder, match)

    def openings(
        self, ladder: str, match_id: str, queue: str | None = None, seats: Sequence[int] | None = None
    ) -> MatchStatus:
        """Wish for players from a queue: so many for each team; None: no longer. Queue None: the match's own."""
        with self._write(ladder) as (store, head):
            match = _known(store, head, match_id)
            wished = openings.wish(store, head, match, queue, seats)
            if wished != match.openings:
                live.check_on(match)
                match = match._replace(openings=wished, change=advance(store, head.ladder, 1))
                live.write(store, head.ladder, match)
            return status_of(store, ladder, match)

    def close(self, ladder: str, match_id: str, ending: Ending) -> Receipt:
        """End a match and record it under its id: its receipt; the same again gives the first receipt.

        The seconds of each player are those that they were there; who came and was gone at the end has quit. Raises
        what Service.record raises; where it is an InputError, the match is on as before.
        """
        with self._write(ladder) as (store, head):
            match = _known(store, head, match_id)
            if closing.was_closed_so(match, ending):
                return first_receipts(store, head, [match_id])[match_id]
            finished, noted = closing.begin_close(store, head, match, ending, self._clock())
        try:
            receipt = self._service.record(finished, rated=ending.rated)
        except InputError:
            with self._write(ladder) as (store, head):
                closing.reopen(store, head, match_id, ending)
            raise
        with self._write(ladder) as (store, head):
            gone = {match_id: quitters(match, noted["ended_at"])}
            closing.settle(store, head, gone, {match_id: noted}, self._clock())
        return receipt

    def settle_reported(
        self, ladder: str, match_ids: Sequence[str], quitters: Mapping[str, Iterable[str]]
    ) -> list[str]:
        """Close those of these matches that are on, since they were recorded as a whole; which.

        quitters  by match: the names of those who quit it, who are struck
        """
        with self._read(ladder) as (store, head):
            known = live.open_among(store, head.ladder, match_ids)
            if not known:
                return []
            ids = people.ids_of(store, sorted({name for one in known for name in quitters.get(one, ())}))
        gone = {one: {ids[name] for name in quitters.get(one, ()) if name in ids} for one in known}
        with self._write(ladder) as (store, head):
            return closing.settle(store, head, gone, {}, self._clock())

    def cancel(self, ladder: str, match_id: str, reason: str | None = None) -> MatchStatus:
        """End a match that is not to be rated; nobody is struck. One that is cancelled already stays so."""
        with self._write(ladder) as (store, head):
            match = closing.cancel(store, head, _known(store, head, match_id), reason)
            return status_of(store, ladder, match)

    def status(self, ladder: str, match_id: str) -> MatchStatus:
        """A match that is on, or was until a day ago."""
        with self._read(ladder) as (store, head):
            return status_of(store, ladder, _known(store, head, match_id))

    def on(self, ladder: str) -> list[MatchStatus]:
        """The matches that are on, the latest change last."""
        with self._read(ladder) as (store, head):
            return [status_of(store, ladder, match) for match in live.running(store, head.ladder)]

    def expire(self, ladder: str, now: int | None = None) -> list[str]:
        """End the matches that nobody closed in time, without a rating; which. Their seats are free."""
        at = self._clock() if now is None else now
        with self._read(ladder) as (_, head):
            number = head.ladder
        due = self._expiries.due(number, at)
        if not due:
            return []
        expired = []
        with self._write(ladder) as (store, head):
            recorded = store.known(head, due)  # by a server that did not come to say so
            for match in live.read(store, head.ladder, due).values():
                if match.state == OPEN and match.expires_at <= at:
                    closing.end(store, head, match, CLOSED if match.match_id in recorded else EXPIRED)
                    expired += [match.match_id] if match.match_id not in recorded else []
        return sorted(expired)

    def prune(self, ladder: str) -> int:
        """Forget matches that are long over; how many."""
        count = 0
        while True:
            with self._write(ladder) as (store, head):
                gone = live.prune(store, head.ladder, self._clock() - KEPT)
            count += gone
            if not gone:
                return count

    def run(self, stop: threading.Event) -> None:
        """Expire and prune on all ladders until told to stop. Any number of processes may do so."""
        rounds = round(PRUNE_EVERY / EVERY)
        count = 0
        while not stop.wait(EVERY):
            try:
                for ladder in self._ladders():
                    self.expire(ladder)
                    if count % rounds == 0:
                        self.prune(ladder)
            except StoreError as error:
                log.warning("matches could not be expired, which is tried again: %s", error)
            count += 1

    def _ladders(self) -> list[str]:
        """The ladders that have queues or matches."""
        database = self._service.database
        with database.read() as connection:
            sql = "SELECT l.name FROM line JOIN ladder l ON l.ladder = line.ladder ORDER BY l.name"
            return [row[0] for row in Store(connection, database.rows).all(sql)]


def _known(store: Store, head: Head, match_id: str) -> Live:
    """A match that was begun. Raises UnknownNameError."""
    match = live.read(store, head.ladder, [match_id]).get(match_id)
    if match is None:
        raise UnknownNameError(f"running match of ladder {head.name!r}", match_id, [])
    return match
