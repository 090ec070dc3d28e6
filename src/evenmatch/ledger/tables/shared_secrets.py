"""Rows of table `secret`: random values by name that all processes share, to sign tokens and sessions; sealed."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.sealing import Sealer
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import secret_checks

_TABLE = "secret"
_COLUMNS = ("name", "value", "created_at")


class SharedSecret(NamedTuple):
    """A secret, created at this time in microseconds since the epoch."""

    value: bytes
    created_at: int


def read(store: Store, *names: str) -> dict[str, SharedSecret]:
    """The existing secrets among these names, by name. Raises SecretError."""
    sql = f"SELECT name, value, created_at FROM secret WHERE name IN ({', '.join('?' * len(names))})"
    rows = store.all(sql, *names)
    return {row[0]: SharedSecret(store.master.sealer().open(bytes(row[1]), _TABLE, row[0]), row[2]) for row in rows}


def insert_missing(store: Store, name: str, secret: SharedSecret) -> None:
    """Insert a secret, unless there is one of this name, which stays. Raises SecretError."""
    store.upsert(live_schema.secret, _COLUMNS, [_row(secret_checks.sealer(store), name, secret)], same=True)


def put(store: Store, secrets: dict[str, SharedSecret]) -> None:
    """Insert secrets by name, or replace those that exist. Raises SecretError."""
    sealer = secret_checks.sealer(store)
    store.upsert(live_schema.secret, _COLUMNS, [_row(sealer, name, secret) for name, secret in secrets.items()])


def lock(store: Store, name: str) -> None:
    """Lock the row of a secret until the transaction ends."""
    store.run("UPDATE secret SET name = name WHERE name = ?", name)


def delete_all(store: Store) -> None:
    """Delete all secrets: what they signed is not valid any more, and new ones are created when needed."""
    store.run("DELETE FROM secret")


def reseal(store: Store, old: Sealer, new: Sealer) -> None:
    """Seal all secrets with another master secret."""
    for name, sealed, created_at in store.all("SELECT name, value, created_at FROM secret"):
        secret = SharedSecret(old.open(bytes(sealed), _TABLE, name), created_at)
        store.upsert(live_schema.secret, _COLUMNS, [_row(new, name, secret)])


def _row(sealer: Sealer, name: str, secret: SharedSecret) -> tuple[str, bytes, int]:
    return name, sealer.seal(secret.value, _TABLE, name), secret.created_at
