"""Send deliveries over HTTP: signed, within a deadline, to allowed addresses only, without following redirects."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future

import httpx

from evenmatch.service.webhooks.addresses import Resolve, check_url, refusal
from evenmatch.service.webhooks.outbox import DeliveryOutcome
from evenmatch.service.webhooks.subscriptions import Webhook

DEADLINE = 10.0  # seconds of an attempt: resolve, connect, send, and receive status and headers
CONNECT = 3.0  # seconds to connect to one address, so that the next one has its turn within the deadline
ADDRESSES = 3  # addresses of a host that are tried in turn
CLOSING = 1.0  # seconds in which connections close
GONE = 410


def sign(secret: bytes, timestamp: int, body: str) -> str:
    """The signature of a delivery: HMAC-SHA256 over timestamp (seconds since the epoch) and body."""
    return f"v1={hmac.new(secret, f'{timestamp}.{body}'.encode(), hashlib.sha256).hexdigest()}"


class Sender:
    """Sends deliveries over one HTTP client for each webhook, in the event loop of a thread. Thread-safe.

    An event loop, because an attempt can be cancelled there at any point: a receiver that sends a byte now and then
    never runs into the time-out of a single network operation.
    """

    def __init__(self, find: Resolve, *, allow_private: bool = False) -> None:
        self._find, self._allow_private = find, allow_private
        self._clients: dict[int, httpx.AsyncClient] = {}
        self._guard = threading.Lock()
        self._trust: ssl.SSLContext | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def send(
        self, hook: Webhook, secret: bytes, delivery: int, event: str, body: str, timestamp: int
    ) -> Future[DeliveryOutcome]:
        """Begin an attempt, signed with the secret of the webhook, which ends within DEADLINE seconds."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "evenmatch",
            "Evenmatch-Event": event,
            "Evenmatch-Delivery": str(delivery),
            "Evenmatch-Timestamp": str(timestamp),
            "Evenmatch-Signature": sign(secret, timestamp, body),
        }
        return asyncio.run_coroutine_threadsafe(self._send(hook, headers, body.encode()), self._started())

    async def _send(self, hook: Webhook, headers: dict[str, str], body: bytes) -> DeliveryOutcome:
        try:
            async with asyncio.timeout(DEADLINE):
                return await self._attempt(hook, headers, body)
        except TimeoutError:
            return DeliveryOutcome(f"the receiver did not answer within {DEADLINE:g} s")

    async def _attempt(self, hook: Webhook, headers: dict[str, str], body: bytes) -> DeliveryOutcome:
        """Resolve the host, check its addresses, and send.

        This is done each time, and the connection uses a checked address: a host that resolves to another address a
        moment later cannot bypass the check.
        """
        parts = check_url(hook.url)
        host = str(parts.hostname)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = await _in_thread(lambda: self._find(host, port))
        if not addresses:
            return DeliveryOutcome(f"the host {host!r} has no address")
        reason = None if self._allow_private else refusal(addresses)
        if reason is not None:
            return DeliveryOutcome(f"the host {host!r} {reason}")
        return await self._post(hook, host, addresses[:ADDRESSES], {"Host": parts.netloc, **headers}, body)

    async def _post(
        self, hook: Webhook, host: str, addresses: list[str], headers: dict[str, str], body: bytes
    ) -> DeliveryOutcome:
        client, url, problem = self._client(hook.webhook), httpx.URL(hook.url), ""
        for address in addresses:
            try:
                async with client.stream(
                    "POST",
                    url.copy_with(host=address),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": host},  # its certificate is checked against this name
                ) as response:  # the body is not read
                    status = response.status_code
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = _message(error)
                continue
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                return DeliveryOutcome(_message(error))
            else:
                return DeliveryOutcome(
                    None if 200 <= status < 300 else f"the receiver answered {status}", status == GONE
                )
        return DeliveryOutcome(problem)

    def _client(self, webhook: int) -> httpx.AsyncClient:
        with self._guard:
            if webhook not in self._clients:
                if self._trust is None:
                    self._trust = ssl.create_default_context()
                # trust_env=False: a proxy from the environment would bypass the address check.
                self._clients[webhook] = httpx.AsyncClient(
                    timeout=httpx.Timeout(DEADLINE, connect=CONNECT),
                    verify=self._trust,
                    trust_env=False,
                    follow_redirects=False,
                )
            return self._clients[webhook]

    def keep(self, webhooks: set[int]) -> None:
        """Close the connections of all webhooks except these."""
        with self._guard:
            removed = [self._clients.pop(webhook) for webhook in list(self._clients) if webhook not in webhooks]
            loop = self._loop
        if removed and loop is not None:
            asyncio.run_coroutine_threadsafe(_close(removed), loop)

    def close(self) -> None:
        """Cancel the attempts that go on, and close all connections, within some seconds."""
        with self._guard:
            loop, self._loop = self._loop, None
            clients, self._clients = list(self._clients.values()), {}
        if loop is not None:
            asyncio.run_coroutine_threadsafe(_end(clients), loop).result(3 * CLOSING)
            loop.call_soon_threadsafe(loop.stop)

    def _started(self) -> asyncio.AbstractEventLoop:
        """The event loop, which runs in a thread since the first attempt."""
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="evenmatch-deliveries", daemon=True).start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()


async def _end(clients: list[httpx.AsyncClient]) -> None:
    """Cancel all other tasks, and close the clients."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=CLOSING)
    await _close(clients)


async def _close(clients: list[httpx.AsyncClient]) -> None:
    closing = [asyncio.create_task(client.aclose()) for client in clients]
    if closing:
        await asyncio.wait(closing, timeout=CLOSING)


async def _in_thread(find: Callable[[], list[str]]) -> list[str]:
    """Resolve in a thread of its own, which is left alone if it takes too long: resolvers cannot be cancelled."""
    resolved: Future[list[str]] = Future()
    resolved.set_running_or_notify_cancel()

    def run() -> None:
        try:
            resolved.set_result(find())
        except Exception as error:
            resolved.set_exception(error)

    threading.Thread(target=run, name="evenmatch-resolver", daemon=True).start()
    return await asyncio.wrap_future(resolved)


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
