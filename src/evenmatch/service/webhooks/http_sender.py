"""Send deliveries over HTTP: signed, with a timeout, to allowed addresses only, without following redirects."""

from __future__ import annotations

import hashlib
import hmac
import ssl
import threading

import httpx

from evenmatch.service.webhooks.addresses import Resolve, check_url, refusal
from evenmatch.service.webhooks.outbox import DeliveryOutcome
from evenmatch.service.webhooks.subscriptions import Webhook

PATIENCE = 10.0  # timeout of each network operation in seconds
ADDRESSES = 3  # addresses of a host that are tried in turn
GONE = 410


def sign(secret: bytes, timestamp: int, body: str) -> str:
    """The signature of a delivery: HMAC-SHA256 over timestamp (seconds since the epoch) and body."""
    return f"v1={hmac.new(secret, f'{timestamp}.{body}'.encode(), hashlib.sha256).hexdigest()}"


class Sender:
    """Sends deliveries over one HTTP client for each webhook. Thread-safe."""

    def __init__(self, find: Resolve, *, allow_private: bool = False) -> None:
        self._find, self._allow_private = find, allow_private
        self._clients: dict[int, httpx.Client] = {}
        self._guard = threading.Lock()
        self._trust: ssl.SSLContext | None = None

    def send(
        self, hook: Webhook, secret: bytes, delivery: int, event: str, body: str, timestamp: int
    ) -> DeliveryOutcome:
        """Make one attempt, signed with the secret of the webhook.

        The host is resolved and its addresses are checked each time, and the connection uses a checked address: a host
        that resolves to another address a moment later cannot bypass the check.
        """
        parts = check_url(hook.url)
        host = str(parts.hostname)
        addresses = self._find(host, parts.port or (443 if parts.scheme == "https" else 80))
        if not addresses:
            return DeliveryOutcome(f"the host {host!r} has no address")
        reason = None if self._allow_private else refusal(addresses)
        if reason is not None:
            return DeliveryOutcome(f"the host {host!r} {reason}")
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "User-Agent": "evenmatch",
            "Evenmatch-Event": event,
            "Evenmatch-Delivery": str(delivery),
            "Evenmatch-Timestamp": str(timestamp),
            "Evenmatch-Signature": sign(secret, timestamp, body),
        }
        return self._post(hook, host, addresses[:ADDRESSES], headers, body.encode())

    def _post(
        self, hook: Webhook, host: str, addresses: list[str], headers: dict[str, str], body: bytes
    ) -> DeliveryOutcome:
        client, url, problem = self._client(hook.webhook), httpx.URL(hook.url), ""
        for address in addresses:
            try:
                with client.stream(
                    "POST",
                    url.copy_with(host=address),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": host},  # its certificate is checked against this name
                ) as answer:  # the body is not read
                    status = answer.status_code
            except httpx.ConnectError as error:
                problem = _message(error)
                continue
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                return DeliveryOutcome(_message(error))
            else:
                return DeliveryOutcome(
                    None if 200 <= status < 300 else f"the receiver answered {status}", status == GONE
                )
        return DeliveryOutcome(problem)

    def _client(self, webhook: int) -> httpx.Client:
        with self._guard:
            if webhook not in self._clients:
                if self._trust is None:
                    self._trust = ssl.create_default_context()
                # trust_env=False: a proxy from the environment would bypass the address check.
                self._clients[webhook] = httpx.Client(
                    timeout=PATIENCE, verify=self._trust, trust_env=False, follow_redirects=False
                )
            return self._clients[webhook]

    def keep(self, webhooks: set[int]) -> None:
        """Close the connections of all webhooks except these."""
        with self._guard:
            removed = [self._clients.pop(webhook) for webhook in list(self._clients) if webhook not in webhooks]
        for client in removed:
            client.close()

    def close(self) -> None:
        """Close all connections."""
        self.keep(set())


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
