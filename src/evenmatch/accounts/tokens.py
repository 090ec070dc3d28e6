"""Player tokens and login links: short-lived signed texts, issued to the game's backend.

With a token, a client acts as one player. A login link begins one session of one player on the web site.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import jwt

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import OPERATOR, PLAYER_SCOPES, Caller
from evenmatch.accounts.issuer_tokens import IssuerTokens
from evenmatch.accounts.keys import PREFIX, Keys
from evenmatch.durations import SECOND
from evenmatch.errors import AccessError, ForbiddenError, UsageError
from evenmatch.ledger.database import Database
from evenmatch.ledger.text import check_text
from evenmatch.times import Time, iso_time

ISSUER, LINK = "evenmatch", "evenmatch login link"
LASTS, LONGEST = 3600, 86_400  # lifetime in seconds: default, maximum
LINK_LASTS = 900  # seconds, by default
LINK_PATH = "/login/link"
CLOCK_SKEW = 60  # seconds by which the clocks of two processes may differ
LARGEST = 6_000  # characters of a token, which must fit into the request headers
OTHER = "it does not have the claims of a player token"
ACCEPTED = "send a token exactly as it was issued to the game's backend"
REFUSED: tuple[tuple[type[jwt.PyJWTError], str], ...] = (  # the first match applies
    (jwt.InvalidSignatureError, "its signature is wrong: it was forged or changed, or the master secret was replaced"),
    (jwt.InvalidAlgorithmError, "its signature algorithm is not HS256"),
    (jwt.InvalidIssuerError, "its issuer is not evenmatch"),
    (jwt.MissingRequiredClaimError, "it lacks one of the claims exp, iat, sub and iss"),
    (jwt.DecodeError, "it is not a token: a token has three base64url parts, separated by dots"),
)


@dataclass(frozen=True)
class Token:
    """A token that acts as a player until it expires or the key that issued it is revoked.

    ladders  the ladders the token is valid for; null: those of the key
    text     send it as `Authorization: Bearer …`
    """

    player: str
    ladders: tuple[str, ...] | None
    expires_at: Time
    text: str = field(repr=False)


class Tokens:
    """Issues and verifies player tokens, which are signed with keys derived from the master secret. Thread-safe.

    Every method raises SecretError without a master secret.
    issued_elsewhere  verifies the tokens of the studio's own identity provider; None: only our own are accepted
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], int],
        keys: Keys,
        issued_elsewhere: IssuerTokens | None = None,
    ) -> None:
        self._database, self._clock, self._keys, self._elsewhere = database, clock, keys, issued_elsewhere

    def issue(self, by: Caller, player: str, ladders: Iterable[str] | None = None, lasts: int | None = None) -> Token:
        """Issue a token to queue and read as this player, who need not exist yet.

        by       a caller with an API key and the scope queue; the token ends when that key is revoked or expires
        ladders  None: those of the key;  lasts  seconds, 3,600 by default
        Raises ForbiddenError, UsageError, InputError for an invalid player name, UnknownNameError for a ladder.
        """
        if not by.key.startswith(PREFIX):
            raise ForbiddenError(f"{by.actor} cannot issue tokens; authenticate with an API key")
        return self._issue(by, player, ladders, LASTS if lasts is None else lasts, {"iss": ISSUER})

    def issue_link(
        self, by: Caller, player: str, ladders: Iterable[str] | None = None, lasts: int | None = None
    ) -> Token:
        """Issue a login link, as `issue` does for tokens: its text is a path of the web site, which works once.

        by  also the operator at the command line; lasts: 900 seconds by default
        """
        seconds = LINK_LASTS if lasts is None else lasts
        link = self._issue(by, player, ladders, seconds, {"iss": LINK, "jti": secrets.token_urlsafe(18)})
        return replace(link, text=f"{LINK_PATH}?token={link.text}")

    def _issue(
        self, by: Caller, player: str, ladders: Iterable[str] | None, seconds: int, claims: Mapping[str, object]
    ) -> Token:
        by.check("queue")
        if by.player is not None or not (by.key.startswith(PREFIX) or by.key == OPERATOR.key):
            raise ForbiddenError(f"{by.actor} cannot issue tokens; authenticate with an API key")
        check_text("player name", player)
        if not 1 <= seconds <= LONGEST:
            raise UsageError(f"a token cannot last {seconds} s; expected 1 to {LONGEST} s")
        limits = by.ladders
        if ladders is not None:
            limits = frozenset(ladders)
            self._check_ladders(by, limits)
        issued = self._clock() // SECOND
        claims = {**claims, "sub": player, "iat": issued, "exp": issued + seconds, "key": by.key}
        if limits is not None:
            claims["ladders"] = sorted(limits)
        text = encode_signed(claims, self._signing_keys())
        if len(text) > LARGEST:
            raise UsageError(
                f"the token has {len(text):,} characters, at most {LARGEST:,} are allowed: name fewer ladders"
            )
        return Token(player, None if limits is None else tuple(sorted(limits)), (issued + seconds) * SECOND, text)

    def _check_ladders(self, by: Caller, ladders: frozenset[str]) -> None:
        if not ladders:
            raise UsageError("a token needs at least one ladder, or None for the ladders of the key")
        for ladder in sorted(ladders):
            by.check("queue", ladder)
        with self._database.read() as store:
            for ladder in sorted(ladders):
                store.head(ladder)  # raises UnknownNameError

    def verify(self, text: str) -> Caller:
        """Return the caller of a token.

        Raises AccessError if it is forged or expired, or the key that issued it was revoked or has expired; IssuerError
        if the keys of its identity provider cannot be read.
        """
        if self._elsewhere is not None and self._is_from_elsewhere(text):
            return self._elsewhere.verify(text)
        caller = self._caller(text)
        self._keys.caller(caller.issuer)
        return caller

    def recall(self, text: str) -> Caller | None:
        """Like `verify`, but without querying the database; None if a query is needed."""
        if self._is_from_elsewhere(text):
            return None
        caller = self._caller(text)
        return caller if self._keys.is_remembered(caller.issuer) and self._keys.caller(caller.issuer) else None

    def read_link(self, text: str) -> Caller:
        """Return the player of the token in a login link, without using it up. Raises AccessError."""
        return self._caller(text, LINK)

    def use_link(self, text: str) -> Caller:
        """Return the player of the token in a login link, once. Raises AccessError."""
        caller = self._caller(text, LINK)
        if caller.issuer != OPERATOR.key:
            self._keys.caller(caller.issuer)
        assert caller.expires_at is not None
        signed = text.rpartition(".")[0]  # the signature itself can be spelled in several ways
        used = [(caller.expires_at // SECOND, hashlib.sha256(signed.encode()).digest())]
        with self._database.write() as store:
            if not account_sql.insert_new_signatures(store, used):
                raise AccessError("this login link was already used; ask for a new one")
        return caller

    def _is_from_elsewhere(self, text: str) -> bool:
        return self._elsewhere is not None and len(text) <= LARGEST and self._elsewhere.issued(text)

    def _caller(self, text: str, kind: str = ISSUER) -> Caller:
        """Return the player of a token with a valid signature, or of a login link. Raises AccessError."""
        if len(text) > LARGEST or not text.isascii():
            raise _refused(REFUSED[-1][1])
        try:
            claims = decode_signed(text, kind, ["exp", "iat", "sub", "iss"], self._signing_keys())
        except (jwt.PyJWTError, RecursionError) as error:
            raise _refused(next((reason for kind, reason in REFUSED if isinstance(error, kind)), OTHER)) from None
        listed = claims.get("ladders")
        match claims:
            case {"sub": str(player), "key": str(key), "iat": int(issued), "exp": int(ends)}:
                pass
            case _:
                raise _refused(OTHER)
        if listed is not None and not isinstance(listed, list):  # else it would become valid for all ladders
            raise _refused(OTHER)
        now = self._clock()
        if ends * SECOND <= now:
            raise _refused(f"it expired at {iso_time(ends * SECOND)}")
        if issued * SECOND > now + CLOCK_SKEW * SECOND:
            raise _refused(f"its issue time is in the future, {iso_time(issued * SECOND)}")
        ladders = None if listed is None else frozenset(map(str, listed))
        return Caller(f"player {player}", PLAYER_SCOPES, ladders, player, f"{key}/{player}", ends * SECOND)

    def _signing_keys(self) -> list[bytes]:
        return self._database.master.sealer().signing_keys("player token")


def encode_signed(claims: Mapping[str, object], keys: list[bytes]) -> str:
    """Return a JSON Web Token signed with the first key."""
    return jwt.encode(dict(claims), keys[0], algorithm="HS256")


def decode_signed(text: str, issuer: str, required: list[str], keys: list[bytes]) -> Mapping[str, object]:
    """Return the claims of a JSON Web Token that one of the keys signed. Raises PyJWTError.

    The caller compares the times among the claims with its own clock.
    """
    checks: jwt.types.Options = {"require": required, "verify_exp": False, "verify_iat": False, "verify_nbf": False}
    for key in keys[:-1]:
        with suppress(jwt.InvalidSignatureError):
            return jwt.decode(text, key, algorithms=["HS256"], issuer=issuer, options=checks)
    return jwt.decode(text, keys[-1], algorithms=["HS256"], issuer=issuer, options=checks)


def _refused(reason: str) -> AccessError:
    return AccessError(f"the token is not valid: {reason}; {ACCEPTED}")
