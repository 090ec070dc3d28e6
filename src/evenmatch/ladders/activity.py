"""Activity figures of all ladders for monitoring, read from the database, so all processes report the same."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from evenmatch.corrections.repair import is_due
from evenmatch.errors import EvenmatchError, StoreError
from evenmatch.ledger import event_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.ladder_rows import last_change
from evenmatch.ledger.store import Head, Store
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.audit import QueueAudit, audit
from evenmatch.queues.experiment_audit import ExperimentAudit
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.queue_sql import OfferRow
from evenmatch.queues.state import Counts
from evenmatch.webhooks import webhook_sql

RARELY = 300.0  # seconds for which audits of queues are cached
AUDITED = 1000  # matches of an audit
COMPARED = 20_000  # matches of an experiment
DECLINED = ("declined an offered match", "left while a match was offered")  # reasons stored with ended tickets
LAPSED = "did not answer an offered match in time"

logger = logging.getLogger(__name__)


@dataclass
class ServiceActivity:
    """Activity figures of a database.

    positions  number of events, by ladder;  due  True if a rebuild is due, by ladder
    seats      (ladder, waiting players, playing players, open matches with players), one entry per ladder
    waiting, dead  number of webhook deliveries;  failing  number of webhooks whose last attempt failed
    queues  counts of waiting players, by ladder and queue
    audits     (ladder, queue, audit of the latest AUDITED matches), a few minutes old
    experiments  (ladder, queue, comparison of the latest COMPARED matches) of running experiments, a few minutes old
    """

    positions: dict[str, int] = field(default_factory=dict)
    due: dict[str, bool] = field(default_factory=dict)
    seats: list[tuple[str, int, int, int]] = field(default_factory=list)
    waiting: int = 0
    dead: int = 0
    failing: int = 0
    queues: dict[str, dict[str, Counts]] = field(default_factory=dict)
    audits: list[tuple[str, str, QueueAudit]] = field(default_factory=list)
    experiments: list[tuple[str, str, ExperimentAudit]] = field(default_factory=list)


class ActivityReader:
    """Reads the activity figures. Audits of queues are cached. Threads may share one instance."""

    def __init__(self, queue_service: QueueService) -> None:
        self._queue_service, self._database = queue_service, queue_service.service.database
        self._guard = threading.Lock()
        self._audits: list[tuple[str, str, QueueAudit]] = []
        self._experiments: list[tuple[str, str, ExperimentAudit]] = []
        self._audited_at = -float("inf")  # monotonic clock

    def read(self) -> ServiceActivity:
        """The current figures. Raises StoreError."""
        with self._guard:
            return self._read()

    def _read(self) -> ServiceActivity:
        activity = ServiceActivity()
        with self._database.read() as store:
            heads = store.heads()
            names = {head.ladder: head.name for head in heads}
            for head in heads:
                activity.positions[head.name] = head.position
                self._read_due(store, head, activity)
            queued = {ladder for ladder, _, _, _ in queue_sql.read_all_queues(store)}
            activity.seats = [(names[ladder], *counts) for ladder, *counts in queue_sql.count_seats_by_ladder(store)]
            activity.waiting = webhook_sql.count_waiting_deliveries(store)
            activity.dead = webhook_sql.count_dead_deliveries(store)
            activity.failing = sum(first.attempts > 0 for first in webhook_sql.read_first_pending(store))
            self._audit(store, [head for head in heads if head.ladder in queued])
            activity.audits, activity.experiments = self._audits, self._experiments
        for ladder in queued:
            self._read_queues(names[ladder], activity)
        return activity

    @staticmethod
    def _read_due(store: Store, head: Head, activity: ServiceActivity) -> None:
        try:
            activity.due[head.name] = is_due(head, event_rows.read_plan(store, head, head.corrected))
        except StoreError:
            raise
        except EvenmatchError as error:  # for example, the file of the ladder's system is missing
            logger.warning("cannot determine whether ladder %r is due for a rebuild: %s", head.name, error)

    def _audit(self, store: Store, heads: list[Head]) -> None:
        """Audit the queues of these ladders again if the audits are old."""
        if time.monotonic() - self._audited_at <= RARELY:
            return
        now = self._queue_service.service.clock()
        audits, experiments = list[tuple[str, str, QueueAudit]](), list[tuple[str, str, ExperimentAudit]]()
        for head in heads:
            for queue, setup in stored_queues.read(store, head.ladder).items():
                audits.append((head.name, queue, audit(store, head, queue, 0, now, AUDITED)))
                if setup.experiment is not None:
                    compared = audit(store, head, queue, setup.experiment.started_at, now, COMPARED).experiments
                    experiments += [(head.name, queue, comparison) for comparison in compared[:1]]
        self._audits, self._experiments, self._audited_at = audits, experiments, time.monotonic()

    def _read_queues(self, ladder: str, activity: ServiceActivity) -> None:
        try:
            activity.queues[ladder] = self._queue_service.counts(ladder)
        except StoreError:
            raise
        except EvenmatchError as error:
            logger.warning("cannot count the waiting players of ladder %r: %s", ladder, error)


class OfferCounts:
    """Counts the outcomes of a ladder's offers, in the process that runs its matchmaker. For one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counted_to: dict[str, int] = {}  # by ladder: the last change whose offers were counted

    def forget(self, ladder: str) -> None:
        """Start again with the next call of `since`, because another process counts meanwhile."""
        self._counted_to.pop(ladder, None)

    def since(self, ladder: str) -> Counter[tuple[str, str]]:
        """Offers by queue and outcome since the last call; the first call only sets the starting point.

        Raises StoreError.
        """
        counts: Counter[tuple[str, str]] = Counter()
        with self._database.read() as store:
            number = store.head(ladder).ladder
            last, after = last_change(store, number), self._counted_to.setdefault(ladder, last_change(store, number))
            if after == last:
                return counts
            changed = queue_sql.read_changed_offers(store, number, after)
            called_off = {ticket for row in changed if row.state == queue_sql.OFF for ticket in row.tickets}
            tickets = queue_sql.read_tickets(store, number, sorted(called_off))
        self._counted_to[ladder] = last
        reasons = {ticket: row.ended for ticket, row in tickets.items() if row.ended is not None}
        for row in changed:
            if row.offer > after:
                counts[row.queue, "made"] += 1
            if row.state not in queue_sql.OFFERS_PENDING:
                counts[row.queue, _outcome(row, reasons)] += 1
        return counts


def _outcome(row: OfferRow, reasons: dict[int, str]) -> str:
    """The outcome of an offer, from the reasons why its tickets ended."""
    if row.state == queue_sql.MADE:
        return "accepted"
    given = [reasons[ticket] for ticket in row.tickets if ticket in reasons]
    if any(reason.endswith(LAPSED) for reason in given):
        return "lapsed"
    return "declined" if any(reason.endswith(DECLINED) for reason in given) else "called off"
