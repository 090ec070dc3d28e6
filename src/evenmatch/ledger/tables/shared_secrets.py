"""Rows of table `secret`: random values by name that all processes share, to sign tokens and sessions."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store

_COLUMNS = ("name", "value", "created_at")


class SharedSecret(NamedTuple):
    """A secret, created at this time in microseconds since the epoch."""

    value: bytes
    created_at: int


def read(store: Store, *names: str) -> dict[str, SharedSecret]:
    """The existing secrets among these names, by name."""
    sql = f"SELECT name, value, created_at FROM secret WHERE name IN ({', '.join('?' * len(names))})"
    return {row[0]: SharedSecret(bytes(row[1]), row[2]) for row in store.all(sql, *names)}


def insert_missing(store: Store, name: str, secret: SharedSecret) -> None:
    """Insert a secret, unless there is one of this name, which stays."""
    store.upsert(live_schema.secret, _COLUMNS, [(name, *secret)], same=True)


def put(store: Store, secrets: dict[str, SharedSecret]) -> None:
    """Insert secrets by name, or replace those that exist."""
    rows = [(name, *secret) for name, secret in secrets.items()]
    store.upsert(live_schema.secret, _COLUMNS, rows)


def lock(store: Store, name: str) -> None:
    """Lock the row of a secret until the transaction ends."""
    store.run("UPDATE secret SET name = name WHERE name = ?", name)
