"""Who is to be told what happens: URLs to which the service sends, and what became of each delivery."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store
from evenmatch.service.callers.deeds import Deed
from evenmatch.service.hooks.addresses import Resolve, check_url, refusal, resolve
from evenmatch.service.service import Service

EVENTS = ("match.rated", "proposal.made", "match.made", "season.opened", "season.closed")
PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"
MOST = 500  # deliveries told at once

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
    """A URL that is told of events. ladder: None for all of them; secret: signs what is sent, and is shown once."""

    webhook: int
    ladder: str | None
    url: str
    events: tuple[str, ...]
    created_at: int
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Delivery:
    """What a webhook is told once.

    state    pending; delivered; dead: it was tried for the last time
    body     JSON as it is sent
    next_at  when it is tried (again), None where it is over
    error    what went wrong the last time
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
    """The webhooks of a database. Safe to share between threads.

    allow_private  the operator lets them lead to addresses that are not public, too
    find           the addresses of a host
    """

    def __init__(self, service: Service, *, allow_private: bool = False, find: Resolve = resolve) -> None:
        self.service, self.allow_private, self.find = service, allow_private, find

    def noting(self, deed: Deed) -> Webhooks:
        """The same; what is changed by it is noted in the audit trail, in the same transaction."""
        return Webhooks(self.service.noting(deed), allow_private=self.allow_private, find=self.find)

    def add(self, url: str, events: Sequence[str], ladder: str | None = None) -> tuple[Webhook, str]:
        """Tell a URL what happens from now on; the webhook, and its secret, which is not shown again.

        Raises InputError for a URL that nothing is sent to, UnknownNameError for an event or ladder that is not there.
        """
        parts = check_url(url)
        host = str(parts.hostname)
        reason = None if self.allow_private else refusal(self.find(host, parts.port or 443))
        if reason is not None:
            raise InputError(f"the host {host!r} {reason}; accepted are public ones, unless the operator allows others")
        unknown = next((event for event in events if event not in EVENTS), None)
        if unknown is not None:
            raise UnknownNameError("event", unknown, EVENTS)
        if not events:
            raise InputError(f"no event is named; accepted are one or more of {', '.join(EVENTS)}")
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
        """Those that were not removed, the oldest first."""
        database = self.service.database
        with database.read() as connection:
            return webhooks(Store(connection, database.rows))

    def get(self, webhook: int) -> Webhook:
        """The one of this number. Raises UnknownNameError."""
        with self.service.database.read() as connection:
            return _find(Store(connection, self.service.database.rows), webhook)

    def remove(self, webhook: int) -> Webhook:
        """Tell it nothing any more, what waits for it included. Raises UnknownNameError."""
        database, now = self.service.database, self._now()
        with database.write() as connection:
            store = Store(connection, database.rows)
            found = _find(store, webhook)
            store.run("UPDATE webhook SET removed_at = ? WHERE webhook = ?", now, webhook)
            store.run("DELETE FROM told WHERE webhook = ?", webhook)
            sql = "UPDATE delivery SET next_at = NULL, error = ? WHERE webhook = ? AND next_at IS NOT NULL"
            store.run(sql, REMOVED, webhook)
            self.service.note(store)
        return found

    def deliveries(
        self, webhook: int, state: str | None = None, before: int | None = None, limit: int = 50
    ) -> tuple[Delivery, ...]:
        """What a webhook was told, the newest first; `before`: older than that delivery.

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
        """Send it again, as soon as may be, whatever became of it. Raises UnknownNameError, ConflictError."""
        database, now = self.service.database, self._now()
        with database.write() as connection:
            store = Store(connection, database.rows)
            found = store.all(f"{_DELIVERY} delivery = ?", delivery)
            if not found:
                raise UnknownNameError("delivery", str(delivery), [])
            if not any(hook.webhook == found[0][1] for hook in webhooks(store)):
                raise ConflictError(
                    f"delivery {delivery} is of a webhook that was removed; accepted is one that is there"
                )
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
    """Those that were not removed, the oldest first."""
    return [_webhook(row) for row in store.all(f"{_HOOK} ORDER BY webhook")]


def _find(store: Store, webhook: int) -> Webhook:
    found = store.all(f"{_HOOK} AND webhook = ?", webhook)
    if not found:
        raise UnknownNameError("webhook", str(webhook), [str(one.webhook) for one in webhooks(store)])
    return _webhook(found[0])


def _webhook(row: Row) -> Webhook:
    return Webhook(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4], bytes(row[5]))
