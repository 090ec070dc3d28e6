"""Web sessions: signed cookies, created with an API key at login, valid until logout or expiry."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import jwt

from evenmatch.durations import SECOND
from evenmatch.errors import AccessError
from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import ended_sessions, shared_secrets
from evenmatch.ledger.tables.shared_secrets import SharedSecret
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.keys import Keys

LASTS = 12 * 3600  # seconds
SECRET = "session"  # name of the signing secret in the database
ISSUER = "evenmatch session"


@dataclass(frozen=True)
class Session:
    """A valid session.

    caller  the permissions of its API key
    proof   the CSRF token that each form of the session carries
    name    the session's id;  until  its expiry, microseconds since the epoch
    """

    caller: Caller
    proof: str
    name: str
    until: int

    def is_proved_by(self, sent: str) -> bool:
        """Whether a submitted form carries the CSRF token of this session."""
        return hmac.compare_digest(self.proof.encode(), sent.encode(errors="replace"))


class Sessions:
    """Creates, verifies and ends sessions. Thread-safe; processes share the signing secret through the database.

    A session is a signed text that also ends when its API key expires or is revoked. Sessions that were ended early
    are recorded in the database.
    """

    def __init__(self, database: Database, clock: Callable[[], int], keys: Keys) -> None:
        self._database, self._clock, self._keys = database, clock, keys
        self._secret: bytes | None = None

    def begin(self, key: str) -> str:
        """Create a session and return its cookie text. Raises AccessError for an invalid, revoked or expired key."""
        caller = self._keys.authenticate(key.strip())
        now = self._clock() // SECOND
        claims = {
            "iss": ISSUER,
            "sub": caller.key,
            "jti": secrets.token_urlsafe(18),
            "exp": now + LASTS,
        }
        return jwt.encode(claims, self._signing(), algorithm="HS256")

    def find(self, text: str) -> Session | None:
        """The session of a cookie text; None if it is forged, expired or ended, or its key is revoked or expired."""
        try:
            claims = jwt.decode(
                text,
                self._signing(),
                algorithms=["HS256"],
                issuer=ISSUER,
                options={"require": ["exp", "sub", "jti", "iss"], "verify_exp": False},
            )
        except jwt.PyJWTError:
            return None
        if not isinstance(claims["exp"], int) or claims["exp"] * SECOND <= self._clock():
            return None
        try:
            caller = self._keys.caller(str(claims["sub"]))
        except AccessError:
            return None
        session = str(claims["jti"])
        with self._database.read() as store:
            if ended_sessions.contains(store, session):
                return None
        proof = hmac.new(self._signing(), f"proof {session}".encode(), hashlib.sha256).hexdigest()
        return Session(caller, proof, session, claims["exp"] * SECOND)

    def end(self, session: Session) -> None:
        """End a session: its cookie text is not valid any more."""
        with self._database.write() as store:
            ended_sessions.delete_expired(store, self._clock())
            ended_sessions.put(store, session.name, session.until)

    def _signing(self) -> bytes:
        """The signing secret that all processes share, created on first use."""
        if self._secret is None:
            with self._database.write() as store:
                shared_secrets.insert_missing(store, SECRET, SharedSecret(secrets.token_bytes(32), self._clock()))
                self._secret = shared_secrets.read(store, SECRET)[SECRET].value
        return self._secret
