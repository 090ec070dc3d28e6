"""HTTP requests of calls: URL, API key, signature."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Generator

import httpx

from evenmatch.client.call import Call
from evenmatch.errors import UsageError

SCHEME = "Evenmatch-HMAC-SHA256"
KEY = re.compile(r"(em_[0-9A-Za-z]{10})_[0-9A-Za-z_-]+")


class Bearer(httpx.Auth):
    """Authentication that sends an API key or a player's token with each request."""

    def __init__(self, key: str) -> None:
        self._header = f"Bearer {key}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the Authorization header with the key."""
        request.headers["Authorization"] = self._header
        yield request


class RequestSigning(httpx.Auth):
    """Authentication that signs each request and never sends the key. Raises UsageError if it is not an API key."""

    requires_request_body = True

    def __init__(self, key: str) -> None:
        parts = KEY.fullmatch(key)
        if parts is None:
            raise UsageError("signed=True needs an API key, em_…; a player's token cannot sign")
        self._id, self._secret = parts[1], hashlib.sha256(key.encode()).digest()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add a signature over timestamp (seconds) and nonce, method, path with query, and body."""
        timestamp, nonce = int(time.time()), secrets.token_hex(16)
        head = f"{timestamp}.{nonce}\n{request.method}\n".encode() + request.url.raw_path + b"\n"
        signature = hmac.new(self._secret, head + request.content, hashlib.sha256).hexdigest()
        parts = {"key": self._id, "timestamp": timestamp, "nonce": nonce, "signature": signature}
        request.headers["Authorization"] = f"{SCHEME} {', '.join(f'{name}={part}' for name, part in parts.items())}"
        yield request


def auth_of(key: str | None, *, signed: bool) -> httpx.Auth | None:
    """The authentication for a key; None without a key. Raises UsageError if the key is malformed."""
    if key is None:
        if signed:
            raise UsageError("signed=True needs an API key to sign with")
        return None
    if not key.isascii() or not key.strip() or key != key.strip():
        raise UsageError("the key is empty or contains characters that no key has; expected a key as it was shown")
    return RequestSigning(key) if signed else Bearer(key)


def check_url(url: str) -> str:
    """Return the URL of a service. Raises UsageError if it is not an http or https URL with a host."""
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parts = httpx.URL("")
    if parts.scheme not in {"http", "https"} or not parts.host or parts.query or parts.fragment:
        raise UsageError(f"url {url!r}: expected the address of a service, for example https://ranks.example")
    return url


def from_environment() -> tuple[str, str | None]:
    """URL and key from EVENMATCH_URL and EVENMATCH_KEY. Raises UsageError without a URL."""
    url = os.environ.get("EVENMATCH_URL")
    if not url:
        raise UsageError(
            "EVENMATCH_URL is not set; expected the address of a service, for example https://ranks.example"
        )
    return url, os.environ.get("EVENMATCH_KEY") or None


def request_of(http: httpx.Client | httpx.AsyncClient, call: Call[object], timeout: float) -> httpx.Request:
    """Build the HTTP request of a call; the read timeout is longer by the long-poll time of the call."""
    headers = {"Content-Type": "application/json"} if call.body is not None else {}
    if call.idempotency_key is not None:
        headers["Idempotency-Key"] = call.idempotency_key
    return http.build_request(
        call.method,
        call.path,
        params=call.parameters or None,
        content=call.content,
        headers=headers,
        timeout=httpx.Timeout(timeout, read=timeout + call.wait),
    )
