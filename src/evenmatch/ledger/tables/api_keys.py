"""Rows of table `api_key`: keys with their scopes, as JSON, and the SHA-256 of their text."""

from __future__ import annotations

import json
from dataclasses import dataclass

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store

_READ = "SELECT key, name, scopes, ladders, created_at, expires_at, revoked_at, digest FROM api_key"


@dataclass(frozen=True)
class Key:
    """The public part of a key, without its secret. Times are microseconds since the epoch; ladders None: all."""

    key: str
    name: str
    scopes: tuple[str, ...]
    ladders: tuple[str, ...] | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def state(self, now: int) -> str:
        """`good`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "good"


def read(store: Store, key: str) -> tuple[Key, bytes] | None:
    """A key and the SHA-256 of its text, by the key's id; None if there is none."""
    rows = store.all(f"{_READ} WHERE key = ?", key)
    return (_key(rows[0]), bytes(rows[0][7])) if rows else None


def read_all(store: Store) -> list[Key]:
    """All keys by creation time, including revoked and expired ones."""
    return [_key(row) for row in store.all(f"{_READ} ORDER BY created_at, key")]


def ids_of_unrevoked(store: Store) -> list[str]:
    """The ids of the keys that were not revoked, ascending."""
    return [row[0] for row in store.all("SELECT key FROM api_key WHERE revoked_at IS NULL ORDER BY key")]


def insert(store: Store, key: Key, digest: bytes) -> None:
    """Insert a new key, which is not revoked."""
    ladders = None if key.ladders is None else json.dumps(key.ladders, ensure_ascii=False)
    row = (key.key, key.name, digest, json.dumps(key.scopes), ladders, key.created_at, key.expires_at)
    columns = ("key", "name", "digest", "scopes", "ladders", "created_at", "expires_at")
    store.insert(live_schema.api_key, columns, [row])


def lock(store: Store, key: str) -> None:
    """Lock the row of a key until the transaction ends."""
    store.run("UPDATE api_key SET name = name WHERE key = ?", key)


def set_revoked_at(store: Store, key: str, now: int) -> None:
    """Mark a key as revoked."""
    store.run("UPDATE api_key SET revoked_at = ? WHERE key = ?", now, key)


def _key(row: Row) -> Key:
    key, name, scopes, ladders, *times = row[:7]
    limits = None if ladders is None else tuple(json.loads(ladders))
    return Key(key, name, tuple(json.loads(scopes)), limits, *times)
