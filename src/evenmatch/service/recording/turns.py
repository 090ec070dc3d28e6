"""Turns of threads that compute: many at a time spend half of their time on handing each other the GIL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 3  # threads that compute at a time: while one does, the others wait for the database
PATIENCE = 0.1  # seconds after which a thread goes on although others compute


class Turns:
    """Lets few of the threads that hold different ladders compute at a time."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(AT_ONCE)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, though not for long, because the database may keep those who have one waiting."""
        is_taken = self._free.acquire(timeout=PATIENCE)
        try:
            yield
        finally:
            if is_taken:
                self._free.release()
