"""Sessions of people who logged in on the web pages: a key, shown once, stands for them until they go or it ends."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import jwt

from evenmatch.errors import AccessError
from evenmatch.ledger import live_schema
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.keys import Keys

LASTS = 12 * 3600  # seconds
SECRET = "session"  # its name in the database
ISSUER = "evenmatch session"
SECOND = 1_000_000


@dataclass(frozen=True)
class Session:
    """Somebody who logged in.

    caller  as their key lets them act
    proof   what every form of theirs holds, so that no other site can send one in their name
    name    by which it is told from others;  until  when it ends, microseconds since the epoch
    """

    caller: Caller
    proof: str
    name: str
    until: int

    def is_proved_by(self, sent: str) -> bool:
        """Whether a form was made by a page of this session."""
        return hmac.compare_digest(self.proof.encode(), sent.encode(errors="replace"))


class Sessions:
    """Begins sessions and knows them again. Threads may share one, processes share the secret in the database.

    A session's text is signed, and ends with the key that it was begun with; of those that were ended before their time
    a note is kept.
    """

    def __init__(self, database: Database, clock: Callable[[], int], keys: Keys) -> None:
        self._database, self._clock, self._keys = database, clock, keys
        self._secret: bytes | None = None

    def begin(self, key: str) -> str:
        """The text of a new session, for a cookie. Raises AccessError where the key is none, or not good any more."""
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
        """The session of this text; None where it is forged or over, or its key was revoked or has expired."""
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
        with self._database.read() as connection:
            if Store(connection, self._database.rows).all("SELECT 1 FROM ended_session WHERE session = ?", session):
                return None
        proof = hmac.new(self._signing(), f"proof {session}".encode(), hashlib.sha256).hexdigest()
        return Session(caller, proof, session, claims["exp"] * SECOND)

    def end(self, session: Session) -> None:
        """End a session: from now on its text is nobody's."""
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            store.run("DELETE FROM ended_session WHERE until <= ?", self._clock())
            columns = ("session", "until")
            store.rows.upsert(connection, live_schema.ended_session, columns, [(session.name, session.until)])

    def _signing(self) -> bytes:
        """The secret that all processes share; whoever is first makes it."""
        if self._secret is None:
            columns = ("name", "value", "created_at")
            with self._database.write() as connection:
                store = Store(connection, self._database.rows)
                row = (SECRET, secrets.token_bytes(32), self._clock())
                store.rows.upsert(connection, live_schema.secret, columns, [row], same=True)
                self._secret = bytes(store.all("SELECT value FROM secret WHERE name = ?", SECRET)[0][0])
        return self._secret
