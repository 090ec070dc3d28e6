"""New deliveries of a webhook, their repetition when they fail, and the deletion of old ones."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import deliveries, webhook_cursors, webhook_failures, webhooks
from evenmatch.ledger.tables.deliveries import DueDelivery
from evenmatch.ledger.tables.webhook_cursors import Cursor
from evenmatch.ledger.tables.webhooks import Webhook
from evenmatch.service.webhooks import pauses
from evenmatch.service.webhooks.payloads import NewEvents

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
    if webhooks.read(store, hook.webhook) is None:
        return 0
    if not webhook_cursors.move(store, ladder, hook.webhook, before, found.upto):
        return 0
    wanted = [(event, body) for event, body in found.told if event in hook.events]
    deliveries.insert(store, hook.webhook, wanted, now)
    return len(wanted)


def note(store: Store, due: DueDelivery, hook: Webhook | None, outcome: DeliveryOutcome, now: int) -> None:
    """Record the outcome of an attempt. hook: the webhook of the delivery; None: it was removed."""
    if hook is not None and webhooks.read(store, hook.webhook) is not None:
        pauses.count(store, hook, outcome.error, now)
    next_at = None
    if outcome.error is not None and not outcome.is_final:
        next_at = retry_at(due.delivery, due.attempts + 1, now)
    delivered_at = now if outcome.error is None else None
    deliveries.count_attempt(store, due.delivery, next_at=next_at, delivered_at=delivered_at, error=outcome.error)


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
    for webhook, failures in webhook_failures.read_all(store).items():
        if failures.paused_at is not None:
            deliveries.give_up(store, webhook, now - pauses.KEPT, pauses.GIVEN_UP)


def prune(store: Store, after: int, now: int) -> tuple[int, int | None]:
    """Delete, from one page of deliveries after a number, those delivered a week ago or dead for a month.

    Returns their count and the number after which the next page begins; None: no more pages. The very last delivery
    always stays, because SQLite would otherwise assign its number again.
    """
    page = deliveries.read_times(store, after, PAGE)
    old = [row.delivery for row in page if row.next_at is None and _is_old(row.made_at, row.delivered_at, now)]
    deliveries.delete(store, old)
    is_last = len(page) < PAGE or page[-1].made_at > now - KEPT
    return len(old), None if is_last else page[-1].delivery


def _is_old(made_at: int, delivered_at: int | None, now: int) -> bool:
    return made_at < now - KEPT_DEAD if delivered_at is None else delivered_at < now - KEPT
