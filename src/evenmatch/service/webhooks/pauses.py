"""Pauses of webhooks whose receivers keep failing: deliveries wait, and one is sent now and then as a probe.

A pause begins by itself, with an entry in the audit trail and a line in the log, and ends with the first delivery that
arrives, or when an operator resumes the webhook.
"""

from __future__ import annotations

import logging

from evenmatch.durations import SECOND
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import webhook_failures
from evenmatch.ledger.tables.webhook_failures import WebhookFailures
from evenmatch.ledger.tables.webhooks import Webhook
from evenmatch.service.callers import audit_trail
from evenmatch.service.callers.access import SERVICE

FAILURES = 10  # failed attempts without a success between them, after which a webhook is paused,
FAILING = 300 * SECOND  # if they have gone on for this long
PROBES = (
    60,
    120,
    300,
    600,
    1_800,
    3_600,
)  # seconds until the next probe: the first over half of the pause
KEPT = 86_400 * SECOND  # age at which deliveries of a paused webhook are given up
GIVEN_UP = "the webhook was paused for a day"

log = logging.getLogger(__name__)


def count(store: Store, hook: Webhook, error: str | None, now: int) -> None:
    """Count an attempt; pause the webhook if it keeps failing, resume it after a success. error: None: it arrived."""
    known = webhook_failures.read(store, hook.webhook)
    if error is None:
        if known is not None:
            resume(store, hook, known, now)
        return
    failures = 1 if known is None else known.failures + 1
    failed_at = now if known is None else known.failed_at
    paused_at = None if known is None else known.paused_at
    is_new = paused_at is None and failures >= FAILURES and now - failed_at >= FAILING
    if is_new:
        paused_at = now
        _tell(store, hook, "webhook.paused", {"failures": failures, "error": error}, now)
    probe_at = None if paused_at is None else _next_probe(paused_at, now)
    webhook_failures.put(store, hook.webhook, WebhookFailures(failures, failed_at, paused_at, probe_at))


def resume(store: Store, hook: Webhook, known: WebhookFailures, now: int) -> None:
    """Forget the failures of a webhook after a success, so that it is not paused any more."""
    webhook_failures.delete(store, hook.webhook)
    if known.paused_at is not None:
        _tell(store, hook, "webhook.resumed", {"failures": known.failures}, now)


def waits(failures: WebhookFailures | None, now: int) -> bool:
    """Whether nothing is sent at present to a webhook with these failures."""
    return failures is not None and failures.probe_at is not None and now < failures.probe_at


def _next_probe(paused_at: int, now: int) -> int:
    """The time of the next probe: the longer the pause lasts, the later, up to an hour."""
    elapsed = (now - paused_at) // SECOND
    return now + next((wait for wait in PROBES if elapsed < 2 * wait), PROBES[-1]) * SECOND


def _tell(store: Store, hook: Webhook, action: str, body: dict[str, object], now: int) -> None:
    audit_trail.note(
        store, SERVICE, action, ladder=hook.ladder, target=str(hook.webhook), body={"url": hook.url, **body}, now=now
    )
    log.warning("%s: webhook %d to %s: %s", action, hook.webhook, hook.url[:200], body)
