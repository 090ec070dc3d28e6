"""Rows of the tables `webhook`, `delivery` and `told`, the last event for which each webhook has deliveries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evenmatch.ledger import live_schema, secret_rows
from evenmatch.ledger.secrets import Sealer
from evenmatch.ledger.store import Row, Store
from evenmatch.times import Time

_TABLE = "webhook"
_WEBHOOKS_READ = "SELECT webhook, ladder, url, events, created_at, secret FROM webhook WHERE removed_at IS NULL"
REMOVED = "the webhook was removed"


@dataclass(frozen=True)
class Webhook:
    """A URL that receives events.

    ladder  null: events of all ladders
    sealed  the encrypted secret that signs the deliveries
    """

    webhook: int
    ladder: str | None
    url: str
    events: tuple[str, ...]
    created_at: Time
    sealed: bytes = field(repr=False)

    def secret(self, sealer: Sealer) -> bytes:
        """The secret that signs the deliveries. Raises SecretError."""
        return sealer.open(self.sealed, _TABLE, self.webhook)


def read_all_webhooks(store: Store) -> list[Webhook]:
    """All webhooks that were not removed, oldest first."""
    return [_webhook(row) for row in store.all(f"{_WEBHOOKS_READ} ORDER BY webhook")]


def read_webhook(store: Store, webhook: int) -> Webhook | None:
    """The webhook of this number; None if there is none, or it was removed."""
    rows = store.all(f"{_WEBHOOKS_READ} AND webhook = ?", webhook)
    return _webhook(rows[0]) if rows else None


def insert_webhook(store: Store, ladder: str | None, url: str, secret: bytes, events: Sequence[str], now: int) -> int:
    """Insert a new webhook and return its number. Raises SecretError."""
    sql = "INSERT INTO webhook (ladder, url, secret, events, created_at) VALUES (?, ?, ?, ?, ?) RETURNING webhook"
    number: int = store.all(sql, ladder, url, b"", json.dumps(events), now)[0][0]
    set_secret(store, number, secret)
    return number


def set_secret(store: Store, webhook: int, secret: bytes) -> None:
    """Replace the secret of a webhook. Raises SecretError."""
    sealed = secret_rows.sealer(store).seal(secret, _TABLE, webhook)
    store.run("UPDATE webhook SET secret = ? WHERE webhook = ?", sealed, webhook)


def remove_webhook(store: Store, webhook: int, now: int) -> None:
    """Mark a webhook as removed, delete its secret, and cancel its pending deliveries."""
    store.run("UPDATE webhook SET removed_at = ?, secret = ? WHERE webhook = ?", now, b"", webhook)
    store.run("DELETE FROM told WHERE webhook = ?", webhook)
    give_up_deliveries(store, webhook, 2**62, REMOVED)


def _webhook(row: Row) -> Webhook:
    return Webhook(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4], bytes(row[5]))


PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"
_STATES = {
    PENDING: "next_at IS NOT NULL",
    DELIVERED: "next_at IS NULL AND delivered_at IS NOT NULL",
    DEAD: "next_at IS NULL AND delivered_at IS NULL",
}
STATES = tuple(_STATES)
_COLUMNS = "delivery, webhook, event, body, made_at, attempts, next_at, delivered_at, error"
_DELIVERIES_READ = f"SELECT {_COLUMNS} FROM delivery WHERE"


@dataclass(frozen=True)
class Delivery:
    """One event to send to one webhook, and the state of its delivery.

    body      the JSON text that is sent
    made_at   when it was created, or last sent again by an operator
    attempts  made since then
    next_at   when the next attempt is made; null: there is none
    error     why the last attempt failed
    """

    delivery: int
    webhook: int
    event: str
    body: str
    made_at: Time
    attempts: int
    next_at: Time | None
    delivered_at: Time | None
    error: str | None

    @property
    def state(self) -> str:
        """Pending, delivered or dead (given up)."""
        if self.next_at is not None:
            return PENDING
        return DEAD if self.delivered_at is None else DELIVERED


def read_delivery(store: Store, delivery: int) -> Delivery | None:
    """The delivery of this number; None if there is none."""
    rows = store.all(f"{_DELIVERIES_READ} delivery = ?", delivery)
    return Delivery(*rows[0]) if rows else None


def read_delivery_page(store: Store, webhook: int, state: str | None, before: int, limit: int) -> list[Delivery]:
    """The deliveries of a webhook with smaller numbers than `before`, newest first. state: of STATES; None: all."""
    where = f"{_DELIVERIES_READ} webhook = ? AND delivery < ? AND {'1 = 1' if state is None else _STATES[state]}"
    return [Delivery(*row) for row in store.all(f"{where} ORDER BY delivery DESC LIMIT ?", webhook, before, limit)]


def read_first_pending(store: Store) -> list[Delivery]:
    """The oldest pending delivery of each webhook that has one."""
    sql = (
        f"{_DELIVERIES_READ} delivery IN (SELECT (SELECT MIN(pending.delivery) FROM delivery AS pending WHERE "
        "pending.webhook = webhook.webhook AND pending.next_at IS NOT NULL) FROM webhook WHERE removed_at IS NULL)"
    )
    return [Delivery(*row) for row in store.all(sql)]


def read_pending(store: Store, webhook: int, limit: int) -> list[Delivery]:
    """The oldest pending deliveries of a webhook, in order."""
    where = f"{_DELIVERIES_READ} webhook = ? AND next_at IS NOT NULL"
    return [Delivery(*row) for row in store.all(f"{where} ORDER BY delivery LIMIT ?", webhook, limit)]


def count_waiting_deliveries(store: Store) -> int:
    """The number of pending deliveries."""
    count: int = store.all("SELECT COUNT(*) FROM delivery WHERE next_at IS NOT NULL")[0][0]
    return count


def count_dead_deliveries(store: Store) -> int:
    """The number of deliveries that were given up."""
    count: int = store.all(f"SELECT COUNT(*) FROM delivery WHERE {_STATES[DEAD]}")[0][0]
    return count


def insert_deliveries(store: Store, webhook: int, events: Sequence[tuple[str, str]], now: int) -> None:
    """Insert deliveries of events, as (event, JSON), to a webhook, due now."""
    rows = [(webhook, event, body, now, 0, now) for event, body in events]
    store.insert(live_schema.delivery, ("webhook", "event", "body", "made_at", "attempts", "next_at"), rows)


def count_attempt(
    store: Store, delivery: int, *, next_at: int | None, delivered_at: int | None, error: str | None
) -> None:
    """Count an attempt of a pending delivery and store its outcome; a delivery that is not pending stays as it is."""
    store.run(
        "UPDATE delivery SET attempts = attempts + 1, next_at = ?, delivered_at = ?, error = ? "
        "WHERE delivery = ? AND next_at IS NOT NULL",
        *(next_at, delivered_at, error, delivery),
    )


def restart_delivery(store: Store, delivery: int, now: int) -> Delivery:
    """Make a delivery pending again, as if it had just been created, and return it."""
    sql = "UPDATE delivery SET made_at = ?, attempts = 0, next_at = ?, delivered_at = NULL, error = NULL"
    return Delivery(*store.all(f"{sql} WHERE delivery = ? RETURNING {_COLUMNS}", now, now, delivery)[0])


def retry_at(store: Store, webhook: int, time: int) -> None:
    """Set the time of the next attempt of a webhook's pending deliveries."""
    store.run("UPDATE delivery SET next_at = ? WHERE webhook = ? AND next_at IS NOT NULL", time, webhook)


