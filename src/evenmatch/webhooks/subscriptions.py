"""Webhooks: URLs that subscribe to events, and the state of each delivery to them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from evenmatch.accounts.audit_entries import AuditEntry
from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.ledger import ladder_rows
from evenmatch.ledger.store import Store
from evenmatch.operations.service import Service
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.addresses import Resolve, check_url, refusal, resolve
from evenmatch.webhooks.webhook_sql import Cursor, Delivery, Webhook, WebhookFailures

__all__ = ["EVENTS", "Delivery", "Webhook", "WebhookFailures", "Webhooks"]

EVENTS = ("match.rated", "proposal.made", "match.made", "season.opened", "season.closed", "ratings.decayed")
MOST = 500  # deliveries returned at once
HOOKS = 100  # webhooks of a ladder, and of those for all ladders


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

    def check(self, url: str) -> None:
        """Check that a URL is allowed. Raises InputError. Resolves its host, which may take as long as its owner wants.

        Each delivery checks the addresses again, as the host may resolve to others by then.
        """
        parts = check_url(url)
        host = str(parts.hostname)
        reason = None if self.allow_private else refusal(self.find(host, parts.port or 443))
        if reason is not None:
            raise InputError(f"the host {host!r} {reason}")

    def add(self, url: str, events: Sequence[str], ladder: str | None = None) -> tuple[Webhook, str]:
        """Subscribe a URL that was checked to events from now on; return the webhook and its secret, shown only once.

        Raises InputError for a URL with bad syntax, UnknownNameError for an unknown event or ladder, SecretError.
        """
        check_url(url)
        unknown = next((event for event in events if event not in EVENTS), None)
        if unknown is not None:
            raise UnknownNameError("event", unknown, EVENTS)
        if not events:
            raise InputError(f"name at least one event: {', '.join(EVENTS)}")
        chosen, shown, now = sorted(set(events), key=EVENTS.index), new_webhook_secret(), self._now()
        database = self.service.database
        with database.write() as store:
            heads = store.heads() if ladder is None else [store.head(ladder)]
            if sum(hook.ladder == ladder for hook in webhook_sql.read_all_webhooks(store)) >= HOOKS:
                raise InputError(f"there are {HOOKS} webhooks for {ladder or 'all ladders'} already; remove one first")
            number = webhook_sql.insert_webhook(store, ladder, url, shown.encode(), chosen, now)
            changes = ladder_rows.last_changes(store)
            cursors = {head.ladder: Cursor(head.position, changes.get(head.ladder, 0)) for head in heads}
            webhook_sql.insert_cursors(store, number, cursors)
            self.service.note(store, str(number))
            created = _find(store, number)
        return created, shown

    def list(self) -> list[Webhook]:
        """All webhooks that were not removed, oldest first."""
        database = self.service.database
        with database.read() as store:
            return webhook_sql.read_all_webhooks(store)

    def get(self, webhook: int) -> Webhook:
        """The webhook of this number. Raises UnknownNameError."""
        with self.service.database.read() as store:
            return _find(store, webhook)

    def remove(self, webhook: int) -> Webhook:
        """Remove a webhook and cancel its pending deliveries; return it. Raises UnknownNameError."""
        database, now = self.service.database, self._now()
        with database.write() as store:
            removed = _find(store, webhook)
            webhook_sql.set_webhook_removed_at(store, webhook, now)
            webhook_sql.delete_cursors(store, webhook)
            webhook_sql.delete_failures(store, webhook)
            webhook_sql.cancel_deliveries(store, webhook, REMOVED)
            self.service.note(store)
        return removed

    def failures(self) -> dict[int, WebhookFailures]:
        """The failures of all webhooks whose last attempt failed, and their pauses."""
        with self.service.database.read() as store:
            return webhook_sql.read_all_failures(store)

    def resume(self, webhook: int) -> Webhook:
        """End the pause of a webhook, so that its deliveries are sent; return it. Raises UnknownNameError."""
        with self.service.database.write() as store:
            resumed = _find(store, webhook)
            webhook_sql.delete_failures(store, webhook)
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
        database = self.service.database
        with database.read() as store:
            _find(store, webhook)
            return tuple(webhook_sql.read_delivery_page(store, webhook, state, upto, max(1, min(limit, MOST))))

    def redeliver(self, delivery: int) -> Delivery:
        """Send a delivery again as soon as possible, whatever its state. Raises UnknownNameError, ConflictError."""
        database, now = self.service.database, self._now()
        with database.write() as store:
            stored = webhook_sql.read_delivery(store, delivery)
            if stored is None:
                raise UnknownNameError("delivery", str(delivery), [])
            if webhook_sql.read_webhook(store, stored.webhook) is None:
                raise ConflictError(f"delivery {delivery} belongs to a removed webhook and cannot be sent again")
            webhook_sql.restart_delivery(store, delivery, now)
            self.service.note(store)
        return replace(stored, attempts=0, next_at=now, delivered_at=None, error=None)

    def _now(self) -> int:
        return self.service.clock()


def new_webhook_secret() -> str:
    """A new secret of a webhook."""
    return f"whs_{secrets.token_urlsafe(32)}"


REMOVED = "the webhook was removed"


def _find(store: Store, webhook: int) -> Webhook:
    known = webhook_sql.read_webhook(store, webhook)
    if known is None:
        raise UnknownNameError(
            "webhook", str(webhook), [str(hook.webhook) for hook in webhook_sql.read_all_webhooks(store)]
        )
    return known
