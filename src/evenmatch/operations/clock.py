"""The clock of a process: the time of its database, which never goes back, even if the system clock does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from evenmatch.durations import DAY, SECOND
from evenmatch.errors import StoreError

COMPARE_EVERY = 60.0  # seconds between two comparisons with the reference
TOLERANCE = SECOND  # microseconds by which two good clocks may differ
FURTHEST = DAY  # microseconds: the clock follows steps forward up to this; a longer step is an error of the reference

log = logging.getLogger(__name__)


_read_steady = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns
)


def uptime() -> int:
    """Microseconds since this machine started, including sleep; unaffected by changes to the system clock."""
    return _read_steady() // 1000


class DatabaseClock:
    """Microseconds since the epoch: the reference's time when it was created, and the uptime since then.

    Processes on one PostgreSQL database agree on the time this way, even if the system clock of one is wrong.

    reference  reads the time of the database: Database.time
    """

    def __init__(self, reference: Callable[[], int], steady: Callable[[], int] = uptime) -> None:
        self._reference, self._steady = reference, steady
        self._offset = reference() - steady()

    def __call__(self) -> int:
        """The time now, never earlier than a time returned before."""
        return self._offset + self._steady()

    def compare(self) -> int:
        """Compare with the reference and return how many microseconds it is ahead. Raises StoreError.

        The clock follows steps forward up to FURTHEST, as after a pause of a virtual machine. Longer steps and steps
        back are logged and not followed until the process restarts.
        """
        ahead = self._reference() - self()
        if TOLERANCE < ahead <= FURTHEST:
            self._offset += ahead
        elif abs(ahead) > TOLERANCE:
            log.warning(
                "the clock of the database differs by %s s from that of this process, which keeps its own time; "
                "check the system clocks, then restart the process",
                round(ahead / SECOND, 1),
            )
        return ahead

    def run(self, stop: threading.Event) -> None:
        """Compare from time to time until `stop` is set."""
        while not stop.wait(COMPARE_EVERY):
            try:
                self.compare()
            except StoreError as error:
                log.warning("the clock could not be compared with the database's: %s", error)
