"""Log lines that may come thousands of times a second: the first at once, then one a minute with their number."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from evenmatch.http.logs import log

EVERY = 60.0  # seconds between two lines of an event


@dataclass
class _Repeated:
    """The repetitions of an event since its last line: their number, and the fields of the last one."""

    since: float
    count: int
    fields: dict[str, object]


class RepeatedLog:
    """The log of events that repeat. Thread-safe; `flush` must be called every few seconds, and at the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._events: dict[str, _Repeated] = {}

    def warning(self, event: str, **fields: object) -> None:
        """Log an event, or count it if there was a line of it in the last minute; the fields are an example."""
        with self._guard:
            repeated = self._events.get(event)
            if repeated is not None:
                repeated.count += 1
                repeated.fields = fields
                return
            self._events[event] = _Repeated(self._clock(), 0, {})
        log.warning(event, count=1, **fields)

    def flush(self, *, everything: bool = False) -> None:
        """Log what was counted for a minute. everything: also what was counted for less."""
        now = self._clock()
        with self._guard:
            due = {name: seen for name, seen in self._events.items() if everything or now - seen.since >= EVERY}
            for name, seen in due.items():
                if seen.count and not everything:
                    self._events[name] = _Repeated(now, 0, {})
                else:
                    del self._events[name]
        for name, seen in due.items():
            if seen.count:
                log.warning(name, count=seen.count, seconds=round(now - seen.since), **seen.fields)


repeated = RepeatedLog()


class RepeatedWarnings(logging.Filter):
    """Counts the warnings of a library whose clients cause them; what has a traceback passes."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged as it is."""
        if record.levelno != logging.WARNING or record.exc_info:
            return True
        repeated.warning(record.getMessage()[:200], library=record.name)
        return False
