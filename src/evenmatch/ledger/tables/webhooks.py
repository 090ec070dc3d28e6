"""Rows of table `webhook`: URLs that subscribe to events, as JSON; a removed webhook keeps its row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store

_READ = "SELECT webhook, ladder, url, events, created_at, secret FROM webhook WHERE removed_at IS NULL"


@dataclass(frozen=True)
class Webhook:
    """A URL that receives events. ladder: None for all ladders; secret: signs the deliveries, shown only once."""

    webhook: int
    ladder: str | None
    url: str
    events: tuple[str, ...]
    created_at: int
    secret: bytes = field(repr=False)


def read_all(store: Store) -> list[Webhook]:
    """All webhooks that were not removed, oldest first."""
    return [_webhook(row) for row in store.all(f"{_READ} ORDER BY webhook")]


def read(store: Store, webhook: int) -> Webhook | None:
    """The webhook of this number; None if there is none, or it was removed."""
    rows = store.all(f"{_READ} AND webhook = ?", webhook)
    return _webhook(rows[0]) if rows else None


def insert(store: Store, ladder: str | None, url: str, secret: bytes, events: Sequence[str], now: int) -> int:
    """Insert a new webhook and return its number."""
    sql = "INSERT INTO webhook (ladder, url, secret, events, created_at) VALUES (?, ?, ?, ?, ?) RETURNING webhook"
    number: int = store.all(sql, ladder, url, secret, json.dumps(events), now)[0][0]
    return number


def set_removed_at(store: Store, webhook: int, now: int) -> None:
    """Mark a webhook as removed."""
    store.run("UPDATE webhook SET removed_at = ? WHERE webhook = ?", now, webhook)


def _webhook(row: Row) -> Webhook:
    return Webhook(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4], bytes(row[5]))
