"""Player tokens: short-lived signed tokens, issued to the game's backend, that let a game client act as one player."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field

import jwt

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import OPERATOR, Caller
from evenmatch.accounts.account_sql import SharedSecret
from evenmatch.accounts.audit_trail import note
from evenmatch.accounts.keys import REMEMBERED, Keys
from evenmatch.durations import SECOND
from evenmatch.errors import AccessError, ForbiddenError, UsageError
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text
from evenmatch.times import Time, iso_time

ISSUER = "evenmatch"
LASTS, LONGEST = 3600, 86_400  # lifetime in seconds: default, maximum
PLAYER_SCOPES = frozenset({"queue", "read"})
LATE = 60  # seconds by which the clocks of two processes may differ
DIGEST = 16  # letters of a secret's digest
LARGEST = 6_000  # characters, so that the token fits into the request headers
OTHER = "its claims are not those of a player token"
ACCEPTED = "send a token exactly as it was issued to the game's backend"
PRESENT, FORMER = "token", "token-former"
REFUSED: tuple[tuple[type[jwt.PyJWTError], str], ...] = (  # the first match applies
    (jwt.InvalidSignatureError, "its signature is wrong: it was forged or changed, or its secret was replaced"),
    (jwt.InvalidAlgorithmError, "its signature algorithm is not HS256"),
    (jwt.InvalidIssuerError, "its issuer is not evenmatch"),
    (jwt.MissingRequiredClaimError, "it lacks one of the claims exp, iat, sub and iss"),
    (jwt.DecodeError, "it is not a token: a token has three base64url parts, separated by points"),
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


@dataclass(frozen=True)
class _Secrets:
    """The present and the former signing secret, as read from the database at `read_at`."""

    present: bytes = field(repr=False)
    former: bytes | None = field(repr=False)
    read_at: int

    @property
    def by_digest(self) -> dict[str, bytes]:
        """The accepted secrets by their digests, the present one first."""
        accepted = (self.present,) if self.former is None else (self.present, self.former)
        return {hashlib.sha256(secret).hexdigest()[:DIGEST]: secret for secret in accepted}


class Tokens:
    """Issues and verifies player tokens. Thread-safe; processes share the signing secret through the database.

    Each method raises SecretError if the secret cannot be sealed or opened.
    """

    def __init__(self, database: Database, clock: Callable[[], int], keys: Keys) -> None:
        self._database, self._clock, self._keys = database, clock, keys
        self._last_read: _Secrets | None = None

    def issue(self, by: Caller, player: str, ladders: Iterable[str] | None = None, lasts: int | None = None) -> Token:
        """Issue a token to queue and read as this player, who need not exist yet.

        by       a caller with an API key and the scope queue; the token ends when that key is revoked or expires
        ladders  None: those of the key;  lasts  seconds, 3,600 by default
        Raises ForbiddenError, UsageError, InputError for an invalid player name, UnknownNameError for a ladder.
        """
        by.check("queue")
        if by.player is not None or not by.key.startswith("em_"):
            raise ForbiddenError(f"{by.actor} cannot issue tokens; authenticate with an API key")
        check_text("player name", player)
        seconds = LASTS if lasts is None else lasts
        if not 1 <= seconds <= LONGEST:
            raise UsageError(f"a token cannot last {seconds} s; expected 1 to {LONGEST} s")
        limits = by.ladders
        if ladders is not None:
            limits = frozenset(ladders)
            self._check_ladders(by, limits)
        issued = self._clock() // SECOND
        claims: dict[str, object] = {
            "iss": ISSUER,
            "sub": player,
            "iat": issued,
            "exp": issued + seconds,
            "key": by.key,
        }
        if limits is not None:
            claims["ladders"] = sorted(limits)
        text = jwt.encode(claims, self._secrets().present, algorithm="HS256")
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

    # verification, with each request

    def verify(self, text: str) -> Caller:
        """The caller of a token.

        Raises AccessError if it is forged or expired, or the key that issued it was revoked or has expired.
        """
        cached = self._cached()
        caller = None if cached is None else self._caller(text, cached)
        if caller is None:  # another process may have rotated the secret since
            caller = self._caller(text, self._load())
        if caller is None:
            raise _refused(REFUSED[0][1])
        self._keys.check_good(caller.issuer)
        return caller

    def recall(self, text: str) -> Caller | None:
        """Like `verify`, from the cache alone; None if the database must be read."""
        cached = self._cached()
        caller = None if cached is None else self._caller(text, cached)
        if caller is None or not self._keys.is_remembered(caller.issuer):
            return None
        self._keys.check_good(caller.issuer)
        return caller

    def verify_known(self, text: str) -> Caller | None:
        """Like `verify`, but None for a wrong signature, and the secrets are read at most every two seconds."""
        caller = self._caller(text, self._secrets())
        if caller is not None:
            self._keys.check_good(caller.issuer)
        return caller

    def accepts(self, signer: str) -> bool:
        """Whether tokens are accepted that the secret with this digest signed."""
        cached = self._cached()
        return (cached is not None and signer in cached.by_digest) or signer in self.signers()

    def signers(self) -> Set[str]:
        """The digests of the present and the former secret, as the database says now."""
        return self._load().by_digest.keys()

    def _caller(self, text: str, known: _Secrets) -> Caller | None:
        """The caller of a token; None if neither secret signed it. Raises AccessError."""
        if len(text) > LARGEST or not text.isascii():
            raise _refused(REFUSED[-1][1])
        for digest, secret in known.by_digest.items():
            try:
                return self._player(_decode(text, secret), digest)
            except jwt.InvalidSignatureError:
                continue
            except (jwt.PyJWTError, RecursionError) as error:
                reason = next((reason for kind, reason in REFUSED if isinstance(error, kind)), OTHER)
                raise _refused(reason) from None
        return None

    def _player(self, claims: Mapping[str, object], signer: str) -> Caller:
        """The player of a token with a valid signature. Raises AccessError."""
        listed = claims.get("ladders")
        match claims:
            case {"sub": str(player), "key": str(key), "iat": int(issued), "exp": int(ends)}:
                pass
            case _:
                raise _refused(OTHER)
        if listed is not None and not isinstance(listed, list):  # must not become valid for all ladders
            raise _refused(OTHER)
        now = self._clock()
        if ends * SECOND <= now:
            raise _refused(f"it expired at {iso_time(ends * SECOND)}")
        if issued * SECOND > now + LATE * SECOND:
            raise _refused(f"its issue time is in the future, {iso_time(issued * SECOND)}")
        ladders = None if listed is None else frozenset(map(str, listed))
        return Caller(f"player {player}", PLAYER_SCOPES, ladders, player, f"{key}/{player}", ends * SECOND, signer)

    # the secret

    def rotate(self, *, by: Caller = OPERATOR, request: str | None = None) -> None:
        """Replace the signing secret; tokens signed with the former one stay valid until they expire.

        Two rotations invalidate all tokens.
        """
        by.check("admin")
        now = self._clock()
        with self._database.write() as store:
            _create_secret(store, now)
            account_sql.lock_shared_secret(store, PRESENT)  # one rotation at a time
            former = account_sql.read_shared_secrets(store, PRESENT)[PRESENT].value
            replaced = {PRESENT: SharedSecret(secrets.token_bytes(32), now), FORMER: SharedSecret(former, now)}
            account_sql.put_shared_secrets(store, replaced)
            note(store, by, "token.secret.rotated", now=now, request=request)
        self._last_read = None

    def _cached(self) -> _Secrets | None:
        last = self._last_read
        return last if last is not None and 0 <= self._clock() - last.read_at < REMEMBERED else None

    def _secrets(self) -> _Secrets:
        cached = self._cached()
        return self._load() if cached is None else cached

    def _load(self) -> _Secrets:
        read_at = self._clock()
        stored = self._read()
        if PRESENT not in stored:
            with self._database.write() as store:
                _create_secret(store, read_at)
            stored = self._read()
        former, retired_at = stored.get(FORMER, (None, 0))
        if (
            read_at >= retired_at + (LONGEST + LATE) * SECOND
        ):  # LATE: another process may have signed with it a bit longer
            former = None
        self._last_read = loaded = _Secrets(stored[PRESENT].value, former, read_at)
        return loaded

    def _read(self) -> dict[str, SharedSecret]:
        with self._database.read() as store:
            return account_sql.read_shared_secrets(store, PRESENT, FORMER)


def _create_secret(store: Store, now: int) -> None:
    """Create the present secret if there is none; an existing one stays."""
    account_sql.insert_missing_secret(store, PRESENT, SharedSecret(secrets.token_bytes(32), now))


def _decode(text: str, secret: bytes) -> dict[str, object]:
    """The claims, checked except for their times, which the caller compares with its own clock."""
    claims: dict[str, object] = jwt.decode(
        text,
        secret,
        algorithms=["HS256"],
        issuer=ISSUER,
        options={
            "require": ["exp", "iat", "sub", "iss"],
            "verify_exp": False,
            "verify_iat": False,
            "verify_nbf": False,
        },
    )
    return claims


def _refused(reason: str) -> AccessError:
    return AccessError(f"the token is not valid: {reason}; {ACCEPTED}")
