"""The delivery rows: add new ones, read due ones, record outcomes, delete old ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.service.webhooks.payloads import Cursor, News
from evenmatch.service.webhooks.subscriptions import Webhook

BACKOFF = (5, 30, 120, 600, 3_600, 21_600)  # seconds until a failed delivery is tried again, by attempt
JITTER = 0.1  # largest share added to BACKOFF
KEPT, KEPT_DEAD = 7 * 86_400 * SECOND, 30 * 86_400 * SECOND  # age of delivered, dead deliveries at deletion
PAGE = 1_000  # rows read at once


class Due(NamedTuple):
    """A delivery that is due."""

    delivery: int
    webhook: int
    event: str
    body: str
    attempts: int


class DeliveryOutcome(NamedTuple):
    """The outcome of an attempt. error: None if delivered; is_final: do not try again."""

    error: str | None
    is_final: bool = False


def keep(store: Store, ladder: int, hook: Webhook, before: Cursor, found: News, now: int) -> int:
    """Write a webhook's new deliveries and its cursor, unless another process already did; return their number."""
    if not store.all("SELECT 1 FROM webhook WHERE webhook = ? AND removed_at IS NULL", hook.webhook):
        return 0
    columns: Sequence[str] = ("ladder", "webhook", "position", "change")
    store.rows.upsert(store.connection, live_schema.told, columns, [(ladder, hook.webhook, 0, 0)], same=True)
    moved = store.all(
        "UPDATE told SET position = ?, change = ? WHERE ladder = ? AND webhook = ? AND position = ? "
        "AND change = ? RETURNING webhook",
        *(*found.upto, ladder, hook.webhook, *before),
    )
    if not moved:
        return 0
    rows = [(hook.webhook, event, body, now, 0, now) for event, body in found.told if event in hook.events]
    columns = ("webhook", "event", "body", "made_at", "attempts", "next_at")
    store.rows.insert(store.connection, live_schema.delivery, columns, rows)
    return len(rows)


def due(store: Store, now: int, each: int, most: int) -> list[Due]:
    """Due deliveries, oldest first: at most `each` of one webhook and `most` in total."""
    sql = (
        "SELECT delivery FROM (SELECT delivery, ROW_NUMBER() OVER (PARTITION BY webhook ORDER BY delivery) AS turn "
        "FROM delivery WHERE next_at <= ?) AS due WHERE turn <= ? ORDER BY turn, delivery LIMIT ?"
    )
    chosen = [row[0] for row in store.all(sql, now, each, most)]
    wanted = "SELECT delivery, webhook, event, body, attempts FROM delivery WHERE delivery IN ({})"
    return sorted(Due(*row) for row in store.rows.among(store.connection, wanted, (), chosen))


def note(store: Store, one: Due, outcome: DeliveryOutcome, now: int) -> None:
    """Record the outcome of an attempt."""
    next_at = None
    if outcome.error is not None and not outcome.is_final:
        next_at = retry_at(one.delivery, one.attempts + 1, now)
    store.run(
        "UPDATE delivery SET attempts = attempts + 1, next_at = ?, delivered_at = ?, error = ? "
        "WHERE delivery = ? AND next_at IS NOT NULL",
        *(next_at, now if outcome.error is None else None, outcome.error, one.delivery),
    )


def retry_at(delivery: int, attempts: int, now: int) -> int | None:
    """When to try a delivery again after this many failed attempts; None: never.

    The delivery's number determines a jitter, so that deliveries that failed together are not all repeated at once.
    """
    if attempts > len(BACKOFF):
        return None
    spread = delivery * 0x9E3779B1 % 2**32 / 2**32
    return now + round(BACKOFF[attempts - 1] * (1 + JITTER * spread) * SECOND)


def prune(store: Store, after: int, now: int) -> tuple[int, int | None]:
    """Delete, from one page of deliveries after a number, those delivered a week ago or dead for a month.

    Returns their count and the number after which the next page begins; None: no more pages. The very last delivery
    always stays, because SQLite would otherwise assign its number again.
    """
    sql = (
        "SELECT delivery, made_at, next_at, delivered_at FROM delivery WHERE delivery > ? "
        "AND delivery < (SELECT MAX(delivery) FROM delivery) ORDER BY delivery LIMIT ?"
    )
    rows = store.all(sql, after, PAGE)
    old = [row[0] for row in rows if row[2] is None and _is_old(row[1], row[3], now)]
    delete = "DELETE FROM delivery WHERE delivery IN ({}) RETURNING delivery"
    store.rows.among(store.connection, delete, (), old)
    is_last = len(rows) < PAGE or rows[-1][1] > now - KEPT
    return len(old), None if is_last else rows[-1][0]


def _is_old(made_at: int, delivered_at: int | None, now: int) -> bool:
    return made_at < now - KEPT_DEAD if delivered_at is None else delivered_at < now - KEPT
