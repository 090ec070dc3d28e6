"""Web sessions, and checks of the credentials of requests that wait for a long time.

A session is a signed cookie, created with an API key or a player's token, and valid until logout or expiry.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jwt

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import Caller
from evenmatch.accounts.account_sql import SharedSecret
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.tokens import PLAYER_SCOPES, Tokens
from evenmatch.durations import SECOND
from evenmatch.errors import AccessError
from evenmatch.ledger.database import Database

LASTS = 12 * 3600  # seconds
SECRET = "session"  # name of the signing secret in the database
ISSUER = "evenmatch session"
KEY = "em_"  # begins every API key
LARGEST = 3_900  # characters of a session's text: browsers drop cookies of more than 4,096 bytes


@dataclass(frozen=True)
class Session:
    """A valid session.

    caller  the permissions of its API key, or of the player whose token began it
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

    A session is a signed text that also ends when its API key, or the key that issued the player's token, expires or is
    revoked. That of a token ends with the token, and when the secret that signed the token is not accepted any more.
    Sessions that were ended early are recorded in the database.
    """

    def __init__(self, database: Database, clock: Callable[[], int], keys: Keys, tokens: Tokens) -> None:
        self._database, self._clock, self._keys, self._tokens = database, clock, keys, tokens
        self._secret: bytes | None = None

    def begin(self, text: str) -> str:
        """Create a session with a key or a player's token, and return its cookie text.

        Raises AccessError if the key or token is invalid, revoked or expired, or if the token is too large.
        """
        text = text.strip()
        claims: dict[str, object] = {"iss": ISSUER, "jti": secrets.token_urlsafe(18)}
        ends = self._clock() // SECOND + LASTS
        if text.startswith(KEY):
            claims |= {"sub": self._keys.authenticate(text).key, "exp": ends}
        else:
            caller = self._tokens.verify(text)
            assert caller.expires_at is not None
            claims |= {
                "sub": caller.issuer,
                "exp": min(ends, caller.expires_at // SECOND),
                "player": caller.player,
                "signer": caller.signer,
                "ladders": None if caller.ladders is None else sorted(caller.ladders),
            }
        cookie = jwt.encode(claims, self._signing(), algorithm="HS256")
        if len(cookie) > LARGEST:
            raise AccessError(
                f"a session with this token has {len(cookie):,} characters, at most {LARGEST:,} fit into a cookie; "
                "expected a token for fewer ladders, or of a player with a shorter name"
            )
        return cookie

    def find(self, text: str) -> Session | None:
        """The session of a cookie text; None if it is forged, expired or ended, or its key or token has ended."""
        signed = self._signed(text, self._signing())
        if signed is None:
            return None
        claims, until = signed
        try:
            caller = self._as_player(self._keys.caller(str(claims["sub"])), claims)
        except AccessError:
            return None
        session = str(claims["jti"])
        with self._database.read() as store:
            if account_sql.is_session_ended(store, session):
                return None
        proof = hmac.new(self._signing(), f"proof {session}".encode(), hashlib.sha256).hexdigest()
        return Session(caller, proof, session, until)

    def is_invalid(self, text: str) -> bool:
        """Whether memory tells, without a query, that a cookie text is forged or expired."""
        return len(text) > LARGEST or (self._secret is not None and self._signed(text, self._secret) is None)

    def ended(self, sessions: Iterable[str]) -> set[str]:
        """Those of the sessions with these ids that were ended early, as the database says now."""
        with self._database.read() as store:
            return account_sql.read_ended_among(store, sorted(sessions))

    def end(self, session: Session) -> None:
        """End a session: its cookie text is not valid any more."""
        with self._database.write() as store:
            account_sql.delete_expired_sessions(store, self._clock())
            account_sql.put_ended_session(store, session.name, session.until)

    def _signed(self, text: str, secret: bytes) -> tuple[Mapping[str, object], int] | None:
        """The claims of a signed text, and its expiry in microseconds; None if it is forged or expired."""
        try:
            claims: Mapping[str, object] = jwt.decode(
                text,
                secret,
                algorithms=["HS256"],
                issuer=ISSUER,
                options={"require": ["exp", "sub", "jti", "iss"], "verify_exp": False},
            )
        except jwt.PyJWTError:
            return None
        expires = claims["exp"]
        if not isinstance(expires, int) or expires * SECOND <= self._clock():
            return None
        return claims, expires * SECOND

    def _as_player(self, issuer: Caller, claims: Mapping[str, object]) -> Caller:
        """The caller of a session: that of the key, or the player if a token began it. Raises AccessError."""
        player, ladders, signer = claims.get("player"), claims.get("ladders"), claims.get("signer")
        if player is None:
            return issuer
        if not isinstance(signer, str) or not self._tokens.accepts(signer):
            raise AccessError("the secret that signed the token of this session was replaced; log in again")
        limits = frozenset(map(str, ladders)) if isinstance(ladders, list) else None
        key = f"{issuer.key}/{player}"
        return Caller(f"player {player}", PLAYER_SCOPES, limits, str(player), key, signer=signer)

    def _signing(self) -> bytes:
        """The signing secret that all processes share, created on first use."""
        if self._secret is None:
            with self._database.read() as store:
                stored = account_sql.read_shared_secrets(store, SECRET)
            self._secret = stored[SECRET].value if SECRET in stored else None
        if self._secret is None:
            with self._database.write() as store:
                account_sql.insert_missing_secret(store, SECRET, SharedSecret(secrets.token_bytes(32), self._clock()))
                self._secret = account_sql.read_shared_secrets(store, SECRET)[SECRET].value
        return self._secret


class Credential(NamedTuple):
    """The credential of a request.

    key         the id of the API key, or of the key that issued the token or began the session
    expires_at  of the token or session, in microseconds since the epoch; None: the key's expiry alone counts
    signer      of a player: the digest of the secret that signed the token
    session     the id of a web session
    """

    key: str
    expires_at: int | None = None
    signer: str | None = None
    session: str | None = None


class CredentialChecks:
    """Checks of many credentials at once."""

    def __init__(self, keys: Keys, tokens: Tokens, sessions: Sessions, clock: Callable[[], int]) -> None:
        self._keys, self._tokens, self._sessions, self._clock = keys, tokens, sessions, clock

    def ended(self, credentials: Collection[Credential]) -> set[Credential]:
        """Those that were revoked or ended, or have expired, as the database says now. Raises StoreError."""
        keys = self._keys.ended({credential.key for credential in credentials})
        sessions = {credential.session for credential in credentials if credential.session is not None}
        ended_sessions = self._sessions.ended(sessions) if sessions else set()
        signers = {credential.signer for credential in credentials if credential.signer is not None}
        ended_signers = signers - self._tokens.signers() if signers else set()
        now = self._clock()
        return {
            credential
            for credential in credentials
            if credential.key in keys
            or credential.session in ended_sessions
            or credential.signer in ended_signers
            or (credential.expires_at is not None and credential.expires_at <= now)
        }
