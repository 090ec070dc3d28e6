"""Web sessions: signed cookies, begun with an API key, a login link or an account, and valid until logout or expiry."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jwt

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import OPERATOR, Caller
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.linked_accounts import LinkedAccounts, player_caller
from evenmatch.accounts.tokens import Tokens, decode_signed, encode_signed
from evenmatch.durations import SECOND
from evenmatch.errors import AccessError
from evenmatch.ledger.database import Database

LASTS = 12 * 3600  # seconds
ISSUER, BEGUN = "evenmatch session", "evenmatch login"
LOGIN_LASTS = 600  # seconds between leaving for an identity provider and coming back
LARGEST = 3_900  # characters of a session's text: browsers drop cookies of more than 4,096 bytes
PROOF_SIZE = 32  # bytes


@dataclass(frozen=True)
class Session:
    """A valid session.

    caller  the holder of its API key, the player of its account or login link, or an operator by their groups
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


@dataclass(frozen=True)
class OperatorGroups:
    """The scopes that operators have by single sign-on.

    issuer  the identity provider;  scopes  those of each of its groups
    """

    issuer: str = ""
    scopes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def caller(self, issuer: str, subject: str, groups: Sequence[object]) -> Caller:
        """Return an operator with the scopes of their groups. Raises AccessError if they have none."""
        scopes = frozenset(scope for group, given in self.scopes.items() if group in groups for scope in given)
        if issuer != self.issuer or not scopes:
            raise AccessError(
                f"the account {subject!r} of {issuer} is in none of the groups that EVENMATCH_OPERATOR_GROUPS lists: "
                f"{', '.join(self.scopes) or 'it is empty'}"
            )
        return Caller(f"operator {subject}", scopes, key=f"{issuer}/{subject}")


NO_GROUPS = OperatorGroups()


class Sessions:
    """Creates, verifies and ends sessions, which are signed with keys derived from the master secret. Thread-safe.

    A session also ends when its API key, or the key that issued its login link, expires or is revoked, when its account
    is no longer linked, or when the groups of its operator give no scope. Sessions that ended early are recorded in the
    database.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], int],
        keys: Keys,
        tokens: Tokens,
        operators: OperatorGroups = NO_GROUPS,
    ) -> None:
        self._database, self._clock, self._keys, self._tokens = database, clock, keys, tokens
        self._accounts, self._operators = LinkedAccounts(database, clock), operators

    def begin(self, key: str) -> str:
        """Begin a session with an API key, and return its cookie text. Raises AccessError if the key is not valid."""
        return self._begun({"sub": self._keys.authenticate(key.strip()).key})

    def begin_by_link(self, text: str) -> str:
        """Begin a session of a player with a login link, which is then used up. Raises AccessError."""
        caller = self._tokens.use_link(text)
        ladders = None if caller.ladders is None else sorted(caller.ladders)
        return self._begun({"sub": caller.issuer, "player": caller.player, "ladders": ladders})

    def begin_as_player(self, issuer: str, subject: str) -> str:
        """Begin a session of the player of an account. Raises AccessError if it is not linked."""
        self._accounts.caller(issuer, subject)
        return self._begun({"sub": subject, "account": issuer})

    def begin_as_operator(self, issuer: str, subject: str, groups: Sequence[str]) -> str:
        """Begin a session of an operator with the scopes of their groups. Raises AccessError if they have none."""
        self._operators.caller(issuer, subject, groups)
        known = [group for group in groups if group in self._operators.scopes]
        return self._begun({"sub": subject, "operator": issuer, "groups": known})

    def _begun(self, claims: Mapping[str, object]) -> str:
        common = {"iss": ISSUER, "jti": secrets.token_urlsafe(18), "exp": self._clock() // SECOND + LASTS}
        cookie = encode_signed({**common, **claims}, self._signing_keys())
        if len(cookie) > LARGEST:
            raise AccessError(
                f"this session has {len(cookie):,} characters, at most {LARGEST:,} fit into a cookie; expected a login "
                "for fewer ladders or groups, or of a player with a shorter name"
            )
        return cookie

    def find(self, text: str) -> Session | None:
        """Return the session of a cookie; None if it is forged, expired or ended, or what began it is not valid."""
        signed = self._signed(text)
        if signed is None:
            return None
        claims, until = signed
        try:
            caller = self._caller(claims)
        except AccessError:
            return None
        session = str(claims["jti"])
        with self._database.read() as store:
            if account_sql.is_session_ended(store, session):
                return None
        proof = hmac.new(self._signing_keys()[-1], f"proof {session}".encode(), hashlib.sha256).hexdigest()
        return Session(caller, proof, session, until)

    def _caller(self, claims: Mapping[str, object]) -> Caller:
        """Return the caller of a session. Raises AccessError if what began it is no longer valid."""
        begun_by = str(claims["sub"])
        match claims:
            case {"account": str(issuer)}:
                return self._accounts.caller(issuer, begun_by)
            case {"operator": str(issuer), "groups": list(groups)}:
                return self._operators.caller(issuer, begun_by, groups)
            case {"player": str(player), "ladders": ladders}:
                if begun_by != OPERATOR.key:
                    self._keys.caller(begun_by)
                limits = frozenset(map(str, ladders)) if isinstance(ladders, list) else None
                return player_caller(player, begun_by, ladders=limits)
            case _:
                return self._keys.caller(begun_by)

    def remember_login(self, state: Mapping[str, object]) -> str:
        """Return the cookie text that carries the state of a login while its owner is at an identity provider."""
        claims = {"iss": BEGUN, "exp": self._clock() // SECOND + LOGIN_LASTS, "state": dict(state)}
        return encode_signed(claims, self._signing_keys())

    def recall_login(self, text: str) -> Mapping[str, object] | None:
        """Return the state of a login; None if the cookie is forged or too old."""
        signed = self._signed(text, BEGUN)
        state = None if signed is None else signed[0].get("state")
        return state if isinstance(state, dict) else None

    def is_invalid(self, text: str) -> bool:
        """Return whether a cookie is forged or expired, without querying the database."""
        return len(text) > LARGEST or self._signed(text) is None

    def end(self, session: Session) -> None:
        """End a session: its cookie is no longer valid."""
        with self._database.write() as store:
            account_sql.delete_expired_sessions(store, self._clock())
            account_sql.put_ended_session(store, session.name, session.until)

    def _signed(self, text: str, issuer: str = ISSUER) -> tuple[Mapping[str, object], int] | None:
        """Return the claims of a signed text, and its expiry in microseconds; None if it is forged or expired."""
        required = ["exp", "sub", "jti", "iss"] if issuer == ISSUER else ["exp", "iss"]
        try:
            claims = decode_signed(text, issuer, required, self._signing_keys())
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
