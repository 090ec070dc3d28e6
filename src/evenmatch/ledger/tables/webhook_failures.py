"""Rows of table `webhook_failure`: webhooks whose last attempt failed, and since when a failing one is paused."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store

_COLUMNS = ("webhook", "failures", "failed_at", "paused_at", "probe_at")


class WebhookFailures(NamedTuple):
    """The failed attempts of a webhook since its last success.

    failures   their number
    failed_at  time of the first of them
    paused_at  since when deliveries wait, except for probes; None: they do not
    probe_at   time of the next probe; None if it is not paused
    """

    failures: int
    failed_at: int
    paused_at: int | None = None
    probe_at: int | None = None


def read_all(store: Store) -> dict[int, WebhookFailures]:
    """The failures of all webhooks that have any."""
    rows = store.all("SELECT webhook, failures, failed_at, paused_at, probe_at FROM webhook_failure")
    return {row[0]: WebhookFailures(*row[1:]) for row in rows}


def read(store: Store, webhook: int) -> WebhookFailures | None:
    """The failures of a webhook; None if its last attempt succeeded, or there was none."""
    sql = "SELECT failures, failed_at, paused_at, probe_at FROM webhook_failure WHERE webhook = ?"
    rows = store.all(sql, webhook)
    return WebhookFailures(*rows[0]) if rows else None


def count_paused(store: Store) -> int:
    """The number of paused webhooks."""
    count: int = store.all("SELECT COUNT(*) FROM webhook_failure WHERE paused_at IS NOT NULL")[0][0]
    return count


def put(store: Store, webhook: int, failures: WebhookFailures) -> None:
    """Insert or replace the failures of a webhook."""
    store.upsert(live_schema.webhook_failure, _COLUMNS, [(webhook, *failures)])


def delete(store: Store, webhook: int) -> None:
    """Delete the failures of a webhook."""
    store.run("DELETE FROM webhook_failure WHERE webhook = ?", webhook)
