"""Webhooks: URLs that subscribe to events, and the state of the deliveries to them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.ledger import ladder_rows
from evenmatch.ledger.store import Store
from evenmatch.operations.service import Service
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.addresses import Resolve, check_public, check_url, port_of, resolve
from evenmatch.webhooks.webhook_sql import Cursor, Delivery, Webhook

__all__ = ["EVENTS", "Delivery", "Webhook", "Webhooks"]

SERVER_WANTED = "server.wanted"  # not delivered: asked while players wait, see `allocation`
EVENTS = (
    *("match.rated", "proposal.made", "match.made", "season.opened", "season.closed", "ratings.decayed"),
    SERVER_WANTED,
)
PAGE_LIMIT = 500  # deliveries returned at once
WEBHOOKS_PER_LADDER = 100  # also the limit of webhooks for all ladders


class Webhooks:
    """The webhooks of a database. Thread-safe.

    allow_private  allow addresses that are not public
    find           resolves a host to its addresses
    """

    def __init__(self, service: Service, *, allow_private: bool = False, find: Resolve = resolve) -> None:
        self.service, self.allow_private, self.find = service, allow_private, find

    def noting(self, audit_entry: AuditEntry) -> Webhooks:
        """A copy whose changes are recorded in the audit trail, in the same transaction."""
        return Webhooks(self.service.noting(audit_entry), allow_private=self.allow_private, find=self.find)

    def check(self, url: str) -> list[str]:
        """Check a URL, resolve its host and return the host's addresses. A slow name server can make this take long.

        Raises InputError for bad syntax or an address that is not allowed.
        """
        parts = check_url(url)
        host = str(parts.hostname)
        addresses = self.find(host, port_of(parts))
        if not self.allow_private:
            check_public(host, addresses)
        return addresses

    def add(self, url: str, events: Sequence[str], ladder: str | None = None) -> tuple[Webhook, str]:
        """Subscribe a checked URL to events from now on; return the webhook and its secret, which is shown only once.

        Raises InputError for a URL with bad syntax or a ladder with too many webhooks, UnknownNameError for an unknown
        event or ladder, SecretError.
        """
        check_url(url)
        unknown = next((event for event in events if event not in EVENTS), None)
        if unknown is not None:
            raise UnknownNameError("event", unknown, EVENTS)
        if not events:
            raise InputError(f"name at least one event: {', '.join(EVENTS)}")
        chosen, secret, now = sorted(set(events), key=EVENTS.index), new_webhook_secret(), self.service.clock()
        with self.service.database.write() as store:
            heads = store.heads() if ladder is None else [store.head(ladder)]
            if sum(hook.ladder == ladder for hook in webhook_sql.read_all_webhooks(store)) >= WEBHOOKS_PER_LADDER:
                raise InputError(
                    f"there are {WEBHOOKS_PER_LADDER} webhooks for {ladder or 'all ladders'} already; remove one first"
                )
            number = webhook_sql.insert_webhook(store, ladder, url, secret.encode(), chosen, now)
            changes = ladder_rows.last_changes(store)
            cursors = {head.ladder: Cursor(head.position, changes.get(head.ladder, 0)) for head in heads}
            webhook_sql.insert_cursors(store, number, cursors)
            self.service.note(store, str(number))
            return _find(store, number), secret

    def list(self) -> list[Webhook]:
        """All webhooks that were not removed, oldest first."""
        with self.service.database.read() as store:
            return webhook_sql.read_all_webhooks(store)

    def get(self, webhook: int) -> Webhook:
        """The webhook of this number. Raises UnknownNameError."""
        with self.service.database.read() as store:
            return _find(store, webhook)

    def remove(self, webhook: int) -> Webhook:
        """Remove a webhook and cancel its pending deliveries; return it. Raises UnknownNameError."""
        with self.service.database.write() as store:
            removed = _find(store, webhook)
            webhook_sql.remove_webhook(store, webhook, self.service.clock())
            self.service.note(store)
        return removed

    def failing(self) -> dict[int, Delivery]:
        """The delivery at which each failing webhook is stuck, by webhook."""
        with self.service.database.read() as store:
            return {first.webhook: first for first in webhook_sql.read_first_pending(store) if first.attempts}

    def resume(self, webhook: int) -> Webhook:
        """Make the next attempt of a failing webhook at once; return the webhook. Raises UnknownNameError."""
        with self.service.database.write() as store:
            resumed = _find(store, webhook)
            webhook_sql.retry_at(store, webhook, self.service.clock())
            self.service.note(store)
        return resumed

    def deliveries(
        self, webhook: int, state: str | None = None, before: int | None = None, limit: int = 50
    ) -> tuple[Delivery, ...]:
        """The deliveries of a webhook, newest first; `before`: only those older than this delivery.

        state  pending, delivered or dead; None: all
        """
        if state is not None and state not in webhook_sql.STATES:
            raise UnknownNameError("state of a delivery", state, webhook_sql.STATES)
        upto = 2**62 if before is None else before
        with self.service.database.read() as store:
            _find(store, webhook)
            return tuple(webhook_sql.read_delivery_page(store, webhook, state, upto, max(1, min(limit, PAGE_LIMIT))))

    def redeliver(self, delivery: int) -> Delivery:
        """Send a delivery again as soon as possible, whatever its state. Raises UnknownNameError, ConflictError."""
        with self.service.database.write() as store:
            stored = webhook_sql.read_delivery(store, delivery)
            if stored is None:
                raise UnknownNameError("delivery", str(delivery), [])
            if webhook_sql.read_webhook(store, stored.webhook) is None:
                raise ConflictError(f"delivery {delivery} belongs to a removed webhook and cannot be sent again")
            restarted = webhook_sql.restart_delivery(store, delivery, self.service.clock())
            self.service.note(store)
        return restarted


def new_webhook_secret() -> str:
    """A new secret of a webhook."""
    return f"whs_{secrets.token_urlsafe(32)}"


def _find(store: Store, webhook: int) -> Webhook:
    known = webhook_sql.read_webhook(store, webhook)
    if known is None:
        others = [str(hook.webhook) for hook in webhook_sql.read_all_webhooks(store)]
        raise UnknownNameError("webhook", str(webhook), others)
    return known
