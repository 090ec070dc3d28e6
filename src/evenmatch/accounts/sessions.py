"""Web sessions: signed cookies, created with an API key or a player's token, and valid until logout or expiry."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jwt

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import PLAYER_SCOPES, Caller
from evenmatch.accounts.keys import PREFIX, Keys
from evenmatch.accounts.tokens import Tokens, decode_signed, encode_signed
from evenmatch.durations import SECOND
from evenmatch.errors import AccessError
from evenmatch.ledger.database import Database

LASTS = 12 * 3600  # seconds
ISSUER = "evenmatch session"
LARGEST = 3_900  # characters of a session's text: browsers drop cookies of more than 4,096 bytes
PROOF_SIZE = 32  # bytes


@dataclass(frozen=True)
class Session:
    """A valid session.

    caller  the holder of its API key, or the player whose token began it
    proof   the CSRF token that every form of the session carries, under a mask
    name    the session's id;  until  its expiry, microseconds since the epoch
    """

    caller: Caller
    proof: str
    name: str
    until: int

    def masked_proof(self) -> str:
        """Return the CSRF token under a fresh mask.

        Pages are compressed, and some repeat what a link has sent. Without the mask, the sizes of many responses would
        reveal the token (the BREACH attack).
        """
        mask = secrets.token_bytes(PROOF_SIZE)
        return (mask + _xor(mask, bytes.fromhex(self.proof))).hex()

    def is_proved_by(self, sent: str) -> bool:
        """Whether a submitted form carries the CSRF token of this session, under any mask."""
        try:
            raw = bytes.fromhex(sent)
        except ValueError:
            return False
        unmasked = _xor(raw[:PROOF_SIZE], raw[PROOF_SIZE:]) if len(raw) == 2 * PROOF_SIZE else b""
        return hmac.compare_digest(bytes.fromhex(self.proof), unmasked)


class Sessions:
    """Creates, verifies and ends sessions, which are signed with keys derived from the master secret. Thread-safe.

    A session also ends when its API key, or the key that issued the player's token, expires or is revoked. A session
    begun with a token ends with the token. Sessions that ended early are recorded in the database.
    """

    def __init__(self, database: Database, clock: Callable[[], int], keys: Keys, tokens: Tokens) -> None:
        self._database, self._clock, self._keys, self._tokens = database, clock, keys, tokens

    def begin(self, text: str) -> str:
        """Create a session with a key or a player's token, and return its cookie text.

        Raises AccessError if the key or token is invalid, revoked or expired, or if the token is too large.
        """
        text = text.strip()
        claims: dict[str, object] = {"iss": ISSUER, "jti": secrets.token_urlsafe(18)}
        ends = self._clock() // SECOND + LASTS
        if text.startswith(PREFIX):
            claims |= {"sub": self._keys.authenticate(text).key, "exp": ends}
        else:
            caller = self._tokens.verify(text)
            assert caller.expires_at is not None
            claims |= {
                "sub": caller.issuer,
                "exp": min(ends, caller.expires_at // SECOND),
                "player": caller.player,
                "ladders": None if caller.ladders is None else sorted(caller.ladders),
            }
        cookie = encode_signed(claims, self._signing_keys())
        if len(cookie) > LARGEST:
            raise AccessError(
                f"a session with this token has {len(cookie):,} characters, at most {LARGEST:,} fit into a cookie; "
                "expected a token for fewer ladders, or of a player with a shorter name"
            )
        return cookie

    def find(self, text: str) -> Session | None:
        """Return the session of a cookie; None if it is forged, expired or ended, or its key or token is invalid."""
        signed = self._signed(text)
        if signed is None:
            return None
        claims, until = signed
        try:
            caller = _as_player(self._keys.caller(str(claims["sub"])), claims)
        except AccessError:
            return None
        session = str(claims["jti"])
        with self._database.read() as store:
            if account_sql.is_session_ended(store, session):
                return None
        proof = hmac.new(self._signing_keys()[-1], f"proof {session}".encode(), hashlib.sha256).hexdigest()
        return Session(caller, proof, session, until)

    def is_invalid(self, text: str) -> bool:
        """Return whether a cookie is forged or expired, without querying the database."""
        return len(text) > LARGEST or self._signed(text) is None

    def end(self, session: Session) -> None:
        """End a session: its cookie is no longer valid."""
        with self._database.write() as store:
            account_sql.delete_expired_sessions(store, self._clock())
            account_sql.put_ended_session(store, session.name, session.until)

    def _signed(self, text: str) -> tuple[Mapping[str, object], int] | None:
        """Return the claims of a signed text, and its expiry in microseconds; None if it is forged or expired."""
        try:
            claims = decode_signed(text, ISSUER, ["exp", "sub", "jti", "iss"], self._signing_keys())
        except jwt.PyJWTError:
            return None
        expires = claims["exp"]
        if not isinstance(expires, int) or expires * SECOND <= self._clock():
            return None
        return claims, expires * SECOND

    def _signing_keys(self) -> list[bytes]:
        return self._database.master.sealer().signing_keys("session")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _as_player(issuer: Caller, claims: Mapping[str, object]) -> Caller:
    """Return the caller of a session: that of the key, or the player if a token began it."""
    player, ladders = claims.get("player"), claims.get("ladders")
    if player is None:
        return issuer
    limits = frozenset(map(str, ladders)) if isinstance(ladders, list) else None
    return Caller(f"player {player}", PLAYER_SCOPES, limits, str(player), f"{issuer.key}/{player}")
