"""Rows of the tables `api_key`, `linked_account`, `audit`, `ended_session` and `seen_signature`.

An API key is stored with its scopes (JSON), a hash that verifies it and a sealed signing key. The audit trail gets one
entry per action, in the transaction of the action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from evenmatch.ledger import live_schema, secret_rows
from evenmatch.ledger.secrets import Sealer
from evenmatch.ledger.store import Row, Store
from evenmatch.times import Time

_API_KEYS_TABLE = "api_key"
_READ = "SELECT key, name, scopes, ladders, created_at, expires_at, revoked_at, verifier, signing_key FROM api_key"


@dataclass(frozen=True)
class Key:
    """An API key without its secret text.

    key      the id of the key
    ladders  the ladders the key is valid for; null: all of them
    """

    key: str
    name: str
    scopes: tuple[str, ...]
    ladders: tuple[str, ...] | None
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None

    def state(self, now: int) -> str:
        """`good`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "good"


@dataclass(frozen=True)
class StoredKey:
    """A key with the values by which the database recognizes it.

    verifier  SHA-256 of the signing key;  sealed  the signing key, sealed; None: the key cannot sign
    """

    key: Key
    verifier: bytes = field(repr=False)
    sealed: bytes | None = field(repr=False)

    def signing_key(self, sealer: Sealer) -> bytes | None:
        """Return the signing key; None if the key cannot sign. Raises SecretError."""
        return None if self.sealed is None else sealer.open(self.sealed, _API_KEYS_TABLE, self.key.key)


def read_api_key(store: Store, key: str) -> StoredKey | None:
    """Return the key with this id; None if there is none."""
    rows = store.all(f"{_READ} WHERE key = ?", key)
    if not rows:
        return None
    verifier, sealed = rows[0][7:]
    return StoredKey(_key(rows[0]), bytes(verifier), None if sealed is None else bytes(sealed))


def read_all_api_keys(store: Store) -> list[Key]:
    """Return all keys by creation time, including revoked and expired ones."""
    return [_key(row) for row in store.all(f"{_READ} ORDER BY created_at, key")]


def read_unrevoked_key_ids(store: Store) -> list[str]:
    """Return the ids of unrevoked keys, ascending."""
    return [row[0] for row in store.all("SELECT key FROM api_key WHERE revoked_at IS NULL ORDER BY key")]


def insert_api_key(store: Store, key: Key, verifier: bytes, signing_key: bytes) -> None:
    """Insert a new key. Raises SecretError."""
    ladders = None if key.ladders is None else json.dumps(key.ladders, ensure_ascii=False)
    sealed = secret_rows.sealer(store).seal(signing_key, _API_KEYS_TABLE, key.key)
    row = (key.key, key.name, verifier, sealed, json.dumps(key.scopes), ladders, key.created_at, key.expires_at)
    columns = ("key", "name", "verifier", "signing_key", "scopes", "ladders", "created_at", "expires_at")
    store.insert(live_schema.api_key, columns, [row])


def lock_api_key(store: Store, key: str) -> None:
    """Lock the row of a key until the transaction ends."""
    store.run("UPDATE api_key SET name = name WHERE key = ?", key)


def set_key_revoked_at(store: Store, key: str, now: int) -> None:
    """Mark a key as revoked."""
    store.run("UPDATE api_key SET revoked_at = ? WHERE key = ?", now, key)


def delete_signing_keys(store: Store) -> None:
    """Delete the signing keys of all API keys, which stay valid as bearer keys."""
    store.run("UPDATE api_key SET signing_key = NULL")


def _key(row: Row) -> Key:
    key, name, scopes, ladders, *times = row[:7]
    limits = None if ladders is None else tuple(json.loads(ladders))
    return Key(key, name, tuple(json.loads(scopes)), limits, *times)


class LinkedAccount(NamedTuple):
    """An account at an identity provider and the player whose owner logs in with it.

    issuer   the URL of an OpenID Connect provider, `discord` or `steam`
    subject  the id of the account there
    """

    issuer: str
    subject: str
    player: str
    linked_at: Time


_ACCOUNT = "SELECT issuer, subject, player, linked_at FROM linked_account"


def put_new_account(store: Store, account: LinkedAccount) -> None:
    """Link an account, unless it is linked already."""
    store.upsert(live_schema.linked_account, LinkedAccount._fields, [account], same=True)


def read_account(store: Store, issuer: str, subject: str) -> LinkedAccount | None:
    """Return the link of an account; None if there is none."""
    rows = store.all(f"{_ACCOUNT} WHERE issuer = ? AND subject = ?", issuer, subject)
    return LinkedAccount(*rows[0]) if rows else None


def read_accounts_of(store: Store, names: Sequence[str]) -> list[LinkedAccount]:
    """Return the accounts that are linked to any of these names, by issuer and subject."""
    return sorted(LinkedAccount(*row) for row in store.among(f"{_ACCOUNT} WHERE player IN ({{}})", (), names))


