"""Create webhook deliveries, each exactly once, and send them until they are delivered or dead."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from evenmatch.durations import SECOND
from evenmatch.errors import StoreError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import change_locks, deliveries, webhook_cursors, webhooks
from evenmatch.ledger.tables.deliveries import DueDelivery
from evenmatch.ledger.tables.webhook_cursors import Cursor
from evenmatch.ledger.tables.webhooks import Webhook
from evenmatch.service.queues.leases import Leases
from evenmatch.service.webhooks import outbox
from evenmatch.service.webhooks.http_sender import Sender
from evenmatch.service.webhooks.outbox import DeliveryOutcome
from evenmatch.service.webhooks.payloads import NewEvents, news
from evenmatch.service.webhooks.subscriptions import REMOVED, Webhooks

AT_ONCE, EACH = 8, 4  # deliveries in flight, in all and to one webhook
ROUNDS = 10  # rounds of payloads.TOGETHER events each before sending
PAUSE = 0.5  # seconds between two polls
LEASE = "webhooks"
PRUNE_EVERY = 60 * SECOND

log = logging.getLogger(__name__)


class Deliverer:
    """Creates and sends the deliveries of all webhooks. Any process may create; only the lease holder sends.

    A delivery is created exactly once and sent at least once: a process may die after sending and before recording
    it. Its number stays the same, so that the receiver can recognize a repetition.
    """

    def __init__(
        self, webhooks: Webhooks, leases: Leases | None = None, clock: Callable[[], int] | None = None
    ) -> None:
        self._database = webhooks.service.database
        self._clock = webhooks.service.clock if clock is None else clock
        self._leases = leases or Leases(self._database, f"{os.getpid()}-{secrets.token_hex(8)}")
        self._sender = Sender(webhooks.find, allow_private=webhooks.allow_private)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhooks")
        self._in_flight: dict[Future[DeliveryOutcome], DueDelivery] = {}
        self._pruned_at = 0

    def close(self) -> None:
        """Wait for the deliveries in flight, record their outcome, and close all connections."""
        self.finish()
        self._pool.shutdown()
        self._sender.close()

    def make(self, now: int | None = None) -> int:
        """Create deliveries of new events, some thousands at most; return their number. Safe to run concurrently."""
        time, created = self._now(now), 0
        for _ in range(ROUNDS):
            with self._database.read() as store:
                batches = self._news(store)
            for ladder, before, batch, hooks in batches:
                for hook in hooks:
                    with self._database.write() as store:
                        created += outbox.keep(store, ladder, hook, before, batch, time)
            if not batches:
                break
        return created

    def _news(self, store: Store) -> list[tuple[int, Cursor, NewEvents, list[Webhook]]]:
        """New events per ladder, grouped by webhooks with the same cursor: (ladder, cursor, news, webhooks)."""
        hooks = webhooks.read_all(store)
        if not hooks:
            return []
        changes, cursors = change_locks.last_changes(store), webhook_cursors.read_all(store)
        batches = []
        for head in store.heads():
            end = Cursor(head.position, changes.get(head.ladder, 0))
            groups: dict[Cursor, list[Webhook]] = {}
            for hook in hooks:
                before = cursors.get((head.ladder, hook.webhook), Cursor(0, 0))
                if hook.ladder in (None, head.name) and before != end:
                    groups.setdefault(before, []).append(hook)
            batches += [(head.ladder, *self._group(store, head, end, *group)) for group in groups.items()]
        return batches

    def _group(
        self, store: Store, head: Head, end: Cursor, before: Cursor, hooks: list[Webhook]
    ) -> tuple[Cursor, NewEvents, list[Webhook]]:
        wanted = frozenset(event for hook in hooks for event in hook.events)
        return before, news(store, head, before, end.change, wanted), hooks

    def send(self, now: int | None = None) -> int:
        """Record finished deliveries and start due ones, up to the limit in flight; return the number started."""
        self._record_finished()
        time, started = self._now(now), 0
        with self._database.read() as store:
            hooks = {hook.webhook: hook for hook in webhooks.read_all(store)}
            due = deliveries.read_due(store, time, EACH + len(self._in_flight), 4 * AT_ONCE)
        self._sender.keep(set(hooks))
        in_flight = {delivery.delivery for delivery in self._in_flight.values()}
        busy = Counter(delivery.webhook for delivery in self._in_flight.values())
        for delivery in (delivery for delivery in due if delivery.delivery not in in_flight):
            if len(self._in_flight) == AT_ONCE:
                break
            if delivery.webhook not in hooks:
                self._write([(delivery, DeliveryOutcome(REMOVED, is_final=True))])
            elif busy[delivery.webhook] < EACH:
                busy[delivery.webhook] += 1
                hook = hooks[delivery.webhook]
                secret = hook.secret(self._database.master.sealer())
                arguments = (hook, secret, delivery.delivery, delivery.event, delivery.body, time // SECOND)
                self._in_flight[self._pool.submit(self._sender.send, *arguments)] = delivery
                started += 1
        return started

    def finish(self) -> int:
        """Wait for all deliveries in flight and record their outcome; return the number delivered."""
        wait(self._in_flight)
        return self._record_finished()

    def _record_finished(self) -> int:
        """Record the outcome of finished deliveries; return the number delivered."""
        done = [future for future in self._in_flight if future.done()]
        outcomes = [(self._in_flight[future], _outcome(future)) for future in done]
        if outcomes:
            self._write(outcomes)
        for future in done:
            del self._in_flight[future]
        return sum(outcome.error is None for _, outcome in outcomes)

    def _write(self, outcomes: Sequence[tuple[DueDelivery, DeliveryOutcome]]) -> None:
        now = self._clock()
        with self._database.write() as store:
            for delivery, outcome in outcomes:
                outbox.note(store, delivery, outcome, now)

    def prune(self, now: int | None = None) -> int:
        """Delete deliveries a week after they were delivered, dead ones after a month; return their number."""
        time, count = self._now(now), 0
        after: int | None = 0
        while after is not None:
            with self._database.write() as store:
                deleted, after = outbox.prune(store, after, time)
            count += deleted
        return count

    def run(self, stop: threading.Event) -> None:
        """Create and send deliveries while this process holds the lease, until `stop` is set; then release it."""
        while not stop.is_set():
            busy = False
            try:
                busy = self._step() if self._leases.hold(LEASE) else self._record_finished() > 0
            except StoreError as error:
                log.warning("webhook deliveries failed and will be tried again: %s", error)
            if busy and self._in_flight:
                wait(self._in_flight, timeout=PAUSE, return_when=FIRST_COMPLETED)
            else:
                stop.wait(PAUSE)
        try:
            self.close()
            self._leases.release(LEASE)
        except StoreError as error:
            log.warning("the last webhook deliveries could not be recorded: %s", error)

    def _step(self) -> bool:
        """Create and send once; whether a delivery was started."""
        self.make()
        started = self.send()
        now = self._clock()
        if now - self._pruned_at > PRUNE_EVERY:
            self._pruned_at = now
            self.prune()
        return started > 0

    def _now(self, now: int | None) -> int:
        return self._clock() if now is None else now


def _outcome(future: Future[DeliveryOutcome]) -> DeliveryOutcome:
    error = future.exception()
    return future.result() if error is None else DeliveryOutcome(f"{type(error).__name__}: {error}"[:300])
