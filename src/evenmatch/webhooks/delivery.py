"""Deliver webhooks: create a delivery of each event exactly once, then send it until it arrives or is given up.

A webhook gets its deliveries one after the other, oldest first. If one fails, it is tried again after a wait that grows
exponentially, and the later ones wait for it. Failing or slow receivers do not delay the webhooks of others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import time
from typing import NamedTuple

import httpx

from evenmatch.durations import DAY, HOUR, SECOND
from evenmatch.errors import EvenmatchError, InputError, StoreError
from evenmatch.ledger import ladder_rows
from evenmatch.ledger.store import Store
from evenmatch.queues.leases import Leases
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.payloads import NewEvents, news
from evenmatch.webhooks.sending import message_of, new_client, post, signed_headers
from evenmatch.webhooks.subscriptions import Webhooks
from evenmatch.webhooks.webhook_sql import Cursor, Delivery, Webhook

FIRST_RETRY, GROWTH, ATTEMPTS = 5 * SECOND, 4, 7  # waits of 5 s, 20 s, 80 s and so on; given up after two hours
PENDING_AT_MOST = DAY  # age at which the deliveries of a failing webhook are given up
GIVEN_UP = "the receiver kept failing for a day"
GONE = 410  # the receiver wants no further attempt of this delivery
KEPT, KEPT_DEAD = 7 * DAY, 30 * DAY  # age at which deliveries that arrived, or were given up, are deleted
DEADLINE = 10.0  # seconds of an attempt: resolve, connect, send, and receive status and headers
AT_ONCE, LADDER_AT_ONCE = 64, 16  # attempts at once: in total, and of the webhooks of one ladder; a webhook has one
BATCH, TURN = 50, 5.0  # a webhook yields to the next one after this many deliveries or seconds
POLL = 0.5  # seconds between polls
PRUNE_EVERY, PRUNED_AT_ONCE = HOUR, 1_000
STOP_WITHIN = 2.0  # seconds for attempts to finish when the process stops
LEASE = "webhooks"

log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """The outcome of an attempt. error: None if it arrived; is_final: do not try again."""

    error: str | None
    is_final: bool = False


class Deliverer:
    """Creates and sends the deliveries of all webhooks. Any process may create them; the lease holder sends them.

    A delivery is sent at least once: a process may die after sending it and before recording that. Its number stays
    the same, so the receiver can recognize a repetition.
    """

    def __init__(self, webhooks: Webhooks, leases: Leases | None = None) -> None:
        self._webhooks = webhooks
        self._database, self._clock = webhooks.service.database, webhooks.service.clock
        self._leases = leases or Leases(self._database, f"{os.getpid()}-{secrets.token_hex(8)}")
        self._turns: dict[Webhook, asyncio.Task[None]] = {}
        self._last_turns: dict[int, float] = {}
        self._pruned_at = 0
        self._stop = threading.Event()

    # creating

    def make(self) -> int:
        """Create deliveries of the next events of each ladder; return their number. Safe to run concurrently."""
        created = 0
        with self._database.read() as store:
            batches = _new_events(store)
        for ladder, before, batch, hooks in batches:
            with self._database.write() as store:
                created += sum(keep(store, ladder, hook, before, batch, self._clock()) for hook in hooks)
        return created

    # sending

    def run(self, stop: threading.Event) -> None:
        """Create and send deliveries while this process holds the lease, until `stop` is set; then release it."""
        self._stop = stop
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                if await asyncio.to_thread(self._hold):
                    await self._start_turns()
            except StoreError as error:
                log.warning("webhook deliveries failed and will be tried again: %s", error)
            if self._turns:
                await asyncio.wait(self._turns.values(), timeout=POLL, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(POLL)
        if self._turns:
            await asyncio.wait(self._turns.values(), timeout=STOP_WITHIN)
        for turn in self._turns.values():
            turn.cancel()  # sent deliveries are recorded; the next process sends the rest
        try:
            self._leases.release(LEASE)
        except StoreError as error:
            log.warning("the lease of the webhook deliveries was not released: %s", error)

    def _hold(self) -> bool:
        """Take or renew the lease, then create and prune deliveries. Return False if another process has the lease."""
        if not self._leases.hold(LEASE):
            return False
        self.make()
        if self._clock() - self._pruned_at > PRUNE_EVERY:
            self._pruned_at = self._clock()
            self.prune()
        return True

    async def drain(self) -> None:
        """Send due deliveries until none is left."""
        while await self._start_turns():
            await asyncio.wait(self._turns.values())

    async def _start_turns(self) -> int:
        """Begin a turn of each webhook with a delivery due, within the limits. Return how many began."""
        started = 0
        for hook in await asyncio.to_thread(self._due):
            if self._has_room(hook):
                self._turns[hook] = asyncio.create_task(self._turn(hook))
                self._last_turns[hook.webhook] = time.monotonic()
                started += 1
        return started

    def _due(self) -> list[Webhook]:
        """The webhooks with a delivery due and no turn in progress, longest waiting first."""
        now, busy = self._clock(), {hook.webhook for hook in list(self._turns)}
        with self._database.read() as store:
            firsts = webhook_sql.read_first_pending(store)
            due = {first.webhook for first in firsts if first.next_at is not None and first.next_at <= now} - busy
            hooks = [hook for hook in webhook_sql.read_all_webhooks(store) if hook.webhook in due] if due else []
        return sorted(hooks, key=lambda hook: self._last_turns.get(hook.webhook, 0.0))

    def _has_room(self, hook: Webhook) -> bool:
        of_ladder = sum(other.ladder == hook.ladder for other in self._turns)
        return len(self._turns) < AT_ONCE and of_ladder < LADDER_AT_ONCE

    async def _turn(self, hook: Webhook) -> None:
        try:
            await self._send_batch(hook)
        except EvenmatchError as error:
            log.warning("deliveries to webhook %d failed and will be tried again: %s", hook.webhook, error)
        finally:
            del self._turns[hook]

    async def _send_batch(self, hook: Webhook) -> None:
        """Send pending deliveries of a webhook in order, up to the first that fails, and record the outcomes."""
        outcomes: list[tuple[Delivery, Outcome]] = []
        try:
            secret = hook.secret(self._database.master.sealer())
            pending = await asyncio.to_thread(self._pending, hook)
            until = time.monotonic() + TURN
            async with new_client(DEADLINE) as client:
                for delivery in pending:
                    outcome = await self._attempt(client, hook, secret, delivery)
                    outcomes.append((delivery, outcome))
                    if outcome.error is not None or time.monotonic() > until or self._stop.is_set():
                        break
        finally:
            if outcomes:
                await asyncio.to_thread(self._record, outcomes)

    def _pending(self, hook: Webhook) -> list[Delivery]:
        with self._database.read() as store:
            pending = webhook_sql.read_pending(store, hook.webhook, BATCH)
        now = self._clock()
        waiting = next((index for index, each in enumerate(pending) if each.next_at and each.next_at > now), BATCH)
        return pending[:waiting]

    async def _attempt(self, client: httpx.AsyncClient, hook: Webhook, secret: bytes, delivery: Delivery) -> Outcome:
        headers = signed_headers(secret, delivery.event, str(delivery.delivery), self._clock() // SECOND, delivery.body)
        try:
            async with asyncio.timeout(DEADLINE):
                status, _ = await post(client, self._webhooks.check, hook.url, headers, delivery.body.encode())
        except TimeoutError:
            return Outcome(f"the receiver did not answer within {DEADLINE:g} s")
        except InputError as error:
            return Outcome(str(error))
        except Exception as error:  # whatever a URL or a receiver causes counts as a failed attempt
            return Outcome(message_of(error))
        return Outcome(None if 200 <= status < 300 else f"the receiver answered {status}", status == GONE)

    def _record(self, outcomes: list[tuple[Delivery, Outcome]]) -> None:
        now = self._clock()
        with self._database.write() as store:
            for delivery, outcome in outcomes:
                record(store, delivery, outcome, now)

    def prune(self) -> int:
        """Delete deliveries after a week, or after a month if they were given up. Return how many."""
        count, now, deleted = 0, self._clock(), PRUNED_AT_ONCE
        while deleted == PRUNED_AT_ONCE:
            with self._database.write() as store:
                webhook_sql.give_up_orphaned_deliveries(store)
                deleted = webhook_sql.delete_old_deliveries(store, now - KEPT, now - KEPT_DEAD, PRUNED_AT_ONCE)
            count += deleted
        return count


def record(store: Store, delivery: Delivery, outcome: Outcome, now: int) -> None:
    """Store the outcome of an attempt. A failure also gives up deliveries that have waited too long."""
    attempts = delivery.attempts + 1
    next_at = None
    if outcome.error is not None and not outcome.is_final and attempts < ATTEMPTS:
        next_at = now + FIRST_RETRY * GROWTH ** (attempts - 1)
    delivered_at = now if outcome.error is None else None
    webhook_sql.count_attempt(store, delivery.delivery, next_at=next_at, delivered_at=delivered_at, error=outcome.error)
    if outcome.error is not None:
        log.warning("webhook %d: delivery %d failed: %s", delivery.webhook, delivery.delivery, outcome.error)
        webhook_sql.give_up_deliveries(store, delivery.webhook, now - PENDING_AT_MOST, GIVEN_UP)


def keep(store: Store, ladder: int, hook: Webhook, before: Cursor, found: NewEvents, now: int) -> int:
    """Store a webhook's new deliveries and its cursor, unless another process already did; return their number."""
    if webhook_sql.read_webhook(store, hook.webhook) is None:
        return 0
    if not webhook_sql.move_cursor(store, ladder, hook.webhook, before, found.upto):
        return 0
    wanted = [(event, body) for event, body in found.events if event in hook.events]
    webhook_sql.insert_deliveries(store, hook.webhook, wanted, now)
    return len(wanted)


def _new_events(store: Store) -> list[tuple[int, Cursor, NewEvents, list[Webhook]]]:
    """New events per ladder, for each group of webhooks with the same cursor: (ladder, cursor, events, webhooks)."""
    hooks = webhook_sql.read_all_webhooks(store)
    if not hooks:
        return []
    changes, cursors = ladder_rows.last_changes(store), webhook_sql.read_cursors(store)
    batches = []
    for head in store.heads():
        end = Cursor(head.position, changes.get(head.ladder, 0))
        groups: dict[Cursor, list[Webhook]] = {}
        for hook in hooks:
            before = cursors.get((head.ladder, hook.webhook), Cursor(0, 0))
            if hook.ladder in (None, head.name) and before != end:
                groups.setdefault(before, []).append(hook)
        for before, group in groups.items():
            wanted = frozenset(event for hook in group for event in hook.events)
            batches.append((head.ladder, before, news(store, head, before, end.change, wanted), group))
    return batches