def delete_account(store: Store, issuer: str, subject: str) -> None:
    """Delete the link of an account."""
    store.run("DELETE FROM linked_account WHERE issuer = ? AND subject = ?", issuer, subject)


def delete_accounts_of(store: Store, names: Sequence[str]) -> None:
    """Delete the links to any of these names."""
    store.run_among("DELETE FROM linked_account WHERE player IN ({})", (), names)


_AUDIT_ENTRIES_COLUMNS = ("at", "actor", "action", "ladder", "target", "body", "request")


class Entry(NamedTuple):
    """An entry of the audit trail: who did what.

    entry    an ascending number, with gaps
    action   for example `key.created`
    target   what the action was applied to
    request  id of the request, as in the logs
    """

    entry: int
    at: Time
    actor: str
    action: str
    ladder: str | None
    target: str | None
    body: dict[str, object]
    request: str | None


def insert_audit_entry(
    store: Store,
    now: int,
    actor: str,
    action: str,
    ladder: str | None,
    target: str | None,
    body: Mapping[str, object],
    request: str | None,
) -> None:
    """Insert an entry with the fields of Entry. now: its time."""
    written = json.dumps(dict(body), ensure_ascii=False, sort_keys=True)
    row = (now, actor, action, ladder, target, written, request)
    store.insert(live_schema.audit, _AUDIT_ENTRIES_COLUMNS, [row])


def has_audit_entry(store: Store, actor: str, request: str, since: int) -> bool:
    """Return whether an actor's request has an entry since a time in microseconds."""
    sql = "SELECT 1 FROM audit WHERE at >= ? AND actor = ? AND request = ? LIMIT 1"
    return bool(store.all(sql, since, actor, request))


class AuditFilter(NamedTuple):
    """Which entries of the audit trail to read; None: any.

    actors        any of these;  since, until  times, `until` excluded
    """

    ladder: str | None = None
    actors: Sequence[str] | None = None
    action: str | None = None
    target: str | None = None
    since: int | None = None
    until: int | None = None


ALL_ENTRIES = AuditFilter()


def read_audit_page(store: Store, wanted: AuditFilter, before: int | None, limit: int) -> list[Entry]:
    """Return the latest entries, newest first. before: only entries with a smaller number; None: all."""
    conditions = {
        "entry < ?": before,
        "ladder = ?": wanted.ladder,
        "action = ?": wanted.action,
        "target = ?": wanted.target,
        "at >= ?": wanted.since,
        "at < ?": wanted.until,
    }
    filters: dict[str, list[object]] = {sql: [value] for sql, value in conditions.items() if value is not None}
    if wanted.actors is not None:
        filters[f"actor IN ({', '.join('?' * len(wanted.actors))})"] = list(wanted.actors)
    where = f" WHERE {' AND '.join(filters)}" if filters else ""
    sql = f"SELECT entry, {', '.join(_AUDIT_ENTRIES_COLUMNS)} FROM audit{where} ORDER BY entry DESC LIMIT ?"
    rows = store.all(sql, *chain.from_iterable(filters.values()), limit)
    return [Entry(*row)._replace(body=json.loads(row[6])) for row in rows]


def is_session_ended(store: Store, session: str) -> bool:
    """Return whether the session with this id was ended."""
    return bool(store.all("SELECT 1 FROM ended_session WHERE session = ?", session))


def put_ended_session(store: Store, session: str, until: int) -> None:
    """Store an ended session, replacing any with the same id. until: when it would have expired."""
    store.upsert(live_schema.ended_session, ("session", "until"), [(session, until)])


def delete_expired_sessions(store: Store, now: int) -> None:
    """Delete ended sessions that would have expired by now."""
    store.run("DELETE FROM ended_session WHERE until <= ?", now)


_TOGETHER = 500  # rows per statement


def insert_new_signatures(store: Store, rows: Sequence[tuple[int, bytes]]) -> set[bytes]:
    """Insert the rows (until, digest) that are new; return their digests.

    Rows are inserted in sorted order, so that two writers cannot deadlock.
    """
    new: set[bytes] = set()
    ordered = sorted(set(rows))
    for first in range(0, len(ordered), _TOGETHER):
        batch = ordered[first : first + _TOGETHER]
        values = ", ".join(["(?, ?)"] * len(batch))
        sql = f"INSERT INTO seen_signature (until, digest) VALUES {values} ON CONFLICT DO NOTHING RETURNING digest"
        new |= {bytes(row[0]) for row in store.all(sql, *chain.from_iterable(batch))}
    return new


def delete_past_signatures(store: Store, now: int) -> None:
    """Delete expired signatures. now: seconds since the epoch"""
    store.run("DELETE FROM seen_signature WHERE until < ?", now)
