"""Notifications of changed tickets, within a process and, on PostgreSQL, between processes."""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from evenmatch.errors import StoreError
from evenmatch.ledger import ladder_rows, notifications
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store

Listener = Callable[[str, list[int]], None]
CHANNEL = "evenmatch"
NOTIFIED_AT_ONCE = 400  # tickets in one notification; a number has at most 16 characters
RECONNECT_AFTER = 1.0  # seconds

logger = logging.getLogger(__name__)


class TicketNotifier:
    """Calls listeners with the name of a ladder and the numbers of changed tickets. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[Listener] = []
        self._own = secrets.token_hex(8)

    def listen(self, listener: Listener) -> None:
        """Call `listener` after each change, in the thread that wrote or received it. It should return quickly."""
        self._listeners.append(listener)

    def announce(self, store: Store, ladder: str, numbers: Sequence[int]) -> None:
        """Notify other processes when the transaction commits."""
        for first in range(0, len(numbers), NOTIFIED_AT_ONCE):
            body = {"by": self._own, "ladder": ladder, "tickets": list(numbers[first : first + NOTIFIED_AT_ONCE])}
            notifications.notify(store, CHANNEL, json.dumps(body, ensure_ascii=False))

    def announce_changed(
        self, store: Store, ladder: str, touched: Mapping[int, Collection[int]]
    ) -> dict[str, list[int]]:
        """Announce the tickets that a change to a ladder touched. Returns them by ladder, for `ring_changed`.

        touched  tickets by the id of their ladder, including playlist tickets on other ladders
        """
        names = ladder_rows.ladder_names(store, sorted(touched)) if len(touched) > 1 else dict.fromkeys(touched, ladder)
        by_name = {names[number]: sorted(listed) for number, listed in touched.items()}
        for name, numbers in by_name.items():
            self.announce(store, name, numbers)
        return by_name

    def ring(self, ladder: str, numbers: Sequence[int]) -> None:
        """Call the listeners of this process. Requires that the transaction has committed."""
        if numbers:
            for listener in list(self._listeners):
                listener(ladder, list(numbers))

    def ring_changed(self, touched: Mapping[str, Sequence[int]]) -> None:
        """Call `ring` for the tickets of each ladder."""
        for ladder, numbers in touched.items():
            self.ring(ladder, numbers)

    def hear(self, stop: threading.Event) -> None:
        """Receive notifications of other processes until `stop` is set. Returns immediately on SQLite."""
        while not stop.is_set():
            try:
                notifications.listen(self._database, CHANNEL, self._receive, stop.is_set)
            except StoreError as error:
                wait = RECONNECT_AFTER
                logger.warning("listening for changed tickets failed, next attempt in %.0f s: %s", wait, error)
                stop.wait(wait)
            else:
                return

    def _receive(self, text: str) -> None:
        try:
            body = json.loads(text)
            by, ladder, numbers = body["by"], body["ladder"], body["tickets"]
        except (ValueError, TypeError, KeyError):
            return  # from another application on the same channel
        if by != self._own:
            self.ring(ladder, numbers)
