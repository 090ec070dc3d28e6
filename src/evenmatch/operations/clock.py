"""The clock of a process: the time of its database, which never goes back whatever is done to the system clock."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from evenmatch.durations import DAY, SECOND
from evenmatch.errors import StoreError

COMPARE_EVERY = 60.0  # seconds between two comparisons with the reference
TOLERANCE = SECOND  # microseconds of difference that two well-kept clocks may have
FURTHEST = DAY  # microseconds of a step forward that is followed; a longer one is an error of the reference

log = logging.getLogger(__name__)


_read_steady = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns
)


def uptime() -> int:
    """Microseconds since this machine started, its sleep included; no setting of the system clock changes it."""
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
        """The time now; never earlier than a time returned before."""
        return self._offset + self._steady()

    def compare(self) -> int:
        """Compare with the reference; return by how many microseconds that is ahead. Raises StoreError.

        A step forward of up to FURTHEST is followed, as after a pause of a virtual machine. A longer one, and one back,
        are logged and not followed until the process is started again.
        """
        ahead = self._reference() - self()
        if TOLERANCE < ahead <= FURTHEST:
            self._offset += ahead
        elif abs(ahead) > TOLERANCE:
            log.warning(
                "the clock of the database is %s s away from that of this process, which goes on by its own; "
                "check the system clocks, then start the process again",
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
