"""The rows of deliveries: what is due, what became of it, and what nobody will ask for any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.service.hooks.news import Cursor, News
from evenmatch.service.hooks.webhooks import Webhook

BACKOFF = (5, 30, 120, 600, 3_600, 21_600)  # seconds until a failed delivery is tried again, by attempt
JITTER = 0.1  # of that, at most
SECOND = 1_000_000
KEPT, KEPT_DEAD = 7 * 86_400 * SECOND, 30 * 86_400 * SECOND
PAGE = 1_000  # rows looked at at a time


class Due(NamedTuple):
    """A delivery whose time has come."""

    delivery: int
    webhook: int
    event: str
    body: str
    attempts: int


class Outcome(NamedTuple):
    """What became of an attempt. error: None where it was delivered; is_final: there is no use in trying again."""

    error: str | None
    is_final: bool = False


def keep(store: Store, ladder: int, hook: Webhook, before: Cursor, found: News, now: int) -> int:
    """Write a webhook's deliveries and how far it was told, unless another did so meanwhile; how many."""
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
    """Deliveries whose time has come, the oldest first: of each webhook so many at most, the first ones of each."""
    sql = (
        "SELECT delivery FROM (SELECT delivery, ROW_NUMBER() OVER (PARTITION BY webhook ORDER BY delivery) AS turn "
        "FROM delivery WHERE next_at <= ?) AS due WHERE turn <= ? ORDER BY turn, delivery LIMIT ?"
    )
    chosen = [row[0] for row in store.all(sql, now, each, most)]
    wanted = "SELECT delivery, webhook, event, body, attempts FROM delivery WHERE delivery IN ({})"
    return sorted(Due(*row) for row in store.rows.among(store.connection, wanted, (), chosen))


def note(store: Store, one: Due, outcome: Outcome, now: int) -> None:
    """Write what became of an attempt."""
    again = None
    if outcome.error is not None and not outcome.is_final:
        again = retry_at(one.delivery, one.attempts + 1, now)
    store.run(
        "UPDATE delivery SET attempts = attempts + 1, next_at = ?, delivered_at = ?, error = ? "
        "WHERE delivery = ? AND next_at IS NOT NULL",
        *(again, now if outcome.error is None else None, outcome.error, one.delivery),
    )


def retry_at(delivery: int, attempts: int, now: int) -> int | None:
    """When a delivery that failed so often is tried again; None: no more.

    Its number decides how much later than the others it is, so that not all come back at once.
    """
    if attempts > len(BACKOFF):
        return None
    spread = delivery * 0x9E3779B1 % 2**32 / 2**32
    return now + round(BACKOFF[attempts - 1] * (1 + JITTER * spread) * SECOND)


def prune(store: Store, after: int, now: int) -> tuple[int, int | None]:
    """Forget, of a page of deliveries after one, those delivered a week ago or dead for a month.

    How many, and after which the next page begins; None: all later ones are too young. The last delivery of all stays,
    since SQLite would give its number again.
    """
    sql = (
        "SELECT delivery, made_at, next_at, delivered_at FROM delivery WHERE delivery > ? "
        "AND delivery < (SELECT MAX(delivery) FROM delivery) ORDER BY delivery LIMIT ?"
    )
    rows = store.all(sql, after, PAGE)
    gone = [row[0] for row in rows if row[2] is None and _is_over(row[1], row[3], now)]
    delete = "DELETE FROM delivery WHERE delivery IN ({}) RETURNING delivery"
    store.rows.among(store.connection, delete, (), gone)
    is_last = len(rows) < PAGE or rows[-1][1] > now - KEPT
    return len(gone), None if is_last else rows[-1][0]


def _is_over(made_at: int, delivered_at: int | None, now: int) -> bool:
    """Whether nobody will ask any more for a delivery that is not to be sent."""
    return made_at < now - KEPT_DEAD if delivered_at is None else delivered_at < now - KEPT
