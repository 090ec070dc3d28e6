"""The end of a process that was asked to stop, within a deadline, whatever still runs in it.

Python waits for its threads when it exits, and a thread that computes or waits for a database cannot be cancelled. What
is cut off here loses nothing: a transaction that was not committed did not happen, and its caller was not answered.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

REQUESTS, BACKGROUND, END = 0.5, 0.55, 0.6  # shares of the time, until requests, background work and all else must end


class StopDeadline:
    """A thread that ends the process after a request to stop.

    within  seconds from the request to the end of the process, at most
    begin   called at once: asks what runs beside requests to stop
    cut     called before the process is ended, if it did not end by itself
    """

    def __init__(self, within: float, begin: Callable[[], None], cut: Callable[[], None]) -> None:
        self._within, self._begin, self._cut = within, begin, cut
        self._asked = threading.Event()
        self._asked_at: float | None = None

    def start(self) -> None:
        """Start the thread, which does nothing until `ask`."""
        threading.Thread(target=self._watch, name="evenmatch-stop", daemon=True).start()

    def ask(self) -> None:
        """Begin to stop. May be called by a signal handler, more than once."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the process was asked to stop."""
        return self._asked_at is not None

    def left(self, share: float) -> float:
        """Seconds left of a share of the time; all of it before a request to stop."""
        elapsed = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        return max(0.0, share * self._within - elapsed)

    def _watch(self) -> None:
        self._asked.wait()
        self._begin()
        time.sleep(self.left(END))
        try:
            self._cut()
            sys.stderr.flush()
        finally:
            os._exit(0)  # a stop that was requested is not a failure
