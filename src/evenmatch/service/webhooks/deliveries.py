"""Create webhook deliveries, each exactly once, and send them until they are delivered or dead."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from evenmatch.durations import SECOND
from evenmatch.errors import StoreError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import change_locks, deliveries, webhook_cursors, webhook_failures, webhooks
from evenmatch.ledger.tables.deliveries import DueDelivery
from evenmatch.ledger.tables.webhook_cursors import Cursor
from evenmatch.ledger.tables.webhooks import Webhook
from evenmatch.service.queues.leases import Leases
from evenmatch.service.webhooks import outbox, pauses
from evenmatch.service.webhooks.http_sender import Sender
from evenmatch.service.webhooks.outbox import DeliveryOutcome
from evenmatch.service.webhooks.payloads import NewEvents, news
from evenmatch.service.webhooks.slots import AT_ONCE, RECEIVER, Slots
from evenmatch.service.webhooks.subscriptions import REMOVED, Webhooks

ROUNDS = 10  # rounds of payloads.TOGETHER events each before sending
PAUSE = 0.5  # seconds between two polls
LEASE = "webhooks"
PRUNE_EVERY = 60 * SECOND
STOPPING = 2.0  # seconds that deliveries in flight have to finish when the process stops

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
        self._slots = Slots()
        self._in_flight: dict[Future[DeliveryOutcome], tuple[DueDelivery, Webhook]] = {}
        self._pruned_at = 0

    def close(self, within: float | None = None) -> None:
        """Wait for the deliveries in flight, record their outcome, and close all connections.

        within  seconds to wait at most; deliveries that take longer are cancelled, and sent again by the next sender
        """
        wait(self._in_flight, timeout=within)
        try:
            self._record_finished()
        finally:
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
        hooks, due = self._due(time)
        self._sender.keep(set(hooks))
        in_flight = {delivery.delivery for delivery, _ in self._in_flight.values()}
        for delivery in (delivery for delivery in due if delivery.delivery not in in_flight):
            hook = hooks.get(delivery.webhook)
            if hook is None:
                self._write([(delivery, None, DeliveryOutcome(REMOVED, is_final=True))])
            elif self._slots.has_room(hook):
                self._slots.take(hook)
                secret = hook.secret(self._database.master.sealer())
                arguments = (hook, secret, delivery.delivery, delivery.event, delivery.body, time // SECOND)
                self._in_flight[self._sender.send(*arguments)] = delivery, hook
                started += 1
        return started

    def _due(self, time: int) -> tuple[dict[int, Webhook], list[DueDelivery]]:
        """All webhooks, and the due deliveries of those that have a free slot."""
        with self._database.read() as store:
            hooks = {hook.webhook: hook for hook in webhooks.read_all(store)}
            failures = webhook_failures.read_all(store)
            self._slots.set_failing(hook for number, hook in hooks.items() if number in failures)
            without = [
                number
                for number, hook in hooks.items()
                if pauses.waits(failures.get(number), time) or not self._slots.has_room(hook)
            ]
            return hooks, deliveries.read_due(store, time, without, 2 * RECEIVER, 4 * AT_ONCE)

    def finish(self) -> int:
        """Wait for all deliveries in flight and record their outcome; return the number delivered."""
        wait(self._in_flight)
        return self._record_finished()

    def _record_finished(self) -> int:
        """Record the outcome of finished deliveries; return the number delivered."""
        done = [future for future in self._in_flight if future.done()]
        outcomes = [(*self._in_flight[future], _outcome(future)) for future in done]
        if outcomes:
            self._write(outcomes)
        for future in done:
            self._slots.free(self._in_flight.pop(future)[1])
        return sum(outcome.error is None for *_, outcome in outcomes)

    def _write(self, outcomes: Sequence[tuple[DueDelivery, Webhook | None, DeliveryOutcome]]) -> None:
        now = self._clock()
        with self._database.write() as store:
            for delivery, hook, outcome in outcomes:
                outbox.note(store, delivery, hook, outcome, now)

    def prune(self, now: int | None = None) -> int:
        """Delete deliveries a week after they were delivered, dead ones after a month; return their number.

        Those that wait for a paused webhook are given up after a day.
        """
        time, count = self._now(now), 0
        with self._database.write() as store:
            outbox.give_up_paused(store, time)
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
            self.close(STOPPING)
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