def give_up_deliveries(store: Store, webhook: int, before: int, error: str) -> None:
    """Give up the pending deliveries of a webhook that were created before this time, with this error."""
    store.run(
        "UPDATE delivery SET next_at = NULL, error = ? WHERE webhook = ? AND next_at IS NOT NULL AND made_at < ?",
        *(error, webhook, before),
    )


def give_up_orphaned_deliveries(store: Store) -> None:
    """Give up pending deliveries of removed webhooks, which were stored while the webhook was being removed."""
    store.run(
        "UPDATE delivery SET next_at = NULL, error = ? WHERE next_at IS NOT NULL "
        "AND webhook IN (SELECT webhook FROM webhook WHERE removed_at IS NOT NULL)",
        REMOVED,
    )


def delete_old_deliveries(store: Store, before: int, dead_before: int, limit: int) -> int:
    """Delete up to `limit` arrived deliveries made before a time, and dead ones made before `dead_before`.

    Return how many. The latest delivery always stays: SQLite would otherwise assign its number again.
    """
    sql = (
        "SELECT delivery FROM delivery WHERE made_at < ? AND (delivered_at IS NOT NULL OR made_at < ?) "
        "AND next_at IS NULL AND delivery < (SELECT MAX(delivery) FROM delivery) ORDER BY made_at LIMIT ?"
    )
    old = [row[0] for row in store.all(sql, before, dead_before, limit)]
    store.run_among("DELETE FROM delivery WHERE delivery IN ({})", (), old)
    return len(old)


_CURSOR_COLUMNS = ("ladder", "webhook", "position", "change")


class Cursor(NamedTuple):
    """The last ledger event (position) and the last queue change for which a webhook has deliveries."""

    position: int
    change: int


def read_cursors(store: Store) -> dict[tuple[int, int], Cursor]:
    """All cursors by (ladder, webhook)."""
    rows = store.all("SELECT ladder, webhook, position, change FROM told")
    return {row[:2]: Cursor(*row[2:]) for row in rows}


def insert_cursors(store: Store, webhook: int, cursors: Mapping[int, Cursor]) -> None:
    """Insert the cursors of a new webhook, by ladder."""
    store.insert(live_schema.told, _CURSOR_COLUMNS, [(ladder, webhook, *at) for ladder, at in cursors.items()])


def move_cursor(store: Store, ladder: int, webhook: int, before: Cursor, after: Cursor) -> bool:
    """Move a webhook's cursor if it stands at `before`; without a row, it stands at 0, 0. Return whether it did."""
    store.upsert(live_schema.told, _CURSOR_COLUMNS, [(ladder, webhook, 0, 0)], same=True)
    moved = store.all(
        "UPDATE told SET position = ?, change = ? WHERE ladder = ? AND webhook = ? AND position = ? "
        "AND change = ? RETURNING webhook",
        *(*after, ladder, webhook, *before),
    )
    return bool(moved)
