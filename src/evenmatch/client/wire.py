"""How calls become HTTP requests: the address, the key, the signature."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from collections.abc import Generator

import httpx

from evenmatch.client.call import Call
from evenmatch.errors import UsageError

SCHEME = "Evenmatch-HMAC-SHA256"
KEY = re.compile(r"(em_[0-9A-Za-z]{10})_[0-9A-Za-z_-]+")


class Bearer(httpx.Auth):
    """Sends a key or a player's token with each request."""

    def __init__(self, key: str) -> None:
        self._header = f"Bearer {key}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """The request, with the key."""
        request.headers["Authorization"] = self._header
        yield request


class Signed(httpx.Auth):
    """Signs each request with a key, which itself does not travel. Raises UsageError for what is no key."""

    requires_request_body = True

    def __init__(self, key: str) -> None:
        found = KEY.fullmatch(key)
        if found is None:
            raise UsageError("signed=True: accepted is an API key, em_…; a player's token cannot sign")
        self._id, self._secret = found[1], hashlib.sha256(key.encode()).digest()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """The request, with a signature over the second, the method, the address with its query, and the body."""
        second = int(time.time())
        head = f"{second}\n{request.method}\n".encode() + request.url.raw_path + b"\n"
        signature = hmac.new(self._secret, head + request.content, hashlib.sha256).hexdigest()
        request.headers["Authorization"] = f"{SCHEME} key={self._id}, timestamp={second}, signature={signature}"
        yield request


def auth_of(key: str | None, *, signed: bool) -> httpx.Auth | None:
    """How requests are authenticated; None: not at all, as where the operator opened reads."""
    if key is None:
        if signed:
            raise UsageError("signed=True: accepted is an API key to sign with")
        return None
    if not key.isascii() or not key.strip() or key != key.strip():
        raise UsageError("the key is empty, or holds what no key has; accepted is a key as it was shown")
    return Signed(key) if signed else Bearer(key)


def check_url(url: str) -> str:
    """The address of a service. Raises UsageError where it is none."""
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parts = httpx.URL("")
    if parts.scheme not in {"http", "https"} or not parts.host or parts.query or parts.fragment:
        raise UsageError(f"url {url!r}: accepted is the address of a service, as https://ranks.example")
    return url


def from_environment() -> tuple[str, str | None]:
    """Address and key, by EVENMATCH_URL and EVENMATCH_KEY. Raises UsageError without an address."""
    url = os.environ.get("EVENMATCH_URL")
    if not url:
        raise UsageError("EVENMATCH_URL is not set; accepted is the address of a service, as https://ranks.example")
    return url, os.environ.get("EVENMATCH_KEY") or None


def request_of(http: httpx.Client | httpx.AsyncClient, call: Call[object], timeout: float) -> httpx.Request:
    """A call as a request; who waits for an answer that is kept back waits so much longer."""
    return http.build_request(
        call.method,
        call.path,
        params=call.parameters or None,
        content=call.content,
        headers={"Content-Type": "application/json"} if call.body is not None else None,
        timeout=httpx.Timeout(timeout, read=timeout + call.wait),
    )
