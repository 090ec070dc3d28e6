"""Requests signed with an API key that is not sent: HMAC-SHA256 over timestamp, method, path and body.

    Authorization: Evenmatch-HMAC-SHA256 key=em_…, timestamp=1795300000, nonce=8c1f…, signature=5f0c…

The signing key is the SHA-256 of the API key's text. A signed write is accepted once by all processes together. The
nonce is optional; it distinguishes identical requests sent in the same second.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from evenmatch.accounts import account_sql
from evenmatch.durations import SECOND
from evenmatch.errors import AccessError
from evenmatch.ledger.database import Database

SCHEME = "Evenmatch-HMAC-SHA256"
SKEW = 300  # seconds by which the clocks of sender and receiver may differ
ACCEPTED = (
    f"expected {SCHEME} key=em_…, timestamp=<seconds since 1970>, nonce=<1 to 64 letters, digits, - or _; may be "
    "omitted>, signature=<64 hexadecimal digits>"
)
_PART = re.compile(r'\s*(key|timestamp|nonce|signature)\s*=\s*("?)([A-Za-z0-9_-]{1,64})\2\s*')
_SECONDS = re.compile(r"0|[1-9][0-9]{0,11}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")


class SignedRequest(NamedTuple):
    """The header of a signed request: key id, timestamp in seconds since the epoch, signature in hexadecimal."""

    key: str
    timestamp: int
    signature: str
    nonce: str | None = None


def signing_key(text: str) -> bytes:
    """Return the signing key of an API key: the SHA-256 of its text."""
    return hashlib.sha256(text.encode()).digest()


def verifier(signing_key: bytes) -> bytes:
    """Return the hash by which the database recognizes a key. It does not reveal the signing key."""
    return hashlib.sha256(signing_key).digest()


def sign(key: bytes, timestamp: int, method: str, path: str, body: bytes, nonce: str | None = None) -> str:
    """Return the signature of a request, in hexadecimal.

    timestamp  seconds since the epoch;  method  in capital letters;  path  as sent, with the query string
    """
    head = f"{_moment(timestamp, nonce)}\n{method}\n{path}\n".encode("utf-8", "surrogatepass")
    digest = hmac.new(key, head, hashlib.sha256)
    digest.update(body)
    return digest.hexdigest()


def _moment(timestamp: int, nonce: str | None) -> str:
    return str(timestamp) if nonce is None else f"{timestamp}.{nonce}"


def write(signed: SignedRequest) -> str:
    """Return the value of the Authorization header."""
    nonce = "" if signed.nonce is None else f" nonce={signed.nonce},"
    return f"{SCHEME} key={signed.key}, timestamp={signed.timestamp},{nonce} signature={signed.signature}"


def read(header: str) -> SignedRequest:
    """Parse the value of an Authorization header. Raises AccessError if it is not a valid signature header."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() != SCHEME.lower():
        raise AccessError(f"the request is not signed with {SCHEME}; {ACCEPTED}")
    parts = [_PART.fullmatch(part) for part in rest.split(",")]
    values = {part[1]: part[3] for part in parts if part is not None}
    if len(parts) != len(values) or set(values) | {"nonce"} != set(SignedRequest._fields):
        raise AccessError(f"the signature needs key, timestamp and signature, each once; {ACCEPTED}")
    if not _SECONDS.fullmatch(values["timestamp"]):
        raise AccessError(f"the signature's timestamp {values['timestamp']!r} is not a number of seconds; {ACCEPTED}")
    if not _HEX.fullmatch(values["signature"]):
        raise AccessError(f"the signature must have 64 hexadecimal digits; {ACCEPTED}")
    return SignedRequest(values["key"], int(values["timestamp"]), values["signature"], values.get("nonce"))


def check(key: bytes, signed: SignedRequest, method: str, path: str, body: bytes, now: int) -> None:
    """Raise AccessError if a signature does not match this request, or its timestamp is off by more than SKEW seconds.

    now  microseconds since the epoch
    """
    expected = sign(key, signed.timestamp, method, path, body, signed.nonce)
    if not hmac.compare_digest(expected.encode(), signed.signature.lower().encode("utf-8", "surrogatepass")):
        raise AccessError(
            f"the signature does not match the request: it must be the HMAC-SHA256, with the SHA-256 of the key, over "
            f"timestamp (with a nonce: timestamp.nonce), method and path with query, each followed by a line feed, and "
            f"the body; here {_moment(signed.timestamp, signed.nonce)}, {method}, {path!r} and {len(body):,} bytes"
        )
    age = now / 1e6 - signed.timestamp
    if abs(age) > SKEW:
        distance = f"{abs(age):,.0f} s {'ago' if age > 0 else 'in the future'}"
        raise AccessError(f"the signature's timestamp {signed.timestamp} is {distance}; at most {SKEW} s are allowed")


PRUNE_EVERY = 60  # seconds


class SeenSignatures:
    """Accepted signatures whose timestamps are still valid, shared by all processes of a database. Thread-safe."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._pruned_at = 0

    def accept(self, requests: Sequence[SignedRequest]) -> list[AccessError | None]:
        """Remember verified signatures; return an error for each that was seen before.

        The transaction is not durable by itself: a power failure loses a signature only together with its request.
        """
        now = self._clock() // SECOND
        rows = [(signed.timestamp + SKEW, _digest(signed)) for signed in requests]
        with self._database.write(durable=False) as store:
            new = account_sql.insert_new_signatures(store, rows)
            if now - self._pruned_at >= PRUNE_EVERY:
                account_sql.delete_past_signatures(store, now - SKEW)  # the clocks of other processes may be slow
                self._pruned_at = now
        outcomes: list[AccessError | None] = []
        for _, digest in rows:
            outcomes.append(None if digest in new else AccessError(SEEN))
            new.discard(digest)  # a batch may contain the same signature twice
        return outcomes


SEEN = (
    "this signature was already used: a signed write is accepted once. To send it again, sign it with the current time "
    "and a new nonce"
)


def _digest(signed: SignedRequest) -> bytes:
    return hashlib.sha256(f"{signed.key} {signed.signature.lower()}".encode()).digest()
