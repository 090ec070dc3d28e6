"""Send deliveries over HTTP: signed, with a time limit, to no address that is refused, following nobody elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import ssl
import threading

import httpx

from evenmatch.service.hooks.addresses import Resolve, check_url, refusal
from evenmatch.service.hooks.outbox import Outcome
from evenmatch.service.hooks.webhooks import Webhook

PATIENCE = 10.0  # seconds that a receiver may be silent
ADDRESSES = 3  # of a host, tried in turn
GONE = 410


def sign(secret: bytes, timestamp: int, body: str) -> str:
    """The signature of a body that is sent at a time, in seconds since the epoch."""
    return f"v1={hmac.new(secret, f'{timestamp}.{body}'.encode(), hashlib.sha256).hexdigest()}"


class Sender:
    """Sends for any number of threads. A client for each webhook keeps its connections."""

    def __init__(self, find: Resolve, *, allow_private: bool = False) -> None:
        self._find, self._allow_private = find, allow_private
        self._clients: dict[int, httpx.Client] = {}
        self._guard = threading.Lock()
        self._trust: ssl.SSLContext | None = None

    def send(self, hook: Webhook, delivery: int, event: str, body: str, timestamp: int) -> Outcome:
        """One attempt.

        The name is resolved and its addresses are looked at each time, and the connection goes to what was looked at:
        a name that leads elsewhere a moment later gains nothing.
        """
        parts = check_url(hook.url)
        host = str(parts.hostname)
        found = self._find(host, parts.port or (443 if parts.scheme == "https" else 80))
        if not found:
            return Outcome(f"the host {host!r} has no address")
        reason = None if self._allow_private else refusal(found)
        if reason is not None:
            return Outcome(f"the host {host!r} {reason}")
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "User-Agent": "evenmatch",
            "Evenmatch-Event": event,
            "Evenmatch-Delivery": str(delivery),
            "Evenmatch-Timestamp": str(timestamp),
            "Evenmatch-Signature": sign(hook.secret, timestamp, body),
        }
        return self._post(hook, host, found[:ADDRESSES], headers, body.encode())

    def _post(self, hook: Webhook, host: str, addresses: list[str], headers: dict[str, str], body: bytes) -> Outcome:
        client, url, said = self._client(hook.webhook), httpx.URL(hook.url), ""
        for address in addresses:
            try:
                with client.stream(
                    "POST",
                    url.copy_with(host=address),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": host},  # by which its certificate is checked
                ) as answer:  # whose body nobody reads
                    status = answer.status_code
            except httpx.ConnectError as error:
                said = _told(error)
                continue
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                return Outcome(_told(error))
            else:
                return Outcome(None if 200 <= status < 300 else f"the receiver answered {status}", status == GONE)
        return Outcome(said)

    def _client(self, webhook: int) -> httpx.Client:
        with self._guard:
            if webhook not in self._clients:
                if self._trust is None:
                    self._trust = ssl.create_default_context()
                # No proxy and no login of this machine's environment: it would reach what is refused above.
                self._clients[webhook] = httpx.Client(
                    timeout=PATIENCE, verify=self._trust, trust_env=False, follow_redirects=False
                )
            return self._clients[webhook]

    def keep(self, webhooks: set[int]) -> None:
        """Close the connections to all others, which were removed."""
        with self._guard:
            gone = [self._clients.pop(one) for one in list(self._clients) if one not in webhooks]
        for client in gone:
            client.close()

    def close(self) -> None:
        """Close all connections."""
        self.keep(set())


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
