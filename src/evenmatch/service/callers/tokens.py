"""Players' tokens: short-lived, signed, issued to the game's backend, so that a game's client acts as one player."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import jwt

from evenmatch.errors import AccessError, ForbiddenError, UsageError
from evenmatch.ledger import live_schema
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text
from evenmatch.service.callers.access import OPERATOR, Caller
from evenmatch.service.callers.audit import note
from evenmatch.service.callers.keys import REMEMBERED, Keys
from evenmatch.service.times import iso_time

ISSUER = "evenmatch"
LASTS, LONGEST = 3600, 86_400  # seconds: by default, at most
LATE = 60  # seconds by which the clocks of two processes may differ
LARGEST = 6_000  # letters, so that it fits into a header with others
OTHER = "its claims are not those of a player's token"
ACCEPTED = "accepted is a token as the game's backend was issued it"
PRESENT, FORMER = "token", "token-former"
SECOND = 1_000_000
REFUSED: tuple[tuple[type[jwt.PyJWTError], str], ...] = (  # the first that fits
    (jwt.InvalidSignatureError, "its signature is not ours: it was forged or changed, or is older than our secrets"),
    (jwt.InvalidAlgorithmError, "it is signed by another algorithm than HS256"),
    (jwt.InvalidIssuerError, "its issuer is not evenmatch"),
    (jwt.MissingRequiredClaimError, "it lacks one of the claims exp, iat, sub and iss"),
    (jwt.DecodeError, "it is no token: three parts in base64url, between them points"),
)


@dataclass(frozen=True)
class Token:
    """A token for a player. text: whoever has it acts as the player until `expires_at`, in microseconds."""

    player: str
    ladders: tuple[str, ...] | None
    expires_at: int
    text: str = field(repr=False)


@dataclass(frozen=True)
class _Secrets:
    """By which tokens are signed, and by which they were before; as the database had them at a time."""

    present: bytes = field(repr=False)
    former: bytes | None = field(repr=False)
    read_at: int


class Tokens:
    """Issues tokens and tells whose they are. Threads may share one, processes share the secret in the database."""

    def __init__(self, database: Database, clock: Callable[[], int], keys: Keys) -> None:
        self._database, self._clock, self._keys = database, clock, keys
        self._held: _Secrets | None = None

    def issue(self, by: Caller, player: str, ladders: Iterable[str] | None = None, lasts: int | None = None) -> Token:
        """A token with which somebody may queue and read as this player, whether or not anybody knows them yet.

        by       holds a key with the scope queue, which ends the token when it is revoked or expires
        ladders  None: those of the key;  lasts  seconds, 3,600 by default
        Raises ForbiddenError, UsageError, InputError for a name that cannot be kept, UnknownNameError for a ladder.
        """
        by.check("queue")
        if by.player is not None or not by.key.startswith("em_"):
            raise ForbiddenError(f"{by.actor} asks for a token; one is issued to who asks with an API key")
        check_text("player name", player)
        seconds = LASTS if lasts is None else lasts
        if not 1 <= seconds <= LONGEST:
            raise UsageError(f"a token that lasts {seconds} s; accepted are 1 to {LONGEST}")
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
            raise UsageError(f"the token has {len(text):,} letters; accepted are {LARGEST:,}: name fewer ladders")
        return Token(player, None if limits is None else tuple(sorted(limits)), (issued + seconds) * SECOND, text)

    def _check_ladders(self, by: Caller, ladders: frozenset[str]) -> None:
        if not ladders:
            raise UsageError("a token for no ladder could do nothing; accepted are one or more, or None for the key's")
        for ladder in sorted(ladders):
            by.check("queue", ladder)
        with self._database.read() as connection:
            store = Store(connection, self._database.rows)
            for ladder in sorted(ladders):
                store.head(ladder)  # raises where there is none

    # asking, with every request

    def verify(self, text: str) -> Caller:
        """The player whose token this is.

        Raises AccessError where it is forged, has expired, or the key that issued it is good no more.
        """
        held = self._remembered()
        claims = None if held is None else self._claims(text, held)
        if claims is None:  # another process may have made another secret since
            claims = self._claims(text, self._load())
        if claims is None:
            raise _refused(REFUSED[0][1])
        caller, key = self._caller(claims)
        self._keys.check_good(key)
        return caller

    def recall(self, text: str) -> Caller | None:
        """The same without a wait: None where the database must be asked."""
        held = self._remembered()
        claims = None if held is None else self._claims(text, held)
        if claims is None:
            return None
        caller, key = self._caller(claims)
        if not self._keys.is_remembered(key):
            return None
        self._keys.check_good(key)
        return caller

    def _claims(self, text: str, held: _Secrets) -> Mapping[str, object] | None:
        """What a token says; None where no secret fits it."""
        if len(text) > LARGEST or not text.isascii():
            raise _refused(REFUSED[-1][1])
        for secret in (held.present, held.former):
            if secret is not None:
                try:
                    return _decode(text, secret)
                except jwt.InvalidSignatureError:
                    continue
                except (jwt.PyJWTError, RecursionError) as error:
                    raise _refused(next((told for kind, told in REFUSED if isinstance(error, kind)), OTHER)) from None
        return None

    def _caller(self, claims: Mapping[str, object]) -> tuple[Caller, str]:
        """The player of a token that is ours, and the key that issued it. Raises AccessError where it is too old."""
        listed = claims.get("ladders")
        match claims:
            case {"sub": str(player), "key": str(key), "iat": int(issued), "exp": int(ends)}:
                pass
            case _:
                raise _refused(OTHER)
        if listed is not None and not isinstance(listed, list):  # or it would be good for all ladders
            raise _refused(OTHER)
        now = self._clock()
        if ends * SECOND <= now:
            raise _refused(f"it expired at {iso_time(ends * SECOND)}")
        if issued * SECOND > now + LATE * SECOND:
            raise _refused(f"it is of a time to come, {iso_time(issued * SECOND)}")
        ladders = None if listed is None else frozenset(map(str, listed))
        scopes = frozenset({"queue", "read"})
        return Caller(f"player {player}", scopes, ladders, player, f"{key}/{player}"), key

    # the secret

    def rotate(self, *, by: Caller = OPERATOR, request: str | None = None) -> None:
        """Sign by another secret from now on; tokens by the former one are good until they expire.

        Doing it twice ends all tokens that there are.
        """
        by.check("admin")
        now = self._clock()
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            _make(store, now)
            store.run("UPDATE secret SET name = name WHERE name = ?", PRESENT)  # so that one alone rotates
            former = store.all("SELECT value FROM secret WHERE name = ?", PRESENT)[0][0]
            rows = [(PRESENT, secrets.token_bytes(32), now), (FORMER, bytes(former), now)]
            store.rows.upsert(connection, live_schema.secret, ("name", "value", "created_at"), rows)
            note(store, by, "token.secret.rotated", now=now, request=request)
        self._held = None

    def _remembered(self) -> _Secrets | None:
        held = self._held
        return held if held is not None and 0 <= self._clock() - held.read_at < REMEMBERED else None

    def _secrets(self) -> _Secrets:
        remembered = self._remembered()
        return self._load() if remembered is None else remembered

    def _load(self) -> _Secrets:
        read_at = self._clock()
        found = self._read()
        if PRESENT not in found:
            with self._database.write() as connection:
                _make(Store(connection, self._database.rows), read_at)
            found = self._read()
        former, retired_at = found.get(FORMER, (None, 0))
        if read_at >= retired_at + (LONGEST + LATE) * SECOND:  # another process may have signed by it a little longer
            former = None
        self._held = held = _Secrets(found[PRESENT][0], former, read_at)
        return held

    def _read(self) -> dict[str, tuple[bytes, int]]:
        with self._database.read() as connection:
            sql = "SELECT name, value, created_at FROM secret WHERE name IN (?, ?)"
            rows = Store(connection, self._database.rows).all(sql, PRESENT, FORMER)
        return {row[0]: (bytes(row[1]), row[2]) for row in rows}


def _make(store: Store, now: int) -> None:
    """A secret, unless there is one: who comes first makes it for all."""
    row = (PRESENT, secrets.token_bytes(32), now)
    store.rows.upsert(store.connection, live_schema.secret, ("name", "value", "created_at"), [row], same=True)


def _decode(text: str, secret: bytes) -> dict[str, object]:
    """The claims; those about time are judged by our clock, not by the library's."""
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


def _refused(why: str) -> AccessError:
    return AccessError(f"the token is refused: {why}; {ACCEPTED}")
