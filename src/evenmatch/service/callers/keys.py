"""API keys: made and shown once, kept as hashes, asked for with every request."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from evenmatch.errors import AccessError, UnknownNameError, UsageError
from evenmatch.ledger import live_schema
from evenmatch.ledger.database import Database
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text
from evenmatch.service.callers.access import OPERATOR, SCOPES, Caller
from evenmatch.service.callers.audit import note
from evenmatch.service.callers.signing import Signed, check, signing_key
from evenmatch.service.times import iso_time
from evenmatch.tables.columns import LAST_TIME

REMEMBERED = 2_000_000  # microseconds for which what the database said of a key is believed
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
ACCEPTED = "accepted is a key as `evenmatch key create` showed it"
_ID_LETTERS = 13
_ID = re.compile(r"em_[a-z2-7]{10}")
_TEXT = re.compile(rf"({_ID.pattern})_[A-Za-z0-9_-]{{43}}")
_READ = "SELECT key, name, scopes, ladders, created_at, expires_at, revoked_at, digest FROM api_key"


@dataclass(frozen=True)
class Key:
    """All that may be told of a key. Times are microseconds since the epoch; ladders None: all of them."""

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
class _Held:
    """A key as the database had it at a time."""

    key: Key
    digest: bytes = field(repr=False)
    caller: Caller
    read_at: int

    @classmethod
    def of(cls, row: Row, read_at: int) -> _Held:
        key = _key_of(row)
        ladders = None if key.ladders is None else frozenset(key.ladders)
        caller = Caller(f"key {key.key}", frozenset(key.scopes), ladders, key=key.key)
        return cls(key, bytes(row[7]), caller, read_at)

    def check_good(self, now: int) -> None:
        """Raise AccessError where the key was revoked, or has expired."""
        key, state = self.key, self.key.state(now)
        at = {"revoked": key.revoked_at, "expired": key.expires_at}.get(state)
        if at is not None:
            said = "was revoked" if state == "revoked" else "expired"
            raise AccessError(f"the key {key.key} {said} at {iso_time(at)}; accepted is another one")


class Keys:
    """The keys of a database. Threads may share one; what another process changes holds here within two seconds."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._held: dict[str, _Held] = {}  # of keys that there are, so it stays small

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
        """Make a key; what is kept of it, and its text, which nobody can be told again.

        name     what people know it by;  ladders  None: all of them, those to come too
        Raises UnknownNameError for a scope or ladder that there is not, UsageError for none, or a time that is over.
        """
        by.check("admin")
        now = self._clock()
        check_text("the key's name", name, blank=False)
        granted = _scopes_of(scopes)
        limits = None if ladders is None else tuple(sorted(set(ladders)))
        if limits == ():
            raise UsageError("a key for no ladder could do nothing; accepted are one or more ladders, or None for all")
        if expires_at is not None and not now < expires_at <= LAST_TIME:
            raise UsageError(
                f"the key would expire at {expires_at} µs; accepted is a time to come, up to the year 9999"
            )
        made = f"em_{''.join(secrets.choice(LETTERS) for _ in range(_ID_LETTERS - 3))}"
        text = f"{made}_{secrets.token_urlsafe(32)}"
        key = Key(made, name, granted, limits, now, expires_at, None)
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            for ladder in limits or ():
                store.head(ladder)  # raises where there is none
            written = None if limits is None else json.dumps(limits, ensure_ascii=False)
            row = (made, name, signing_key(text), json.dumps(granted), written, now, expires_at)
            columns = ("key", "name", "digest", "scopes", "ladders", "created_at", "expires_at")
            store.rows.insert(connection, live_schema.api_key, columns, [row])
            body = {"name": name, "scopes": granted, "ladders": limits, "expires_at": expires_at}
            note(store, by, "key.created", target=made, body=body, now=now, request=request)
        return key, text

    def list(self) -> list[Key]:
        """Every key, the first one first, those that were revoked or have expired among them."""
        with self._database.read() as connection:
            store = Store(connection, self._database.rows)
            return [_key_of(row) for row in store.all(f"{_READ} ORDER BY created_at, key")]

    def revoke(self, key: str, *, by: Caller = OPERATOR, request: str | None = None) -> Key:
        """End a key, by its id, and the tokens it issued; one that was revoked stays so since then.

        Raises UnknownNameError.
        """
        by.check("admin")
        whole = _TEXT.fullmatch(key)
        wanted = key if whole is None else whole[1]
        now = self._clock()
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            found = []
            if _ID.fullmatch(wanted):
                store.run("UPDATE api_key SET name = name WHERE key = ?", wanted)  # so that one alone revokes it
                found = store.all(f"{_READ} WHERE key = ?", wanted)
            if not found:
                known = [row[0] for row in store.all("SELECT key FROM api_key WHERE revoked_at IS NULL ORDER BY key")]
                raise UnknownNameError("key", _without_secret(wanted), known)
            if _key_of(found[0]).revoked_at is None:
                store.run("UPDATE api_key SET revoked_at = ? WHERE key = ?", now, wanted)
                note(store, by, "key.revoked", target=wanted, now=now, request=request)
            revoked = _key_of(store.all(f"{_READ} WHERE key = ?", wanted)[0])
        self._held.pop(wanted, None)
        return revoked

    # asking, with every request

    def authenticate(self, text: str) -> Caller:
        """Who sends this key. Raises AccessError where it is none, or was revoked, or has expired."""
        return self._admit(text, self._find(_id_of(text)))

    def recall(self, text: str) -> Caller | None:
        """The same without a wait: None where the database must be asked."""
        held = self._remembered(_id_of(text))
        return None if held is None else self._admit(text, held)

    def authenticate_signed(
        self, key: str, timestamp: int, signature: str, method: str, path: str, body: bytes
    ) -> Caller:
        """Who signed a request with the key of this id; see signing.sign.

        Raises AccessError as `authenticate` does, or where it is not signed so. `is_remembered(key)` says whether the
        database need not be asked.
        """
        held = self._find(key)
        if held is None:
            raise AccessError(f"the key {_without_secret(key)!r} is not known; {ACCEPTED}, of which the id")
        now = self._clock()
        check(held.digest, Signed(key, timestamp, signature), method, path, body, now)
        held.check_good(now)
        return held.caller

    def caller(self, key: str) -> Caller:
        """Who asks by the key of this id. Raises AccessError where there is none, or it was revoked, or has expired."""
        held = self._find(key)
        if held is None:
            raise AccessError(f"the key {_without_secret(key)!r} is not known")
        held.check_good(self._clock())
        return held.caller

    def check_good(self, key: str) -> None:
        """Raise AccessError where there is no key of this id, or it was revoked, or has expired."""
        self.caller(key)

    def is_remembered(self, key: str) -> bool:
        """Whether this key, by its id, is judged without asking the database."""
        return self._remembered(key) is not None

    def _admit(self, text: str, held: _Held | None) -> Caller:
        given = signing_key(text)
        if held is None or not hmac.compare_digest(given, held.digest):
            raise AccessError(f"the key {text[:_ID_LETTERS]} is not known, or its secret is wrong; {ACCEPTED}")
        held.check_good(self._clock())
        return held.caller

    def _remembered(self, key: str) -> _Held | None:
        held = self._held.get(key)
        if held is None or not 0 <= self._clock() - held.read_at < REMEMBERED:
            return None
        return held

    def _find(self, key: str) -> _Held | None:
        remembered = self._remembered(key)
        if remembered is not None:
            return remembered
        read_at = self._clock()  # before it is read: a revocation after that is seen two seconds later
        if not _ID.fullmatch(key):
            return None
        with self._database.read() as connection:
            found = Store(connection, self._database.rows).all(f"{_READ} WHERE key = ?", key)
        if not found:
            return None
        self._held[key] = held = _Held.of(found[0], read_at)
        return held


def _scopes_of(scopes: Iterable[str]) -> tuple[str, ...]:
    asked = set(scopes)
    for scope in sorted(asked - set(SCOPES)):
        raise UnknownNameError("scope", scope, SCOPES)
    if not asked:
        raise UsageError(f"a key without a scope could do nothing; accepted are {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in asked)


def _id_of(text: str) -> str:
    found = _TEXT.fullmatch(text)
    if found is None:
        raise AccessError(f"this is no key: one has em_, 10 letters, _ and 43 letters; {ACCEPTED}")
    return found[1]


def _without_secret(key: str) -> str:
    """What was sent as a key's id, without the secret where the whole key was sent, or most of it."""
    if len(key) <= _ID_LETTERS:
        return key
    return f"{key[: _ID_LETTERS if key.startswith('em_') else 4]}…"


def _key_of(row: Row) -> Key:
    key, name, scopes, ladders, *times = row[:7]
    limits = None if ladders is None else tuple(json.loads(ladders))
    return Key(key, name, tuple(json.loads(scopes)), limits, *times)
