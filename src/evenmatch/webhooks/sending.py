"""Send signed requests to the URLs of webhooks: to checked addresses only, and never through a proxy."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache

import httpx

from evenmatch.errors import InputError
from evenmatch.webhooks.addresses import check_url

CONNECT = 3.0  # seconds to connect to one address, which leaves time for the next one
ADDRESSES = 3  # addresses of a host that are tried in turn


def new_client(deadline: float) -> httpx.AsyncClient:
    """A client whose requests take at most `deadline` seconds each."""
    # trust_env=False: a proxy from the environment would bypass the address check.
    timeout = httpx.Timeout(deadline, connect=CONNECT)
    return httpx.AsyncClient(timeout=timeout, verify=_trust(), trust_env=False, follow_redirects=False)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


async def post(
    client: httpx.AsyncClient,
    check: Callable[[str], list[str]],
    url: str,
    headers: dict[str, str],
    body: bytes,
    answer_limit: int = 0,
) -> tuple[int, bytes]:
    """Resolve the host, check its addresses, send, and return the status and the body of the answer.

    This is done for each attempt, and the connection uses a checked address: a host that resolves to another
    address a moment later cannot bypass the check.

    check         see Webhooks.check
    answer_limit  largest body of the answer in bytes; 0: the body is not read
    Raises InputError for an address that is not allowed or an answer that is too large, and httpx.HTTPError.
    """
    parts, failure = check_url(url), InputError("the host has no address")
    unreachable: httpx.HTTPError | None = None
    addresses = await _in_thread(lambda: check(url))
    for address in addresses[:ADDRESSES]:
        try:
            async with client.stream(
                "POST",
                httpx.URL(url).copy_with(host=address),
                content=body,
                headers={"Host": parts.netloc, **headers},
                extensions={"sni_hostname": str(parts.hostname)},  # the certificate is checked against this name
            ) as response:
                return response.status_code, await _body_of(response, answer_limit)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            unreachable = error
    raise unreachable or failure


async def _body_of(response: httpx.Response, limit: int) -> bytes:
    read = b""
    if limit:
        async for part in response.aiter_bytes():
            read += part
            if len(read) > limit:
                raise InputError(f"the answer is too large; at most {limit:,} bytes are allowed")
    return read


async def _in_thread(find: Callable[[], list[str]]) -> list[str]:
    """Resolve in a thread of its own, which is abandoned if it takes too long: resolvers cannot be cancelled."""
    resolved: Future[list[str]] = Future()
    resolved.set_running_or_notify_cancel()

    def run() -> None:
        try:
            resolved.set_result(find())
        except Exception as error:
            resolved.set_exception(error)

    threading.Thread(target=run, name="evenmatch-resolver", daemon=True).start()
    return await asyncio.wrap_future(resolved)


def signed_headers(secret: bytes, event: str, number: str, timestamp: int, body: str) -> dict[str, str]:
    """The headers of a request.

    number     identifies the request, also when it is repeated
    timestamp  seconds since the epoch
    """
    return {
        "Content-Type": "application/json",
        "User-Agent": "evenmatch",
        "Evenmatch-Event": event,
        "Evenmatch-Delivery": number,
        "Evenmatch-Timestamp": str(timestamp),
        "Evenmatch-Signature": sign(secret, timestamp, body),
    }


def sign(secret: bytes, timestamp: int, body: str) -> str:
    """The signature of a request: HMAC-SHA256 over timestamp (seconds since the epoch) and body."""
    return f"v1={hmac.new(secret, f'{timestamp}.{body}'.encode(), hashlib.sha256).hexdigest()}"


def message_of(error: Exception) -> str:
    """Describe what went wrong with a request."""
    return f"{type(error).__name__}: {error}"[:300]
