"""Deliveries of webhooks: each is created exactly once, then sent until it is delivered or given up.

Deliveries are signed, sent within a deadline and to allowed addresses only. Slots limit how many are in flight, so
that slow receivers do not delay the others. A receiver that keeps failing is paused, with an entry in the audit trail:
one delivery is sent now and then as a probe. The pause ends with the first delivery that arrives, or when an operator
resumes the webhook.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import secrets
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

import httpx

from evenmatch.accounts import audit_trail
from evenmatch.accounts.access import SERVICE
from evenmatch.durations import SECOND
from evenmatch.errors import StoreError
from evenmatch.ledger import ladder_rows
from evenmatch.ledger.store import Head, Store
from evenmatch.queues.leases import Leases
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.addresses import Resolve, check_url, refusal
from evenmatch.webhooks.payloads import NewEvents, news
from evenmatch.webhooks.subscriptions import REMOVED, Webhooks
from evenmatch.webhooks.webhook_sql import Cursor, DueDelivery, Webhook, WebhookFailures

FAILURES = 10  # failed attempts without a success between them, after which a webhook is paused,
PAUSED_AFTER_FAILING_FOR = 300 * SECOND  # if they have gone on for this long
PROBES = (
    60,
    120,
    300,
    600,
    1_800,
    3_600,
)  # seconds until the next probe: the first over half of the pause
PAUSE_KEPT_FOR = 86_400 * SECOND  # age at which deliveries of a paused webhook are given up
GIVEN_UP = "the webhook was paused for a day"

log = logging.getLogger(__name__)


def count(store: Store, hook: Webhook, error: str | None, now: int) -> None:
    """Count an attempt; pause the webhook if it keeps failing, resume it after a success. error: None: it arrived."""
    known = webhook_sql.read_failures(store, hook.webhook)
    if error is None:
        if known is not None:
            resume(store, hook, known, now)
        return
    failures = 1 if known is None else known.failures + 1
    failed_at = now if known is None else known.failed_at
    paused_at = None if known is None else known.paused_at
    is_new = paused_at is None and failures >= FAILURES and now - failed_at >= PAUSED_AFTER_FAILING_FOR
    if is_new:
        paused_at = now
        _tell(store, hook, "webhook.paused", {"failures": failures, "error": error}, now)
    probe_at = None if paused_at is None else _next_probe(paused_at, now)
    webhook_sql.put_failures(store, hook.webhook, WebhookFailures(failures, failed_at, paused_at, probe_at))


def resume(store: Store, hook: Webhook, known: WebhookFailures, now: int) -> None:
    """Forget the failures of a webhook after a success, so that it is not paused any more."""
    webhook_sql.delete_failures(store, hook.webhook)
    if known.paused_at is not None:
        _tell(store, hook, "webhook.resumed", {"failures": known.failures}, now)


def waits(failures: WebhookFailures | None, now: int) -> bool:
    """Whether nothing is sent at present to a webhook with these failures."""
    return failures is not None and failures.probe_at is not None and now < failures.probe_at


def _next_probe(paused_at: int, now: int) -> int:
    """The time of the next probe: the longer the pause lasts, the later, up to an hour."""
    elapsed = (now - paused_at) // SECOND
    return now + next((wait for wait in PROBES if elapsed < 2 * wait), PROBES[-1]) * SECOND


def _tell(store: Store, hook: Webhook, action: str, body: dict[str, object], now: int) -> None:
    audit_trail.note(
        store, SERVICE, action, ladder=hook.ladder, target=str(hook.webhook), body={"url": hook.url, **body}, now=now
    )
    log.warning("%s: webhook %d to %s: %s", action, hook.webhook, hook.url[:200], body)


BACKOFF = (5, 30, 120, 600, 3_600, 21_600)  # seconds until a failed delivery is tried again, by attempt
JITTER = 0.1  # largest share added to BACKOFF
KEPT, KEPT_DEAD = 7 * 86_400 * SECOND, 30 * 86_400 * SECOND  # age of delivered, dead deliveries at deletion
PAGE = 1_000  # rows read at once


class DeliveryOutcome(NamedTuple):
    """The outcome of an attempt. error: None if delivered; is_final: do not try again."""

    error: str | None
    is_final: bool = False


def keep(store: Store, ladder: int, hook: Webhook, before: Cursor, found: NewEvents, now: int) -> int:
    """Write a webhook's new deliveries and its cursor, unless another process already did; return their number."""
    if webhook_sql.read_webhook(store, hook.webhook) is None:
        return 0
    if not webhook_sql.move_cursor(store, ladder, hook.webhook, before, found.upto):
        return 0
    wanted = [(event, body) for event, body in found.told if event in hook.events]
    webhook_sql.insert_deliveries(store, hook.webhook, wanted, now)
    return len(wanted)


