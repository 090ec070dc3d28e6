"""Rows of table `webhook`: URLs that subscribe to events, as JSON; a removed webhook keeps its row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenmatch.ledger.rows import Row
from evenmatch.ledger.sealing import Sealer
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import secret_checks

_TABLE = "webhook"
_READ = "SELECT webhook, ladder, url, events, created_at, secret FROM webhook WHERE removed_at IS NULL"


@dataclass(frozen=True)
class Webhook:
    """A URL that receives events. ladder: None for all ladders; sealed: the secret that signs the deliveries."""

    webhook: int
    ladder: str | None
    url: str
    events: tuple[str, ...]
    created_at: int
    sealed: bytes = field(repr=False)

    def secret(self, sealer: Sealer) -> bytes:
        """The secret that signs the deliveries. Raises SecretError."""
        return sealer.open(self.sealed, _TABLE, self.webhook)


def read_all(store: Store) -> list[Webhook]:
    """All webhooks that were not removed, oldest first."""
    return [_webhook(row) for row in store.all(f"{_READ} ORDER BY webhook")]


def read(store: Store, webhook: int) -> Webhook | None:
    """The webhook of this number; None if there is none, or it was removed."""
    rows = store.all(f"{_READ} AND webhook = ?", webhook)
    return _webhook(rows[0]) if rows else None


def insert(store: Store, ladder: str | None, url: str, secret: bytes, events: Sequence[str], now: int) -> int:
    """Insert a new webhook and return its number. Raises SecretError."""
    sql = "INSERT INTO webhook (ladder, url, secret, events, created_at) VALUES (?, ?, ?, ?, ?) RETURNING webhook"
    number: int = store.all(sql, ladder, url, b"", json.dumps(events), now)[0][0]
    set_secret(store, number, secret)
    return number


def set_secret(store: Store, webhook: int, secret: bytes) -> None:
    """Give a webhook a secret, or another one. Raises SecretError."""
    _write_secret(store, webhook, secret_checks.sealer(store), secret)


def set_removed_at(store: Store, webhook: int, now: int) -> None:
    """Mark a webhook as removed, and delete its secret."""
    store.run("UPDATE webhook SET removed_at = ?, secret = ? WHERE webhook = ?", now, b"", webhook)


def reseal(store: Store, old: Sealer, new: Sealer) -> None:
    """Seal all secrets with another master secret."""
    for webhook, sealed in store.all("SELECT webhook, secret FROM webhook WHERE removed_at IS NULL"):
        _write_secret(store, webhook, new, old.open(bytes(sealed), _TABLE, webhook))


def _write_secret(store: Store, webhook: int, sealer: Sealer, secret: bytes) -> None:
    store.run("UPDATE webhook SET secret = ? WHERE webhook = ?", sealer.seal(secret, _TABLE, webhook), webhook)


def _webhook(row: Row) -> Webhook:
    return Webhook(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4], bytes(row[5]))
