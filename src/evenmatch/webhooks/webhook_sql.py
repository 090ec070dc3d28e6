"""Rows of the tables `webhook`, `delivery`, `told` (how far each webhook is) and `webhook_failure`.

A webhook is a URL that subscribes to events. A removed one keeps its row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evenmatch.ledger import live_schema, secret_checks
from evenmatch.ledger.rows import Row
from evenmatch.ledger.secrets import Sealer
from evenmatch.ledger.store import Store
from evenmatch.times import Time

_TABLE = "webhook"
_WEBHOOKS_READ = "SELECT webhook, ladder, url, events, created_at, secret FROM webhook WHERE removed_at IS NULL"


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
    """Give a webhook a secret, or another one. Raises SecretError."""
    _write_secret(store, webhook, secret_checks.sealer(store), secret)


def set_webhook_removed_at(store: Store, webhook: int, now: int) -> None:
    """Mark a webhook as removed, and delete its secret."""
    store.run("UPDATE webhook SET removed_at = ?, secret = ? WHERE webhook = ?", now, b"", webhook)


def reseal_webhooks(store: Store, old: Sealer, new: Sealer) -> None:
    """Seal all secrets with another master secret."""
    for webhook, sealed in store.all("SELECT webhook, secret FROM webhook WHERE removed_at IS NULL"):
        _write_secret(store, webhook, new, old.open(bytes(sealed), _TABLE, webhook))


def _write_secret(store: Store, webhook: int, sealer: Sealer, secret: bytes) -> None:
    store.run("UPDATE webhook SET secret = ? WHERE webhook = ?", sealer.seal(secret, _TABLE, webhook), webhook)


def _webhook(row: Row) -> Webhook:
    return Webhook(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4], bytes(row[5]))


PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"

_STATES = {
    PENDING: "next_at IS NOT NULL",
    DELIVERED: "next_at IS NULL AND delivered_at IS NOT NULL",
    DEAD: "next_at IS NULL AND delivered_at IS NULL",
}
STATES = tuple(_STATES)
_DELIVERIES_READ = (
    "SELECT delivery, webhook, event, body, made_at, attempts, next_at, delivered_at, error FROM delivery WHERE "
)


@dataclass(frozen=True)
class Delivery:
    """One event to send to one webhook, and the state of its delivery.

    body     the JSON text that is sent
    next_at  when the next attempt is made; null: there is none
    error    error of the last attempt
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
        """Pending, delivered or dead."""
        if self.next_at is not None:
            return PENDING
        return DEAD if self.delivered_at is None else DELIVERED


class DueDelivery(NamedTuple):
    """A delivery that is due."""

    delivery: int
    webhook: int
    event: str
    body: str
    attempts: int


class DeliveryTimes(NamedTuple):
    """When a delivery was created, when its next attempt is due, and when it was delivered."""

    delivery: int
    made_at: int
    next_at: int | None
    delivered_at: int | None


def read_delivery(store: Store, delivery: int) -> Delivery | None:
    """The delivery of this number; None if there is none."""
    rows = store.all(f"{_DELIVERIES_READ} delivery = ?", delivery)
    return Delivery(*rows[0]) if rows else None


def read_delivery_page(store: Store, webhook: int, state: str | None, before: int, limit: int) -> list[Delivery]:
    """The deliveries of a webhook with smaller numbers than `before`, newest first. state: of STATES; None: all."""
    where = f"{_DELIVERIES_READ} webhook = ? AND delivery < ? AND {'1 = 1' if state is None else _STATES[state]}"
    return [Delivery(*row) for row in store.all(f"{where} ORDER BY delivery DESC LIMIT ?", webhook, before, limit)]


def read_due_deliveries(store: Store, now: int, without: Sequence[int], each: int, most: int) -> list[DueDelivery]:
    """Due deliveries, oldest first, without those of some webhooks: at most `each` of one and `most` in total."""
    others = f" AND webhook NOT IN ({', '.join('?' * len(without))})" if without else ""
    sql = (
        "SELECT delivery FROM (SELECT delivery, ROW_NUMBER() OVER (PARTITION BY webhook ORDER BY delivery) AS turn "
        f"FROM delivery WHERE next_at <= ?{others}) AS due WHERE turn <= ? ORDER BY turn, delivery LIMIT ?"
    )
    chosen = [row[0] for row in store.all(sql, now, *without, each, most)]
    wanted = "SELECT delivery, webhook, event, body, attempts FROM delivery WHERE delivery IN ({})"
    return sorted(DueDelivery(*row) for row in store.among(wanted, (), chosen))


def read_delivery_times(store: Store, after: int, limit: int) -> list[DeliveryTimes]:
    """The times of the first `limit` deliveries with larger numbers than `after`, by number, without the very last."""
    sql = (
        "SELECT delivery, made_at, next_at, delivered_at FROM delivery WHERE delivery > ? "
        "AND delivery < (SELECT MAX(delivery) FROM delivery) ORDER BY delivery LIMIT ?"
    )
    return [DeliveryTimes(*row) for row in store.all(sql, after, limit)]


def count_waiting_deliveries(store: Store) -> int:
    """The number of deliveries that wait for their next attempt."""
    count: int = store.all("SELECT COUNT(*) FROM delivery WHERE next_at IS NOT NULL")[0][0]
    return count


