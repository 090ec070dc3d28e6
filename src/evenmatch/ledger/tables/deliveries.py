"""Rows of table `delivery`: the deliveries of events to webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store

PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"

_STATES = {
    PENDING: "next_at IS NOT NULL",
    DELIVERED: "next_at IS NULL AND delivered_at IS NOT NULL",
    DEAD: "next_at IS NULL AND delivered_at IS NULL",
}
STATES = tuple(_STATES)
_READ = "SELECT delivery, webhook, event, body, made_at, attempts, next_at, delivered_at, error FROM delivery WHERE "


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


def read(store: Store, delivery: int) -> Delivery | None:
    """The delivery of this number; None if there is none."""
    rows = store.all(f"{_READ} delivery = ?", delivery)
    return Delivery(*rows[0]) if rows else None


def read_page(store: Store, webhook: int, state: str | None, before: int, limit: int) -> list[Delivery]:
    """The deliveries of a webhook with smaller numbers than `before`, newest first. state: of STATES; None: all."""
    where = f"{_READ} webhook = ? AND delivery < ? AND {'1 = 1' if state is None else _STATES[state]}"
    return [Delivery(*row) for row in store.all(f"{where} ORDER BY delivery DESC LIMIT ?", webhook, before, limit)]


def read_due(store: Store, now: int, without: Sequence[int], each: int, most: int) -> list[DueDelivery]:
    """Due deliveries, oldest first, without those of some webhooks: at most `each` of one and `most` in total."""
    others = f" AND webhook NOT IN ({', '.join('?' * len(without))})" if without else ""
    sql = (
        "SELECT delivery FROM (SELECT delivery, ROW_NUMBER() OVER (PARTITION BY webhook ORDER BY delivery) AS turn "
        f"FROM delivery WHERE next_at <= ?{others}) AS due WHERE turn <= ? ORDER BY turn, delivery LIMIT ?"
    )
    chosen = [row[0] for row in store.all(sql, now, *without, each, most)]
    wanted = "SELECT delivery, webhook, event, body, attempts FROM delivery WHERE delivery IN ({})"
    return sorted(DueDelivery(*row) for row in store.among(wanted, (), chosen))


def read_times(store: Store, after: int, limit: int) -> list[DeliveryTimes]:
    """The times of the first `limit` deliveries with larger numbers than `after`, by number, without the very last."""
    sql = (
        "SELECT delivery, made_at, next_at, delivered_at FROM delivery WHERE delivery > ? "
        "AND delivery < (SELECT MAX(delivery) FROM delivery) ORDER BY delivery LIMIT ?"
    )
    return [DeliveryTimes(*row) for row in store.all(sql, after, limit)]


def count_waiting(store: Store) -> int:
    """The number of deliveries that wait for their next attempt."""
    count: int = store.all("SELECT COUNT(*) FROM delivery WHERE next_at IS NOT NULL")[0][0]
    return count


def count_dead(store: Store) -> int:
    """The number of deliveries that were given up."""
    sql = "SELECT COUNT(*) FROM delivery WHERE next_at IS NULL AND delivered_at IS NULL"
    count: int = store.all(sql)[0][0]
    return count


def insert(store: Store, webhook: int, events: Sequence[tuple[str, str]], now: int) -> None:
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


def restart(store: Store, delivery: int, next_at: int) -> None:
    """Make a delivery pending again, without attempts, whatever its state."""
    store.run(
        "UPDATE delivery SET attempts = 0, next_at = ?, delivered_at = NULL, error = NULL WHERE delivery = ?",
        *(next_at, delivery),
    )


def cancel_pending(store: Store, webhook: int, error: str) -> None:
    """Make the pending deliveries of a webhook dead, with this error."""
    store.run("UPDATE delivery SET next_at = NULL, error = ? WHERE webhook = ? AND next_at IS NOT NULL", error, webhook)


def give_up(store: Store, webhook: int, before: int, error: str) -> None:
    """Make the pending deliveries of a webhook that were created before this time dead, with this error."""
    store.run(
        "UPDATE delivery SET next_at = NULL, error = ? WHERE webhook = ? AND next_at IS NOT NULL AND made_at < ?",
        *(error, webhook, before),
    )


def delete(store: Store, deliveries: Sequence[int]) -> None:
    """Delete the deliveries of these numbers."""
    store.run_among("DELETE FROM delivery WHERE delivery IN ({})", (), deliveries)
