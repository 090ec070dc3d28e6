"""Rows of table `api_key`: keys with their scopes, as JSON, a hash that verifies them, and a sealed signing key."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.sealing import Sealer
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import secret_checks

_TABLE = "api_key"
_READ = "SELECT key, name, scopes, ladders, created_at, expires_at, revoked_at, verifier, signing_key FROM api_key"


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


@dataclass(frozen=True)
class StoredKey:
    """A key, and what the database keeps to recognize it.

    verifier  SHA-256 of the signing key;  sealed  the signing key, sealed; None: the key cannot sign
    """

    key: Key
    verifier: bytes = field(repr=False)
    sealed: bytes | None = field(repr=False)

    def signing_key(self, sealer: Sealer) -> bytes | None:
        """The signing key; None if the key cannot sign. Raises SecretError."""
        return None if self.sealed is None else sealer.open(self.sealed, _TABLE, self.key.key)


def read(store: Store, key: str) -> StoredKey | None:
    """The key of this id; None if there is none."""
    rows = store.all(f"{_READ} WHERE key = ?", key)
    if not rows:
        return None
    verifier, sealed = rows[0][7:]
    return StoredKey(_key(rows[0]), bytes(verifier), None if sealed is None else bytes(sealed))


def read_all(store: Store) -> list[Key]:
    """All keys by creation time, including revoked and expired ones."""
    return [_key(row) for row in store.all(f"{_READ} ORDER BY created_at, key")]


def ids_of_unrevoked(store: Store) -> list[str]:
    """The ids of the keys that were not revoked, ascending."""
    return [row[0] for row in store.all("SELECT key FROM api_key WHERE revoked_at IS NULL ORDER BY key")]


def insert(store: Store, key: Key, verifier: bytes, signing_key: bytes) -> None:
    """Insert a new key, which is not revoked. Raises SecretError."""
    ladders = None if key.ladders is None else json.dumps(key.ladders, ensure_ascii=False)
    sealed = secret_checks.sealer(store).seal(signing_key, _TABLE, key.key)
    row = (key.key, key.name, verifier, sealed, json.dumps(key.scopes), ladders, key.created_at, key.expires_at)
    columns = ("key", "name", "verifier", "signing_key", "scopes", "ladders", "created_at", "expires_at")
    store.insert(live_schema.api_key, columns, [row])


def lock(store: Store, key: str) -> None:
    """Lock the row of a key until the transaction ends."""
    store.run("UPDATE api_key SET name = name WHERE key = ?", key)


def set_revoked_at(store: Store, key: str, now: int) -> None:
    """Mark a key as revoked."""
    store.run("UPDATE api_key SET revoked_at = ? WHERE key = ?", now, key)


def delete_signing_keys(store: Store) -> None:
    """Let no existing key sign any more; as bearer keys they stay valid."""
    store.run("UPDATE api_key SET signing_key = NULL")


def reseal(store: Store, old: Sealer, new: Sealer) -> None:
    """Seal all signing keys with another master secret."""
    for key, sealed in store.all("SELECT key, signing_key FROM api_key WHERE signing_key IS NOT NULL"):
        signing_key = new.seal(old.open(bytes(sealed), _TABLE, key), _TABLE, key)
        store.run("UPDATE api_key SET signing_key = ? WHERE key = ?", signing_key, key)


def _key(row: Row) -> Key:
    key, name, scopes, ladders, *times = row[:7]
    limits = None if ladders is None else tuple(json.loads(ladders))
    return Key(key, name, tuple(json.loads(scopes)), limits, *times)