def count_dead_deliveries(store: Store) -> int:
    """The number of deliveries that were given up."""
    sql = "SELECT COUNT(*) FROM delivery WHERE next_at IS NULL AND delivered_at IS NULL"
    count: int = store.all(sql)[0][0]
    return count


def insert_deliveries(store: Store, webhook: int, events: Sequence[tuple[str, str]], now: int) -> None:
    """Insert deliveries of events, as (event, JSON), to a webhook, due now."""
    rows = [(webhook, event, body, now, 0, now) for event, body in events]
    columns = ("webhook", "event", "body", "made_at", "attempts", "next_at")
    store.insert(live_schema.delivery, columns, rows)


def count_attempt(
    store: Store, delivery: int, *, next_at: int | None, delivered_at: int | None, error: str | None
) -> None:
    """Count an attempt of a pending delivery and write its outcome; nothing if it is not pending any more."""
    store.run(
        "UPDATE delivery SET attempts = attempts + 1, next_at = ?, delivered_at = ?, error = ? "
        "WHERE delivery = ? AND next_at IS NOT NULL",
        *(next_at, delivered_at, error, delivery),
    )


def restart_delivery(store: Store, delivery: int, next_at: int) -> None:
    """Make a delivery pending again, without attempts, whatever its state."""
    store.run(
        "UPDATE delivery SET attempts = 0, next_at = ?, delivered_at = NULL, error = NULL WHERE delivery = ?",
        *(next_at, delivery),
    )


def cancel_deliveries(store: Store, webhook: int, error: str) -> None:
    """Make the pending deliveries of a webhook dead, with this error."""
    store.run("UPDATE delivery SET next_at = NULL, error = ? WHERE webhook = ? AND next_at IS NOT NULL", error, webhook)


def give_up_deliveries(store: Store, webhook: int, before: int, error: str) -> None:
    """Make the pending deliveries of a webhook that were created before this time dead, with this error."""
    store.run(
        "UPDATE delivery SET next_at = NULL, error = ? WHERE webhook = ? AND next_at IS NOT NULL AND made_at < ?",
        *(error, webhook, before),
    )


def delete_deliveries(store: Store, deliveries: Sequence[int]) -> None:
    """Delete the deliveries of these numbers."""
    store.run_among("DELETE FROM delivery WHERE delivery IN ({})", (), deliveries)


_WEBHOOK_CURSORS_COLUMNS = ("ladder", "webhook", "position", "change")


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
    rows = [(ladder, webhook, *cursor) for ladder, cursor in cursors.items()]
    store.insert(live_schema.told, _WEBHOOK_CURSORS_COLUMNS, rows)


def move_cursor(store: Store, ladder: int, webhook: int, before: Cursor, after: Cursor) -> bool:
    """Move a webhook's cursor if it stands at `before`; without a row, it stands at 0, 0. Return whether it did."""
    store.upsert(live_schema.told, _WEBHOOK_CURSORS_COLUMNS, [(ladder, webhook, 0, 0)], same=True)
    moved = store.all(
        "UPDATE told SET position = ?, change = ? WHERE ladder = ? AND webhook = ? AND position = ? "
        "AND change = ? RETURNING webhook",
        *(*after, ladder, webhook, *before),
    )
    return bool(moved)


def delete_cursors(store: Store, webhook: int) -> None:
    """Delete all cursors of a webhook."""
    store.run("DELETE FROM told WHERE webhook = ?", webhook)


_WEBHOOK_FAILURES_COLUMNS = ("webhook", "failures", "failed_at", "paused_at", "probe_at")


class WebhookFailures(NamedTuple):
    """The failed attempts of a webhook since its last success.

    failures   number of failed attempts
    failed_at  when the first of them failed
    paused_at  since when deliveries wait because the receiver kept failing; null: deliveries are sent
    probe_at   when one delivery is sent to probe a paused receiver; the pause ends if it arrives
    """

    failures: int
    failed_at: Time
    paused_at: Time | None = None
    probe_at: Time | None = None


def read_all_failures(store: Store) -> dict[int, WebhookFailures]:
    """The failures of all webhooks that have any."""
    rows = store.all("SELECT webhook, failures, failed_at, paused_at, probe_at FROM webhook_failure")
    return {row[0]: WebhookFailures(*row[1:]) for row in rows}


def read_failures(store: Store, webhook: int) -> WebhookFailures | None:
    """The failures of a webhook; None if its last attempt succeeded, or there was none."""
    sql = "SELECT failures, failed_at, paused_at, probe_at FROM webhook_failure WHERE webhook = ?"
    rows = store.all(sql, webhook)
    return WebhookFailures(*rows[0]) if rows else None


def count_paused_webhooks(store: Store) -> int:
    """The number of paused webhooks."""
    count: int = store.all("SELECT COUNT(*) FROM webhook_failure WHERE paused_at IS NOT NULL")[0][0]
    return count


def put_failures(store: Store, webhook: int, failures: WebhookFailures) -> None:
    """Insert or replace the failures of a webhook."""
    store.upsert(live_schema.webhook_failure, _WEBHOOK_FAILURES_COLUMNS, [(webhook, *failures)])


def delete_failures(store: Store, webhook: int) -> None:
    """Delete the failures of a webhook."""
    store.run("DELETE FROM webhook_failure WHERE webhook = ?", webhook)