def note(store: Store, due: DueDelivery, hook: Webhook | None, outcome: DeliveryOutcome, now: int) -> None:
    """Record the outcome of an attempt. hook: the webhook of the delivery; None: it was removed."""
    if hook is not None and webhook_sql.read_webhook(store, hook.webhook) is not None:
        count(store, hook, outcome.error, now)
    next_at = None
    if outcome.error is not None and not outcome.is_final:
        next_at = retry_at(due.delivery, due.attempts + 1, now)
    delivered_at = now if outcome.error is None else None
    webhook_sql.count_attempt(store, due.delivery, next_at=next_at, delivered_at=delivered_at, error=outcome.error)


def retry_at(delivery: int, attempts: int, now: int) -> int | None:
    """When to try a delivery again after this many failed attempts; None: never.

    The delivery's number determines a jitter, so that deliveries that failed together are not all repeated at once.
    """
    if attempts > len(BACKOFF):
        return None
    spread = delivery * 0x9E3779B1 % 2**32 / 2**32
    return now + round(BACKOFF[attempts - 1] * (1 + JITTER * spread) * SECOND)


def give_up_paused(store: Store, now: int) -> None:
    """Make the deliveries that have waited for a paused webhook for a day dead."""
    for webhook, failures in webhook_sql.read_all_failures(store).items():
        if failures.paused_at is not None:
            webhook_sql.give_up_deliveries(store, webhook, now - PAUSE_KEPT_FOR, GIVEN_UP)


def prune(store: Store, after: int, now: int) -> tuple[int, int | None]:
    """Delete, from one page of deliveries after a number, those delivered a week ago or dead for a month.

    Returns their count and the number after which the next page begins; None: no more pages. The very last delivery
    always stays, because SQLite would otherwise assign its number again.
    """
    page = webhook_sql.read_delivery_times(store, after, PAGE)
    old = [row.delivery for row in page if row.next_at is None and _is_old(row.made_at, row.delivered_at, now)]
    webhook_sql.delete_deliveries(store, old)
    is_last = len(page) < PAGE or page[-1].made_at > now - KEPT
    return len(old), None if is_last else page[-1].delivery


def _is_old(made_at: int, delivered_at: int | None, now: int) -> bool:
    return made_at < now - KEPT_DEAD if delivered_at is None else delivered_at < now - KEPT


DEADLINE = 10.0  # seconds of an attempt: resolve, connect, send, and receive status and headers
CONNECT = 3.0  # seconds to connect to one address, so that the next one has its turn within the deadline
ADDRESSES = 3  # addresses of a host that are tried in turn
CLOSING = 1.0  # seconds in which connections close
GONE = 410


def sign(secret: bytes, timestamp: int, body: str) -> str:
    """The signature of a delivery: HMAC-SHA256 over timestamp (seconds since the epoch) and body."""
    return f"v1={hmac.new(secret, f'{timestamp}.{body}'.encode(), hashlib.sha256).hexdigest()}"


