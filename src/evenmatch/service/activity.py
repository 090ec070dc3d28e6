"""What goes on on all ladders, as figures: read from the database when somebody asks, the same from every process."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from evenmatch.errors import EvenmatchError, StoreError
from evenmatch.ledger.store import Head, Store
from evenmatch.service.playing import live
from evenmatch.service.queueing import offers, tickets
from evenmatch.service.queueing.desk import Desk
from evenmatch.service.queueing.mirror import Counts
from evenmatch.service.queueing.offers import OfferRow
from evenmatch.service.rebuilding import is_due

SELDOM = 60.0  # seconds for which the count of dead deliveries stands
DECLINED = ("declined an offered match", "left while a match was offered")  # how tickets end, in words
LAPSED = "did not answer an offered match in time"

logger = logging.getLogger(__name__)


class _Rating(NamedTuple):
    """What decides whether a ladder is due for a rebuild."""

    generation: int
    engine: str
    corrected: int
    due: int | None


@dataclass
class Activity:
    """What goes on.

    positions  events by ladder;  due  whether a rebuild is, by ladder
    seats      (ladder, players who wait, players who play, matches that are on and have players) each
    offers     how many, by ladder, queue and what became of them, since this process began to count
    waiting, dead  webhook deliveries;  queues  who waits, by ladder and queue
    """

    positions: dict[str, int] = field(default_factory=dict)
    due: dict[str, bool] = field(default_factory=dict)
    seats: list[tuple[str, int, int, int]] = field(default_factory=list)
    offers: dict[tuple[str, str, str], int] = field(default_factory=dict)
    waiting: int = 0
    dead: int = 0
    queues: dict[str, dict[str, Counts]] = field(default_factory=dict)


class Watch:
    """Reads what goes on, once for each time that somebody asks."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._database = desk, desk.service.database
        self._guard = threading.Lock()
        self._due: dict[str, tuple[_Rating, bool]] = {}
        self._upto: dict[int, int] = {}  # by ladder: the last change whose offers were counted
        self._offers: Counter[tuple[str, str, str]] = Counter()
        self._dead = (-float("inf"), 0)

    def read(self) -> Activity:
        """All of it now. Raises StoreError."""
        with self._guard:
            return self._read()

    def _read(self) -> Activity:
        told = Activity()
        with self._database.read() as connection:
            store = Store(connection, self._database.rows)
            heads = store.heads()
            names = {head.ladder: head.name for head in heads}
            for head in heads:
                told.positions[head.name] = head.position
                self._tell_due(store, head, told)
            queued: list[int] = [row[0] for row in store.all("SELECT DISTINCT ladder FROM queue")]
            told.seats = _seats(store, names)
            for number in queued:
                self._count_offers(store, number, names[number])
            told.waiting, told.dead = self._deliveries(store)
        told.offers = dict(sorted(self._offers.items()))
        for number in queued:
            self._tell_queues(names[number], told)
        return told

    def _tell_due(self, store: Store, head: Head, told: Activity) -> None:
        """Whether a rebuild is due; as the last time where nothing has changed that it depends on."""
        rating = _Rating(head.generation, head.engine, head.corrected, head.due)
        known = self._due.get(head.name)
        if known is None or known[0] != rating:
            try:
                known = rating, is_due(head, store.plan(head, head.corrected))
            except StoreError:
                raise
            except EvenmatchError as error:  # as where the ladder's system is a file that is not there
                logger.warning("whether ladder %r is due for a rebuild is not known: %s", head.name, error)
                return
            self._due[head.name] = known
        told.due[head.name] = known[1]

    def _count_offers(self, store: Store, ladder: int, name: str) -> None:
        """Count what became of offers since the last time; those of before this process began are not counted."""
        last, after = live.last_change(store, ladder), self._upto.get(ladder)
        self._upto[ladder] = last
        if after is None or after == last:
            return
        changed = offers.changed(store, ladder, after)
        gone = tickets.read(
            store, ladder, sorted({one for row in changed if row.state == offers.OFF for one in row.tickets})
        )
        words = {number: one.ended for number, one in gone.items() if one.ended is not None}
        for row in changed:
            if row.offer > after:
                self._offers[name, row.queue, "made"] += 1
            if row.state != offers.OPEN:
                self._offers[name, row.queue, _outcome(row, words)] += 1

    def _deliveries(self, store: Store) -> tuple[int, int]:
        """Deliveries that wait to be sent, and dead ones."""
        waiting = store.all("SELECT COUNT(*) FROM delivery WHERE next_at IS NOT NULL")[0][0]
        read_at, dead = self._dead
        if time.monotonic() - read_at > SELDOM:
            dead = store.all("SELECT COUNT(*) FROM delivery WHERE next_at IS NULL AND delivered_at IS NULL")[0][0]
            self._dead = time.monotonic(), dead
        return waiting, dead

    def _tell_queues(self, ladder: str, told: Activity) -> None:
        try:
            told.queues[ladder] = self._desk.counts(ladder)
        except StoreError:
            raise
        except EvenmatchError as error:
            logger.warning("who waits on ladder %r is not known: %s", ladder, error)


def _seats(store: Store, names: dict[int, str]) -> list[tuple[str, int, int, int]]:
    """Who waits or plays has a seat: as many rows as there are such players, however long the service has run."""
    sql = (
        "SELECT ladder, COUNT(*) - COUNT(match_id), COUNT(match_id), COUNT(DISTINCT match_id) FROM seat GROUP BY ladder"
    )
    return [(names[ladder], waiting, playing, matches) for ladder, waiting, playing, matches in store.all(sql)]


def _outcome(row: OfferRow, words: dict[int, str]) -> str:
    """How an offer ended, by how its tickets did."""
    if row.state == offers.MADE:
        return "accepted"
    said = [words[one] for one in row.tickets if one in words]
    if any(one.endswith(LAPSED) for one in said):
        return "lapsed"
    return "declined" if any(one.endswith(DECLINED) for one in said) else "called off"
