"""Ask for a game server when all players of an offered match have accepted; its address reaches their tickets.

The webhook with the event `server.wanted` is asked. Until the offer's deadline, a request that fails is repeated. The
matchmaker ends offers whose deadline has passed, so players do not wait for a process that has stopped.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import threading
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.errors import EvenmatchError, InputError, StoreError
from evenmatch.live.live_sql import StoredConnection
from evenmatch.queues import queue_sql
from evenmatch.queues.leases import Leases
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.queue_sql import OfferRow
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.payloads import server_wanted
from evenmatch.webhooks.sending import message_of, new_client, post, signed_headers
from evenmatch.webhooks.subscriptions import SERVER_WANTED, Webhooks
from evenmatch.webhooks.webhook_sql import Webhook

POLL = 0.25  # seconds between two looks for offers that want a server
RETRY = 1.0  # seconds before a failed request is repeated
AT_ONCE = 64  # requests
ADDRESS_LIMIT, TOKEN_LIMIT = 512, 4096  # characters, as in announcements
ANSWER_LIMIT = 1 << 20  # bytes
LEASE = "allocation"

log = logging.getLogger(__name__)


class WantedServer(NamedTuple):
    """An offer that wants a server, with the webhook to ask. hook: None: no webhook has the event."""

    ladder: str
    offer: OfferRow
    hook: Webhook | None


class Allocator:
    """Asks for the servers of all ladders while its process holds the lease.

    Two processes may ask for the same offer for a moment; then the first answer counts, and the other server stays
    empty. Both requests have the same number.
    """

    def __init__(self, webhooks: Webhooks, queue_service: QueueService, leases: Leases | None = None) -> None:
        self._webhooks, self._queue_service = webhooks, queue_service
        self._database, self._clock = webhooks.service.database, webhooks.service.clock
        self._leases = leases or Leases(self._database, f"{os.getpid()}-{secrets.token_hex(8)}")
        self._asking: dict[tuple[str, int], asyncio.Task[None]] = {}

    def run(self, stop: threading.Event) -> None:
        """Ask until `stop` is set, then release the lease."""
        asyncio.run(self._serve(stop))

    async def _serve(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                if await asyncio.to_thread(self._leases.hold, LEASE):
                    await self.begin()
            except StoreError as error:
                log.warning("game servers cannot be asked for at the moment: %s", error)
            await asyncio.sleep(POLL)
        for task in self._asking.values():
            task.cancel()
        try:
            self._leases.release(LEASE)
        except StoreError as error:
            log.warning("the lease of the allocation was not released: %s", error)

    async def begin(self) -> list[asyncio.Task[None]]:
        """Begin to ask for the server of each offer that wants one, and return all requests under way."""
        for wanted in await asyncio.to_thread(self._wanted):
            key = wanted.ladder, wanted.offer.offer
            if key not in self._asking and len(self._asking) < AT_ONCE:
                self._asking[key] = asyncio.create_task(self._ask(wanted))
        return list(self._asking.values())

    def _wanted(self) -> list[WantedServer]:
        with self._database.read() as store:
            offers = queue_sql.read_allocating_offers(store)
            hooks = webhook_sql.read_all_webhooks(store) if offers else []
        by_ladder = {hook.ladder: hook for hook in reversed(hooks) if SERVER_WANTED in hook.events}
        now = self._clock()
        return [
            WantedServer(ladder, offer, by_ladder.get(ladder, by_ladder.get(None)))
            for ladder, offer in offers
            if offer.deadline > now
        ]

    async def _ask(self, wanted: WantedServer) -> None:
        name = f"offer {wanted.offer.offer} of ladder {wanted.ladder!r}"
        try:
            connection = await self._answer(wanted)
            if not await asyncio.to_thread(self._queue_service.allocate, wanted.ladder, wanted.offer.offer, connection):
                log.warning("%s got a server too late; %s stays empty", name, connection["address"])
        except EvenmatchError as error:
            log.warning("%s got no server and will ask again: %s", name, error)
            await asyncio.sleep(RETRY)
        except Exception as error:  # whatever a URL or a receiver causes counts as a failed attempt
            log.warning("%s got no server and will ask again: %s", name, message_of(error))
            await asyncio.sleep(RETRY)
        finally:
            del self._asking[wanted.ladder, wanted.offer.offer]

    async def _answer(self, wanted: WantedServer) -> StoredConnection:
        """Ask once. Raises EvenmatchError, TimeoutError or httpx.HTTPError."""
        ladder, offer, hook = wanted
        if hook is None:
            raise InputError(f"no webhook of the ladder has the event {SERVER_WANTED}")
        now = self._clock()
        text, left = server_wanted(ladder, offer), (offer.deadline - now) / SECOND
        secret = hook.secret(self._database.master.sealer())
        headers = signed_headers(secret, SERVER_WANTED, f"{ladder}/{offer.offer}", now // SECOND, text)
        async with asyncio.timeout(left), new_client(left) as client:
            status, body = await post(client, self._webhooks.check, hook.url, headers, text.encode(), ANSWER_LIMIT)
        if status != 200:
            raise InputError(f"the receiver answered {status}; expected 200 with an address")
        return connection_of(body, offer)


def connection_of(body: bytes, offer: OfferRow) -> StoredConnection:
    """Read the answer to a request. Raises InputError for an answer without an address, or with a stranger's token."""
    try:
        answer = json.loads(body)
        address, tokens = answer["address"], answer.get("tokens") or {}
        entries = list(tokens.items())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError('the answer is not valid; expected {"address": "…", "tokens": {"player": "…"}}') from None
    if not isinstance(address, str) or not 0 < len(address) <= ADDRESS_LIMIT:
        raise InputError(f"the address in the answer is not valid; expected 1 to {ADDRESS_LIMIT} characters")
    ids = {slot["player"]: slot["id"] for slot in offer.chairs}
    for player, token in entries:
        if player not in ids:
            raise InputError(f"the answer has a token for {player!r}, who is not in the match")
        if not isinstance(token, str) or len(token) > TOKEN_LIMIT:
            raise InputError(f"the token of {player!r} is not valid; expected at most {TOKEN_LIMIT} characters")
    return {"address": address, "tokens": {str(ids[player]): token for player, token in entries}}
