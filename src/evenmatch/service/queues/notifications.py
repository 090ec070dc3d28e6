"""Notifications of changed tickets: to listeners in this process, and through PostgreSQL to other processes."""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from evenmatch.errors import StoreError
from evenmatch.ledger import notifications
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import ladders

Listener = Callable[[str, list[int]], None]
CHANNEL = "evenmatch"
MOST = 400  # tickets in one notification, of at most 16 characters each
AGAIN = 1.0  # seconds until a lost connection is opened again

logger = logging.getLogger(__name__)


class TicketNotifier:
    """Calls listeners with the name of a ladder and the numbers of changed tickets. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[Listener] = []
        self._own = secrets.token_hex(8)

    def listen(self, listener: Listener) -> None:
        """Call `listener` after each change, in the thread that wrote or received it; it should return quickly."""
        self._listeners.append(listener)

    def announce(self, store: Store, ladder: str, numbers: Sequence[int]) -> None:
        """Notify other processes when the transaction commits."""
        for first in range(0, len(numbers), MOST):
            body = {"by": self._own, "ladder": ladder, "tickets": list(numbers[first : first + MOST])}
            notifications.notify(store, CHANNEL, json.dumps(body, ensure_ascii=False))

    def announce_changed(
        self, store: Store, ladder: str, touched: Mapping[int, Collection[int]]
    ) -> dict[str, list[int]]:
        """Announce the tickets that a change to a ladder touched; return them by ladder, for `ring_changed`.

        touched  tickets by the id of their ladder; those of other ladders are in the same playlists
        """
        names = ladders.names(store, sorted(touched)) if len(touched) > 1 else dict.fromkeys(touched, ladder)
        by_name = {names[number]: sorted(listed) for number, listed in touched.items()}
        for name, numbers in by_name.items():
            self.announce(store, name, numbers)
        return by_name

    def ring(self, ladder: str, numbers: Sequence[int]) -> None:
        """Call the listeners of this process; call it after the commit."""
        if numbers:
            for listener in list(self._listeners):
                listener(ladder, list(numbers))

    def ring_changed(self, touched: Mapping[str, Sequence[int]]) -> None:
        """Call the listeners of this process for tickets by ladder; call it after the commit."""
        for ladder, numbers in touched.items():
            self.ring(ladder, numbers)

    def hear(self, stop: threading.Event) -> None:
        """Receive notifications of other processes until `stop` is set. Returns at once on SQLite, which has none."""
        while not stop.is_set():
            try:
                notifications.listen(self._database, CHANNEL, self._receive, stop.is_set)
            except StoreError as error:
                logger.warning("listening for changed tickets failed, next attempt in %.0f s: %s", AGAIN, error)
                stop.wait(AGAIN)
            else:
                return

    def _receive(self, text: str) -> None:
        try:
            body = json.loads(text)
            by, ladder, numbers = body["by"], body["ladder"], body["tickets"]
        except (ValueError, TypeError, KeyError):
            return  # another application uses the channel
        if by != self._own:
            self.ring(ladder, numbers)
