"""Tokens of a studio's own identity provider, found by OpenID Connect discovery and verified with its published keys.

OpenID Connect Discovery 1.0, RFC 7517 (JSON Web Key Sets), and the checks of RFC 8725 (JSON Web Tokens, best practice).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import httpx
import jwt

from evenmatch.accounts.access import Caller
from evenmatch.accounts.linked_accounts import LinkedAccounts, player_caller
from evenmatch.durations import SECOND
from evenmatch.errors import AccessError, InputError, IssuerError
from evenmatch.ledger.text import check_text
from evenmatch.times import iso_time

# Public-key signatures only: with HS256, whoever reads the published keys could sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
CLOCK_SKEW = 60  # seconds by which the clock of the provider may differ
FETCHED_WITHIN = 3.0  # seconds in which the provider must answer
FETCHED_AT_MOST_EVERY = 10 * SECOND  # a token with an unknown key lets the keys be read again, but not more often
LATEST = 1e11  # seconds since 1970, in the year 5138
KEYS_LAST = 3600 * SECOND  # keys are read again after this time, so that the provider can withdraw one
CHECKS: jwt.types.Options = {
    "require": ["aud", "exp", "iss", "sub"],
    **{"verify_exp": False, "verify_iat": False, "verify_nbf": False},  # compared with our own clock
}
REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (  # the first match applies
    (jwt.InvalidSignatureError, "its signature is wrong"),
    (jwt.MissingRequiredClaimError, "it lacks one of the claims aud, exp, iss and sub"),
    (jwt.InvalidAudienceError, "its audience is not {audience!r}, which EVENMATCH_PLAYER_AUDIENCE requires"),
)


@dataclass(frozen=True)
class TrustedIssuer:
    """An identity provider whose tokens are accepted.

    url       as in the claim `iss` of its tokens
    audience  what the claim `aud` must contain
    claim     the claim with the player's name; empty: accounts are linked to players
    """

    url: str
    audience: str
    claim: str = ""


class PublishedKeys:
    """The public keys of an issuer, read again when a token names an unknown one. Thread-safe.

    If they cannot be read again, those read before stay valid.
    """

    def __init__(self, issuer: str, clock: Callable[[], int]) -> None:
        self._issuer, self._clock = issuer, clock
        self._keys: list[Mapping[str, Any]] = []
        self._tried_at: int | None = None
        self._reading = Lock()

    def find(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key with this id for an algorithm; without an id, the only one that fits. None: there is none.

        Raises IssuerError if no keys could be read yet.
        """
        age = None if self._tried_at is None else self._clock() - self._tried_at
        found = self._fitting(key_id, algorithm)
        if age is None or age >= KEYS_LAST or (found is None and age >= FETCHED_AT_MOST_EVERY):
            self._read()
            found = self._fitting(key_id, algorithm)
        if not self._keys:
            raise IssuerError(f"the keys of {self._issuer} cannot be read; try again in a moment")
        return found

    def _fitting(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        keys = [key for key in self._keys if key.get("use", "sig") == "sig" and key.get("alg", algorithm) == algorithm]
        fitting = []
        for key in keys:
            if key_id is None or key.get("kid") == key_id:
                try:
                    fitting.append(jwt.PyJWK(dict(key), algorithm))
                except (jwt.PyJWTError, ValueError):  # of another type, such as a curve for RS256
                    continue
        return fitting[0] if len(fitting) == 1 else None

    def _read(self) -> None:
        """Read the keys, or wait until another thread has read the first ones. Keeps those read before on failure."""
        if not self._reading.acquire(blocking=not self._keys):
            return  # tokens with known keys do not wait for the provider
        try:
            now = self._clock()
            if self._tried_at is not None and now - self._tried_at < FETCHED_AT_MOST_EVERY:
                return
            self._tried_at = now
            with httpx.Client(timeout=FETCHED_WITHIN) as client:
                document = _json(client, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
                if document.get("issuer") != self._issuer:
                    raise IssuerError(f"{self._issuer} calls itself {document.get('issuer')!r}; expected the same URL")
                keys = _json(client, str(document.get("jwks_uri"))).get("keys")
            self._keys = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            if not self._keys:
                raise IssuerError(f"the keys of {self._issuer} cannot be read: {str(error)[:200]}") from None
        finally:
            self._reading.release()


def _json(client: httpx.Client, url: str) -> Mapping[str, object]:
    document = client.get(url).raise_for_status().json()
    if not isinstance(document, dict):
        raise IssuerError(f"{url} is not a JSON object")
    return document


class IssuerTokens:
    """Verifies the tokens of a trusted issuer. Thread-safe."""

    def __init__(self, issuer: TrustedIssuer, clock: Callable[[], int], accounts: LinkedAccounts) -> None:
        self._issuer, self._clock, self._accounts = issuer, clock, accounts
        self._keys = PublishedKeys(issuer.url, clock)

    def issued(self, text: str) -> bool:
        """Return whether a token says that it is of this issuer, without verifying it."""
        try:
            claims = jwt.decode(text, options={"verify_signature": False})
        except (jwt.PyJWTError, RecursionError, ValueError):
            return False
        return claims.get("iss") == self._issuer.url

    def verify(self, text: str) -> Caller:
        """Return the player of a token.

        Raises AccessError for a token that is forged, expired or for another audience, and for an account that is not
        linked; IssuerError if the provider's keys cannot be read.
        """
        claims = self._claims(text)
        expires_at = int(claims["exp"]) * SECOND
        if not self._issuer.claim:
            return self._accounts.caller(self._issuer.url, str(claims["sub"]), expires_at)
        player = claims.get(self._issuer.claim)
        if not isinstance(player, str):
            raise self._refused(f"its claim {self._issuer.claim} is {player!r}; expected the player's name")
        try:
            check_text("player name", player, blank=False)
        except InputError as error:
            raise self._refused(str(error)) from None
        return player_caller(player, self._issuer.url, expires_at)

    def _claims(self, text: str) -> Mapping[str, Any]:
        """Return the claims of a token with a valid signature that is valid now. Raises AccessError."""
        head = jwt.get_unverified_header(text)  # `issued` has read it
        algorithm, key_id = head.get("alg"), head.get("kid")
        if algorithm not in ALGORITHMS:
            raise self._refused(f"its algorithm is {algorithm!r}; expected {', '.join(ALGORITHMS)}")
        key = self._keys.find(key_id if isinstance(key_id, str) else None, algorithm)
        if key is None:
            raise self._refused(f"its key {key_id!r} is not among the published keys")
        try:
            claims = jwt.decode(
                text,
                key,
                algorithms=[algorithm],
                audience=self._issuer.audience,
                issuer=self._issuer.url,
                options=CHECKS,
            )
        except jwt.PyJWTError as error:
            reason = next((reason for kind, reason in REASONS if isinstance(error, kind)), str(error))
            raise self._refused(reason.format(audience=self._issuer.audience)) from None
        self._check_times(claims)
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        ends, begins, issued = (claims.get(name) for name in ("exp", "nbf", "iat"))
        for name, time in (("exp", ends), ("nbf", begins), ("iat", issued)):
            is_number = isinstance(time, int | float) and not isinstance(time, bool)
            if time is not None and not (is_number and 0 <= time < LATEST):
                raise self._refused(f"its claim {name} is {str(time)[:40]}; expected seconds since 1970")
        now = self._clock() / SECOND
        if ends is None or ends + CLOCK_SKEW <= now:
            raise self._refused(f"it expired at {iso_time(int(ends or 0) * SECOND)}")
        if max(begins or 0, issued or 0) > now + CLOCK_SKEW:
            raise self._refused("it is not valid yet; check the clocks of the provider and of this machine")

    def _refused(self, reason: str) -> AccessError:
        return AccessError(f"the token of {self._issuer.url} is not valid: {reason}")
