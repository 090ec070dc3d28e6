"""Who is to be woken when tickets change: listeners of this process, and through PostgreSQL those of others."""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Sequence

from evenmatch.errors import StoreError
from evenmatch.ledger import notices
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store

Listener = Callable[[str, list[int]], None]
CHANNEL = "evenmatch"
MOST = 400  # tickets in one notice: of at most 16 letters each
AGAIN = 1.0  # seconds until a lost connection is tried again

logger = logging.getLogger(__name__)


class Bell:
    """Rings with the name of a ladder and the numbers of tickets that changed. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[Listener] = []
        self._own = secrets.token_hex(8)

    def listen(self, listener: Listener) -> None:
        """Call this after each change, in the thread that made it or heard of it; it should be quick."""
        self._listeners.append(listener)

    def announce(self, store: Store, ladder: str, numbers: Sequence[int]) -> None:
        """Tell other processes when the transaction commits."""
        for first in range(0, len(numbers), MOST):
            body = {"by": self._own, "ladder": ladder, "tickets": list(numbers[first : first + MOST])}
            notices.notify(store, CHANNEL, json.dumps(body, ensure_ascii=False))

    def ring(self, ladder: str, numbers: Sequence[int]) -> None:
        """Tell the listeners of this process, after the commit."""
        if numbers:
            for listener in list(self._listeners):
                listener(ladder, list(numbers))

    def hear(self, stop: threading.Event) -> None:
        """Ring for what other processes announce, until `stop`. Returns at once on SQLite, which announces nothing."""
        while not stop.is_set():
            try:
                notices.listen(self._database, CHANNEL, self._heard, stop.is_set)
            except StoreError as error:
                logger.warning("listening for changes again in %.0f s: %s", AGAIN, error)
                stop.wait(AGAIN)
            else:
                return

    def _heard(self, text: str) -> None:
        try:
            body = json.loads(text)
            by, ladder, numbers = body["by"], body["ladder"], body["tickets"]
        except (ValueError, TypeError, KeyError):
            return  # somebody else uses the channel
        if by != self._own:
            self.ring(ladder, numbers)