class Sender:
    """Sends deliveries over one HTTP client for each webhook, in the event loop of a thread. Thread-safe.

    An event loop, because an attempt can be cancelled there at any point: a receiver that sends a byte now and then
    never runs into the time-out of a single network operation.
    """

    def __init__(self, find: Resolve, *, allow_private: bool = False) -> None:
        self._find, self._allow_private = find, allow_private
        self._clients: dict[int, httpx.AsyncClient] = {}
        self._guard = threading.Lock()
        self._trust: ssl.SSLContext | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def send(
        self, hook: Webhook, secret: bytes, delivery: int, event: str, body: str, timestamp: int
    ) -> Future[DeliveryOutcome]:
        """Begin an attempt, signed with the secret of the webhook, which ends within DEADLINE seconds."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "evenmatch",
            "Evenmatch-Event": event,
            "Evenmatch-Delivery": str(delivery),
            "Evenmatch-Timestamp": str(timestamp),
            "Evenmatch-Signature": sign(secret, timestamp, body),
        }
        return asyncio.run_coroutine_threadsafe(self._send(hook, headers, body.encode()), self._started())

    async def _send(self, hook: Webhook, headers: dict[str, str], body: bytes) -> DeliveryOutcome:
        try:
            async with asyncio.timeout(DEADLINE):
                return await self._attempt(hook, headers, body)
        except TimeoutError:
            return DeliveryOutcome(f"the receiver did not answer within {DEADLINE:g} s")

    async def _attempt(self, hook: Webhook, headers: dict[str, str], body: bytes) -> DeliveryOutcome:
        """Resolve the host, check its addresses, and send.

        This is done each time, and the connection uses a checked address: a host that resolves to another address a
        moment later cannot bypass the check.
        """
        parts = check_url(hook.url)
        host = str(parts.hostname)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = await _in_thread(lambda: self._find(host, port))
        if not addresses:
            return DeliveryOutcome(f"the host {host!r} has no address")
        reason = None if self._allow_private else refusal(addresses)
        if reason is not None:
            return DeliveryOutcome(f"the host {host!r} {reason}")
        return await self._post(hook, host, addresses[:ADDRESSES], {"Host": parts.netloc, **headers}, body)

    async def _post(
        self, hook: Webhook, host: str, addresses: list[str], headers: dict[str, str], body: bytes
    ) -> DeliveryOutcome:
        client, url, problem = self._client(hook.webhook), httpx.URL(hook.url), ""
        for address in addresses:
            try:
                async with client.stream(
                    "POST",
                    url.copy_with(host=address),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": host},  # its certificate is checked against this name
                ) as response:  # the body is not read
                    status = response.status_code
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = _message(error)
                continue
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                return DeliveryOutcome(_message(error))
            else:
                return DeliveryOutcome(
                    None if 200 <= status < 300 else f"the receiver answered {status}", status == GONE
                )
        return DeliveryOutcome(problem)

    def _client(self, webhook: int) -> httpx.AsyncClient:
        with self._guard:
            if webhook not in self._clients:
                if self._trust is None:
                    self._trust = ssl.create_default_context()
                # trust_env=False: a proxy from the environment would bypass the address check.
                self._clients[webhook] = httpx.AsyncClient(
                    timeout=httpx.Timeout(DEADLINE, connect=CONNECT),
                    verify=self._trust,
                    trust_env=False,
                    follow_redirects=False,
                )
            return self._clients[webhook]

    def keep(self, webhooks: set[int]) -> None:
        """Close the connections of all webhooks except these."""
        with self._guard:
            removed = [self._clients.pop(webhook) for webhook in list(self._clients) if webhook not in webhooks]
            loop = self._loop
        if removed and loop is not None:
            asyncio.run_coroutine_threadsafe(_close(removed), loop)

    def close(self) -> None:
        """Cancel the attempts that go on, and close all connections, within some seconds."""
        with self._guard:
            loop, self._loop = self._loop, None
            clients, self._clients = list(self._clients.values()), {}
        if loop is not None:
            asyncio.run_coroutine_threadsafe(_end(clients), loop).result(3 * CLOSING)
            loop.call_soon_threadsafe(loop.stop)

    def _started(self) -> asyncio.AbstractEventLoop:
        """The event loop, which runs in a thread since the first attempt."""
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="evenmatch-deliveries", daemon=True).start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()


async def _end(clients: list[httpx.AsyncClient]) -> None:
    """Cancel all other tasks, and close the clients."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=CLOSING)
    await _close(clients)


async def _close(clients: list[httpx.AsyncClient]) -> None:
    closing = [asyncio.create_task(client.aclose()) for client in clients]
    if closing:
        await asyncio.wait(closing, timeout=CLOSING)


