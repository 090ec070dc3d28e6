"""Make what webhooks are told into deliveries, each exactly once, and send them until they arrive or are dead."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from evenmatch.errors import StoreError
from evenmatch.ledger.store import Head, Store
from evenmatch.service.hooks import outbox
from evenmatch.service.hooks.news import Cursor, News, news
from evenmatch.service.hooks.outbox import SECOND, Due, Outcome
from evenmatch.service.hooks.sending import Sender
from evenmatch.service.hooks.webhooks import REMOVED, Webhook, Webhooks, webhooks
from evenmatch.service.queueing.leases import Leases

AT_ONCE, EACH = 8, 4  # deliveries in flight, in all and to one webhook
ROUNDS = 10  # of news.TOGETHER events each, until it is time to send
PAUSE = 0.5  # seconds between two looks
LEASE = "webhooks"
PRUNE_EVERY = 60 * SECOND

log = logging.getLogger(__name__)


class Deliverer:
    """Makes and sends the deliveries of all webhooks. Any number may make; under the lease, one sends.

    A delivery is made once, and sent at least once: a process that dies may have sent what it did not note. Its number
    stays the same, so that a receiver knows it again.
    """

    def __init__(
        self, webhooks: Webhooks, leases: Leases | None = None, clock: Callable[[], int] | None = None
    ) -> None:
        self._database = webhooks.service.database
        self._clock = webhooks.service.clock if clock is None else clock
        self._leases = leases or Leases(self._database, f"{os.getpid()}-{secrets.token_hex(8)}")
        self._sender = Sender(webhooks.find, allow_private=webhooks.allow_private)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhooks")
        self._flying: dict[Future[Outcome], Due] = {}
        self._pruned_at = 0

    def close(self) -> None:
        """Wait for what is being sent, note what became of it, and close all connections."""
        self.finish()
        self._pool.shutdown()
        self._sender.close()

    def make(self, now: int | None = None) -> int:
        """Make deliveries of what is new, some thousands at most; how many. Safe beside others that do the same."""
        at, made = self._now(now), 0
        for _ in range(ROUNDS):
            with self._database.read() as connection:
                found = self._news(Store(connection, self._database.rows))
            for ladder, before, one, hooks in found:
                for hook in hooks:
                    with self._database.write() as connection:
                        store = Store(connection, self._database.rows)
                        made += outbox.keep(store, ladder, hook, before, one, at)
            if not found:
                break
        return made

    def _news(self, store: Store) -> list[tuple[int, Cursor, News, list[Webhook]]]:
        """What is new on each ladder for webhooks that were told equally much: (ladder, told, news, webhooks)."""
        hooks = webhooks(store)
        if not hooks:
            return []
        changes: dict[int, int] = dict(store.all("SELECT ladder, change FROM line"))
        told = {row[:2]: Cursor(*row[2:]) for row in store.all("SELECT ladder, webhook, position, change FROM told")}
        found = []
        for head in store.heads():
            end = Cursor(head.position, changes.get(head.ladder, 0))
            groups: dict[Cursor, list[Webhook]] = {}
            for hook in hooks:
                before = told.get((head.ladder, hook.webhook), Cursor(0, 0))
                if hook.ladder in (None, head.name) and before != end:
                    groups.setdefault(before, []).append(hook)
            found += [(head.ladder, *self._group(store, head, end, *group)) for group in groups.items()]
        return found

    def _group(
        self, store: Store, head: Head, end: Cursor, before: Cursor, hooks: list[Webhook]
    ) -> tuple[Cursor, News, list[Webhook]]:
        wanted = frozenset(event for hook in hooks for event in hook.events)
        return before, news(store, head, before, end.change, wanted), hooks

    def send(self, now: int | None = None) -> int:
        """Note what came back, and begin to send what is due, as much as may be in flight; how many were begun."""
        self._note()
        at, begun = self._now(now), 0
        with self._database.read() as connection:
            store = Store(connection, self._database.rows)
            hooks = {hook.webhook: hook for hook in webhooks(store)}
            due = outbox.due(store, at, EACH + len(self._flying), 4 * AT_ONCE)
        self._sender.keep(set(hooks))
        flying = {one.delivery for one in self._flying.values()}
        busy = Counter(one.webhook for one in self._flying.values())
        for one in (one for one in due if one.delivery not in flying):
            if len(self._flying) == AT_ONCE:
                break
            if one.webhook not in hooks:
                self._write([(one, Outcome(REMOVED, is_final=True))])
            elif busy[one.webhook] < EACH:
                busy[one.webhook] += 1
                told = (hooks[one.webhook], one.delivery, one.event, one.body, at // SECOND)
                self._flying[self._pool.submit(self._sender.send, *told)] = one
                begun += 1
        return begun

    def finish(self) -> int:
        """Wait for all that is in flight and note what became of it; how many were delivered."""
        wait(self._flying)
        return self._note()

    def _note(self) -> int:
        """Write what became of what came back; how many were delivered."""
        done = [future for future in self._flying if future.done()]
        outcomes = [(self._flying[future], _outcome(future)) for future in done]
        if outcomes:
            self._write(outcomes)
        for future in done:
            del self._flying[future]
        return sum(outcome.error is None for _, outcome in outcomes)

    def _write(self, outcomes: Sequence[tuple[Due, Outcome]]) -> None:
        now = self._clock()
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            for one, outcome in outcomes:
                outbox.note(store, one, outcome, now)

    def prune(self, now: int | None = None) -> int:
        """Forget what was delivered a week ago, or dead for a month; how many."""
        at, count = self._now(now), 0
        after: int | None = 0
        while after is not None:
            with self._database.write() as connection:
                gone, after = outbox.prune(Store(connection, self._database.rows), after, at)
            count += gone
        return count

    def run(self, stop: threading.Event) -> None:
        """Make and send until told to stop, whenever this process holds the lease; then let it go."""
        while not stop.is_set():
            busy = False
            try:
                busy = self._step() if self._leases.hold(LEASE) else self._note() > 0
            except StoreError as error:
                log.warning("webhooks could not be told, which is tried again: %s", error)
            if busy and self._flying:
                wait(self._flying, timeout=PAUSE, return_when=FIRST_COMPLETED)
            else:
                stop.wait(PAUSE)
        try:
            self.close()
            self._leases.release(LEASE)
        except StoreError as error:
            log.warning("what webhooks were told last could not be noted: %s", error)

    def _step(self) -> bool:
        """One look at what there is to do; whether something was begun."""
        self.make()
        begun = self.send()
        now = self._clock()
        if now - self._pruned_at > PRUNE_EVERY:
            self._pruned_at = now
            self.prune()
        return begun > 0

    def _now(self, now: int | None) -> int:
        return self._clock() if now is None else now


def _outcome(future: Future[Outcome]) -> Outcome:
    error = future.exception()
    return future.result() if error is None else Outcome(f"{type(error).__name__}: {error}"[:300])
