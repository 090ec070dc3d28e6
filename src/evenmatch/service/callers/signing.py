"""Requests signed with a key that does not travel: HMAC-SHA256 over time, method, path and body.

    Authorization: Evenmatch-HMAC-SHA256 key=em_…, timestamp=1795300000, signature=5f0c…

The signing key is the SHA-256 of the whole text of an API key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from evenmatch.errors import AccessError

SCHEME = "Evenmatch-HMAC-SHA256"
SKEW = 300  # seconds by which the clocks of sender and receiver may differ
ACCEPTED = f"accepted is {SCHEME} key=em_…, timestamp=<seconds since 1970>, signature=<64 hexadecimal digits>"
_PART = re.compile(r'\s*(key|timestamp|signature)\s*=\s*("?)([A-Za-z0-9_]{1,64})\2\s*')
_SECONDS = re.compile(r"0|[1-9][0-9]{0,11}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")


class Signed(NamedTuple):
    """What the header of a signed request says: by which key, at which second, and the signature in hexadecimal."""

    key: str
    timestamp: int
    signature: str


def signing_key(text: str) -> bytes:
    """By what the holder of an API key signs; all that the service keeps of it."""
    return hashlib.sha256(text.encode()).digest()


def sign(key: bytes, timestamp: int, method: str, path: str, body: bytes) -> str:
    """The signature of a request, in hexadecimal.

    timestamp  seconds since the epoch;  method  in capitals;  path  with the query, as it is sent
    """
    head = f"{timestamp}\n{method}\n{path}\n".encode("utf-8", "surrogatepass")
    made = hmac.new(key, head, hashlib.sha256)
    made.update(body)
    return made.hexdigest()


def write(signed: Signed) -> str:
    """The header's value."""
    return f"{SCHEME} key={signed.key}, timestamp={signed.timestamp}, signature={signed.signature}"


def read(header: str) -> Signed:
    """What the value of an Authorization header says. Raises AccessError where it is none of ours."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() != SCHEME.lower():
        raise AccessError(f"the request is not signed by {SCHEME}; {ACCEPTED}")
    found = [_PART.fullmatch(one) for one in rest.split(",")]
    told = {one[1]: one[3] for one in found if one is not None}
    if len(found) != len(Signed._fields) or set(told) != set(Signed._fields):
        raise AccessError(f"the signature needs key, timestamp and signature, each once; {ACCEPTED}")
    if not _SECONDS.fullmatch(told["timestamp"]):
        raise AccessError(f"the signature's timestamp {told['timestamp']!r} is no number of seconds; {ACCEPTED}")
    if not _HEX.fullmatch(told["signature"]):
        raise AccessError(f"the signature is no 64 hexadecimal digits; {ACCEPTED}")
    return Signed(told["key"], int(told["timestamp"]), told["signature"])


def check(key: bytes, signed: Signed, method: str, path: str, body: bytes, now: int) -> None:
    """Raise AccessError where a signature is not of this request, or too old or too new.

    now  microseconds since the epoch
    """
    made = sign(key, signed.timestamp, method, path, body)
    if not hmac.compare_digest(made.encode(), signed.signature.lower().encode("utf-8", "surrogatepass")):
        raise AccessError(
            f"the signature does not fit the request: signed are timestamp, method, path with query, and body, each of "
            f"the first three followed by a line feed, by HMAC-SHA256 with the SHA-256 of the key; here "
            f"{signed.timestamp}, {method}, {path!r} and {len(body):,} bytes"
        )
    late = now / 1e6 - signed.timestamp
    if abs(late) > SKEW:
        told = f"{abs(late):,.0f} s {'ago' if late > 0 else 'to come'}"
        raise AccessError(f"the signature's timestamp {signed.timestamp} is {told}; accepted are {SKEW} s")