async def _in_thread(find: Callable[[], list[str]]) -> list[str]:
    """Resolve in a thread of its own, which is left alone if it takes too long: resolvers cannot be cancelled."""
    resolved: Future[list[str]] = Future()
    resolved.set_running_or_notify_cancel()

    def run() -> None:
        try:
            resolved.set_result(find())
        except Exception as error:
            resolved.set_exception(error)

    threading.Thread(target=run, name="evenmatch-resolver", daemon=True).start()
    return await asyncio.wrap_future(resolved)


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


AT_ONCE = 64  # deliveries in flight; a ladder that has none may start one more
LADDER = 32  # of these, to the webhooks of one ladder, or to those of all ladders
RECEIVER = 4  # of a ladder to one host and port
SLOTS_FOR_FAILING = 16  # to all receivers whose last attempt failed; each has one slot
Receiver = tuple[str | None, str]  # ladder, and host and port: what one ladder's receiver does concerns no other


class Slots:
    """The slots in use. Use it in one thread at a time."""

    def __init__(self) -> None:
        self._receivers: Counter[Receiver] = Counter()
        self._ladders: Counter[str | None] = Counter()
        self._failing: frozenset[Receiver] = frozenset()

    def has_room(self, hook: Webhook) -> bool:
        """Whether one more delivery to this webhook may start."""
        if not self._ladders[hook.ladder]:
            return True
        receiver = receiver_of(hook)
        if self._receivers.total() >= AT_ONCE or self._ladders[hook.ladder] >= LADDER:
            return False
        if receiver in self._failing:
            failing = sum(count for name, count in self._receivers.items() if name in self._failing)
            return not self._receivers[receiver] and failing < SLOTS_FOR_FAILING
        return self._receivers[receiver] < RECEIVER

    def take(self, hook: Webhook) -> None:
        """Use a slot."""
        self._receivers[receiver_of(hook)] += 1
        self._ladders[hook.ladder] += 1

    def free(self, hook: Webhook) -> None:
        """Free a slot after an attempt."""
        self._receivers -= Counter((receiver_of(hook),))
        self._ladders -= Counter((hook.ladder,))

    def set_failing(self, hooks: Iterable[Webhook]) -> None:
        """Set the webhooks whose last attempt failed."""
        self._failing = frozenset(map(receiver_of, hooks))


def receiver_of(hook: Webhook) -> Receiver:
    """The receiver of a webhook, as `("duel", "hooks.example:443")`."""
    parts = check_url(hook.url)
    return hook.ladder, f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


ROUNDS = 10  # rounds of payloads.TOGETHER events each before sending
PAUSE = 0.5  # seconds between two polls
LEASE = "webhooks"
PRUNE_EVERY = 60 * SECOND
STOPPING = 2.0  # seconds that deliveries in flight have to finish when the process stops


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
                        created += keep(store, ladder, hook, before, batch, time)
            if not batches:
                break
        return created

    def _news(self, store: Store) -> list[tuple[int, Cursor, NewEvents, list[Webhook]]]:
        """New events per ladder, grouped by webhooks with the same cursor: (ladder, cursor, news, webhooks)."""
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
            hooks = {hook.webhook: hook for hook in webhook_sql.read_all_webhooks(store)}
            failures = webhook_sql.read_all_failures(store)
            self._slots.set_failing(hook for number, hook in hooks.items() if number in failures)
            without = [
                number
                for number, hook in hooks.items()
                if waits(failures.get(number), time) or not self._slots.has_room(hook)
            ]
            return hooks, webhook_sql.read_due_deliveries(store, time, without, 2 * RECEIVER, 4 * AT_ONCE)

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
                note(store, delivery, hook, outcome, now)

    def prune(self, now: int | None = None) -> int:
        """Delete deliveries a week after they were delivered, dead ones after a month; return their number.

        Those that wait for a paused webhook are given up after a day.
        """
        time, count = self._now(now), 0
        with self._database.write() as store:
            give_up_paused(store, time)
        after: int | None = 0
        while after is not None:
            with self._database.write() as store:
                deleted, after = prune(store, after, time)
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
