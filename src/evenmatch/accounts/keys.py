"""API keys: shown once when created, checked with each request. The database holds only hashes of them."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import OPERATOR, SCOPES, Caller
from evenmatch.accounts.account_sql import Key, StoredKey
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.accounts.signing import SignedRequest, check, signing_key, verifier
from evenmatch.errors import AccessError, UnknownNameError, UsageError
from evenmatch.ledger.database import Database
from evenmatch.ledger.text import check_text
from evenmatch.times import END_TIME, iso_time

__all__ = ["Key", "Keys"]

REMEMBERED = 2_000_000  # microseconds for which a stored key is cached
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
ACCEPTED = "send a key exactly as `evenmatch key create` showed it"
PREFIX = "em_"  # begins every API key
_ID_LETTERS = 13
_ID = re.compile(rf"{PREFIX}[a-z2-7]{{10}}")
_TEXT = re.compile(rf"({_ID.pattern})_[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True)
class _CachedKey:
    """A key as read from the database at `read_at`."""

    stored: StoredKey
    caller: Caller
    read_at: int

    @classmethod
    def of(cls, stored: StoredKey, read_at: int) -> _CachedKey:
        key = stored.key
        ladders = None if key.ladders is None else frozenset(key.ladders)
        return cls(stored, Caller(f"key {key.key}", frozenset(key.scopes), ladders, key=key.key), read_at)

    def check_good(self, now: int) -> None:
        """Raise AccessError if the key was revoked or has expired."""
        key = self.stored.key
        if key.state(now) == "good":
            return
        how, ended_at = ("expired", key.expires_at) if key.revoked_at is None else ("was revoked", key.revoked_at)
        assert ended_at is not None  # since the key is not good
        raise AccessError(f"the key {key.key} {how} at {iso_time(ended_at)}; use another key")


class Keys:
    """The keys of a database. Thread-safe. Changes made by another process apply within two seconds."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._cache: dict[str, _CachedKey] = {}  # by id; holds only keys that exist, so it stays small

    def create(
        self,
        name: str,
        scopes: Iterable[str],
        ladders: Iterable[str] | None = None,
        expires_at: int | None = None,
        *,
        by: Caller = OPERATOR,
        request: str | None = None,
    ) -> tuple[Key, str]:
        """Create a key; return its public part and its text, which cannot be shown again.

        name     a label for people;  ladders  None: all, including ladders created later
        Raises UnknownNameError for an unknown scope or ladder, UsageError for no scope, no ladder or a past expiry,
        SecretError without the master secret.
        """
        by.check("admin")
        now = self._clock()
        check_text("the key's name", name, blank=False)
        granted = _scopes_of(scopes)
        limits = None if ladders is None else tuple(sorted(set(ladders)))
        if limits == ():
            raise UsageError("a key needs at least one ladder, or None for all ladders")
        if expires_at is not None and not now < expires_at < END_TIME:
            raise UsageError(
                f"the key would expire at {expires_at} µs; the expiry must be in the future and before the year 2100"
            )
        key_id = PREFIX + "".join(secrets.choice(LETTERS) for _ in range(_ID_LETTERS - len(PREFIX)))
        text = f"{key_id}_{secrets.token_urlsafe(32)}"
        key = Key(key_id, name, granted, limits, now, expires_at, None)
        with self._database.write() as store:
            for ladder in limits or ():
                store.head(ladder)  # raises UnknownNameError
            secret = signing_key(text)
            account_sql.insert_api_key(store, key, verifier(secret), secret)
            body = {"name": name, "scopes": granted, "ladders": limits, "expires_at": expires_at}
            AuditEntry(by, "key.created", None, key_id, body, request).note(store, now)
        return key, text

    def list(self) -> list[Key]:
        """Return all keys by creation time, including revoked and expired ones."""
        with self._database.read() as store:
            return account_sql.read_all_api_keys(store)

    def revoke(self, key: str, *, by: Caller = OPERATOR, request: str | None = None) -> Key:
        """Revoke a key, given its id or full text, and with it the tokens it issued; revoking twice changes nothing.

        Raises UnknownNameError.
        """
        by.check("admin")
        whole = _TEXT.fullmatch(key)
        wanted = key if whole is None else whole[1]
        now = self._clock()
        with self._database.write() as store:
            stored = None
            if _ID.fullmatch(wanted):
                account_sql.lock_api_key(store, wanted)
                stored = account_sql.read_api_key(store, wanted)
            if stored is None:
                raise UnknownNameError("key", _without_secret(wanted), account_sql.read_unrevoked_key_ids(store))
            revoked = stored.key
            if revoked.revoked_at is None:
                account_sql.set_key_revoked_at(store, wanted, now)
                AuditEntry(by, "key.revoked", None, wanted, request=request).note(store, now)
                revoked = replace(revoked, revoked_at=now)
        self._cache.pop(wanted, None)
        return revoked

    # authentication, with each request

    def authenticate(self, text: str) -> Caller:
        """Return the caller of a key. Raises AccessError if it is invalid, revoked or expired."""
        return self._admit(text, self._find(_id_of(text)))

    def recall(self, text: str) -> Caller | None:
        """Like `authenticate`, but without querying the database; None if the key is not cached."""
        cached = self._cached(_id_of(text))
        return None if cached is None else self._admit(text, cached)

    def authenticate_signed(self, signed: SignedRequest, method: str, path: str, body: bytes) -> Caller:
        """Return the caller of a signed request, see signing.sign. Does not check whether the signature is new.

        Raises AccessError as `authenticate` does, or for a wrong signature; SecretError without the master secret.
        """
        known = self._find(signed.key)
        if known is None:
            raise AccessError(
                f"the key {_without_secret(signed.key)!r} is not known; send the id of a key, as `evenmatch key list` "
                "shows it"
            )
        secret = known.stored.signing_key(self._database.master.sealer())
        if secret is None:
            raise AccessError(
                f"the key {signed.key} is older than the master secret and cannot sign requests; create a new key, or "
                "send the key itself"
            )
        now = self._clock()
        check(secret, signed, method, path, body, now)
        known.check_good(now)
        return known.caller

    def caller(self, key: str) -> Caller:
        """Return the caller of the key with this id. Raises AccessError if it is unknown, revoked or expired."""
        known = self._find(key)
        if known is None:
            raise AccessError(f"the key {_without_secret(key)!r} is not known")
        known.check_good(self._clock())
        return known.caller

    def is_remembered(self, key: str) -> bool:
        """Return whether the key with this id can be checked without a query."""
        return self._cached(key) is not None

    def was_found(self, key: str) -> bool:
        """Return whether the key with this id or text was ever read from the database by this process."""
        return key[:_ID_LETTERS] in self._cache

    def _admit(self, text: str, known: _CachedKey | None) -> Caller:
        if known is None or not hmac.compare_digest(verifier(signing_key(text)), known.stored.verifier):
            raise AccessError(f"the key {text[:_ID_LETTERS]} is not known, or its secret is wrong; {ACCEPTED}")
        known.check_good(self._clock())
        return known.caller

    def _cached(self, key: str) -> _CachedKey | None:
        cached = self._cache.get(key)
        if cached is None or not 0 <= self._clock() - cached.read_at < REMEMBERED:
            return None
        return cached

    def _find(self, key: str) -> _CachedKey | None:
        cached = self._cached(key)
        if cached is not None:
            return cached
        read_at = self._clock()  # before the query, so that a revocation during it applies within two seconds
        if not _ID.fullmatch(key):
            return None
        with self._database.read() as store:
            stored = account_sql.read_api_key(store, key)
        if stored is None:
            return None
        self._cache[key] = loaded = _CachedKey.of(stored, read_at)
        return loaded


def _scopes_of(scopes: Iterable[str]) -> tuple[str, ...]:
    requested = set(scopes)
    for scope in sorted(requested - set(SCOPES)):
        raise UnknownNameError("scope", scope, SCOPES)
    if not requested:
        raise UsageError(f"a key needs at least one scope: {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in requested)


def _id_of(text: str) -> str:
    parts = _TEXT.fullmatch(text)
    if parts is None:
        raise AccessError(f"this is not a key: a key is em_, 10 letters, _ and 43 letters; {ACCEPTED}")
    return parts[1]


def _without_secret(key: str) -> str:
    """Return a key id for messages, cut before any part of the secret."""
    if len(key) <= _ID_LETTERS:
        return key
    return f"{key[: _ID_LETTERS if key.startswith(PREFIX) else 4]}…"
