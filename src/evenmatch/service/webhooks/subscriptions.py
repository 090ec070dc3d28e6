"""Webhooks: URLs that subscribe to events, and the state of each delivery to them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.service import Service
from evenmatch.service.webhooks.addresses import Resolve, check_url, refusal, resolve

EVENTS = ("match.rated", "proposal.made", "match.made", "season.opened", "season.closed")
PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"
MOST = 500  # deliveries returned at once

_STATES = {
    PENDING: "next_at IS NOT NULL",
    DELIVERED: "next_at IS NULL AND delivered_at IS NOT NULL",
    DEAD: "next_at IS NULL AND delivered_at IS NULL",
}
_HOOK = "SELECT webhook, ladder, url, events, created_at, secret FROM webhook WHERE removed_at IS NULL"
_DELIVERY = (
    "SELECT delivery, webhook, event, body, made_at, attempts, next_at, delivered_at, error FROM delivery WHERE "
)


@dataclass(frozen=True)
class Webhook:
    """A URL that receives events. ladder: None for all ladders; secret: signs the deliveries, shown only once."""

    webhook: int
    ladder: str | None
    url: str
    events: tuple[str, ...]
    created_at: int
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Delivery:
    """One event sent to one webhook.

    state    pending, delivered, or dead: the last attempt has failed
    body     the JSON text that is sent
    next_at  time of the next attempt; None if there is none
    error    error of the last attempt
    """

    delivery: int
    webhook: int
    event: str
    body: str
    made_at: int
    attempts: int
    next_at: int | None
    delivered_at: int | None
    error: str | None

    @property
    def state(self) -> str:
        """Pending, delivered or dead."""
        if self.next_at is not None:
            return PENDING
        return DEAD if self.delivered_at is None else DELIVERED


class Webhooks:
    """The webhooks of a database. Thread-safe.

    allow_private  whether webhooks may use addresses that are not public
    find           resolves a host to its addresses
    """

    def __init__(self, service: Service, *, allow_private: bool = False, find: Resolve = resolve) -> None:
        self.service, self.allow_private, self.find = service, allow_private, find

    def noting(self, audit_entry: AuditEntry) -> Webhooks:
        """A copy whose changes are recorded in the audit trail, in the same transaction."""
        return Webhooks(self.service.noting(audit_entry), allow_private=self.allow_private, find=self.find)

    def add(self, url: str, events: Sequence[str], ladder: str | None = None) -> tuple[Webhook, str]:
        """Subscribe a URL to events from now on; return the webhook and its secret, which is not shown again.

        Raises InputError for a URL that is not allowed, UnknownNameError for an unknown event or ladder.
        """
        parts = check_url(url)
        host = str(parts.hostname)
        reason = None if self.allow_private else refusal(self.find(host, parts.port or 443))
        if reason is not None:
            raise InputError(
                f"the host {host!r} {reason}; only public addresses are allowed, unless the operator permits others"
            )
        unknown = next((event for event in events if event not in EVENTS), None)
        if unknown is not None:
            raise UnknownNameError("event", unknown, EVENTS)
        if not events:
            raise InputError(f"name at least one event: {', '.join(EVENTS)}")
        chosen, shown, now = sorted(set(events), key=EVENTS.index), f"whs_{secrets.token_urlsafe(32)}", self._now()
        database = self.service.database
        with database.write() as connection:
            store = Store(connection, database.rows)
            heads = store.heads() if ladder is None else [store.head(ladder)]
            sql = (
                "INSERT INTO webhook (ladder, url, secret, events, created_at) VALUES (?, ?, ?, ?, ?) RETURNING webhook"
            )
            number: int = store.all(sql, ladder, url, shown.encode(), json.dumps(chosen), now)[0][0]
            changes: dict[int, int] = dict(store.all("SELECT ladder, change FROM line"))
            rows = [(head.ladder, number, head.position, changes.get(head.ladder, 0)) for head in heads]
            columns = ("ladder", "webhook", "position", "change")
            store.rows.insert(connection, live_schema.told, columns, rows)
            self.service.note(store, str(number))
        return Webhook(number, ladder, url, tuple(chosen), now, shown.encode()), shown

    def list(self) -> list[Webhook]:
        """All webhooks that were not removed, oldest first."""
        database = self.service.database
        with database.read() as connection:
            return webhooks(Store(connection, database.rows))

    def get(self, webhook: int) -> Webhook:
        """The webhook of this number. Raises UnknownNameError."""
        with self.service.database.read() as connection:
            return _find(Store(connection, self.service.database.rows), webhook)

    def remove(self, webhook: int) -> Webhook:
        """Remove a webhook and cancel its pending deliveries; return it. Raises UnknownNameError."""
        database, now = self.service.database, self._now()
        with database.write() as connection:
            store = Store(connection, database.rows)
            removed = _find(store, webhook)
            store.run("UPDATE webhook SET removed_at = ? WHERE webhook = ?", now, webhook)
            store.run("DELETE FROM told WHERE webhook = ?", webhook)
            sql = "UPDATE delivery SET next_at = NULL, error = ? WHERE webhook = ? AND next_at IS NOT NULL"
            store.run(sql, REMOVED, webhook)
            self.service.note(store)
        return removed

    def deliveries(
        self, webhook: int, state: str | None = None, before: int | None = None, limit: int = 50
    ) -> tuple[Delivery, ...]:
        """The deliveries of a webhook, newest first; `before`: only those older than this delivery.

        state  pending, delivered or dead; None: all
        """
        if state is not None and state not in _STATES:
            raise UnknownNameError("state of a delivery", state, _STATES)
        where = f"{_DELIVERY} webhook = ? AND delivery < ? AND {'1 = 1' if state is None else _STATES[state]}"
        upto = 2**62 if before is None else before
        database = self.service.database
        with database.read() as connection:
            store = Store(connection, database.rows)
            _find(store, webhook)
            rows = store.all(f"{where} ORDER BY delivery DESC LIMIT ?", webhook, upto, max(1, min(limit, MOST)))
        return tuple(Delivery(*row) for row in rows)

    def redeliver(self, delivery: int) -> Delivery:
        """Send a delivery again as soon as possible, whatever its state. Raises UnknownNameError, ConflictError."""
        database, now = self.service.database, self._now()
        with database.write() as connection:
            store = Store(connection, database.rows)
            rows = store.all(f"{_DELIVERY} delivery = ?", delivery)
            if not rows:
                raise UnknownNameError("delivery", str(delivery), [])
            if not any(hook.webhook == rows[0][1] for hook in webhooks(store)):
                raise ConflictError(f"delivery {delivery} belongs to a removed webhook and cannot be sent again")
            store.run(
                "UPDATE delivery SET attempts = 0, next_at = ?, delivered_at = NULL, error = NULL WHERE delivery = ?",
                *(now, delivery),
            )
            self.service.note(store)
            return Delivery(*store.all(f"{_DELIVERY} delivery = ?", delivery)[0])

    def _now(self) -> int:
        return self.service.clock()


REMOVED = "the webhook was removed"


def webhooks(store: Store) -> list[Webhook]:
    """All webhooks that were not removed, oldest first."""
    return [_webhook(row) for row in store.all(f"{_HOOK} ORDER BY webhook")]


def _find(store: Store, webhook: int) -> Webhook:
    rows = store.all(f"{_HOOK} AND webhook = ?", webhook)
    if not rows:
        raise UnknownNameError("webhook", str(webhook), [str(known.webhook) for known in webhooks(store)])
    return _webhook(rows[0])


def _webhook(row: Row) -> Webhook:
    return Webhook(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4], bytes(row[5]))
