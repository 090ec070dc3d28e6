"""Waiting for changes of tickets, which any process may commit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenmatch.http.waiting_requests import Waiter

if TYPE_CHECKING:
    from evenmatch.service.queues.queue_service import QueueService

Place = tuple[str, int]  # a ladder and a ticket


class TicketNotifications:
    """The waiting requests by ladder and ticket. For the event loop; the queue service notifies from its threads."""

    def __init__(self) -> None:
        self._waiting: dict[Place, set[Waiter]] = {}

    def begin(self, loop: asyncio.AbstractEventLoop, queue_service: QueueService) -> None:
        """Subscribe to the committed changes of the queue service."""

        def notify(ladder: str, tickets: list[int]) -> None:
            loop.call_soon_threadsafe(self.wake, ladder, tickets)

        queue_service.listen(notify)

    def wake(self, ladder: str, tickets: Sequence[int]) -> None:
        """Wake the requests that wait for any of these tickets."""
        for ticket in tickets:
            for waiter in self._waiting.get((ladder, ticket), ()):
                waiter.wake()

    @contextmanager
    def telling(self, ladder: str, ticket: int, waiter: Waiter) -> Iterator[None]:
        """Wake this request when the ticket changes, also between two calls of `news`."""
        place = ladder, ticket
        self._waiting.setdefault(place, set()).add(waiter)
        try:
            yield
        finally:
            waiters = self._waiting[place]
            waiters.discard(waiter)
            if not waiters:
                del self._waiting[place]

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))
