"""The line in which jobs wait for their turn: few run at a time, and one of each ladder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evenmatch.errors import BusyError
from evenmatch.service.work.job_slots import JobSlots

LOOK = 0.2  # seconds between two checks of a waiting job whether it shall go on waiting
RETRY = 30.0  # seconds after which a request that found the line full may be sent again


class JobLine:
    """The jobs of one sort, running or waiting. Safe to share between threads.

    at_once  jobs that run at a time;  longest  jobs that may wait, of all ladders;  of_ladder  and of one ladder
    slots    shared with the other serving processes of this machine; None: this is the only one
    """

    def __init__(self, at_once: int, longest: int, of_ladder: int, slots: JobSlots | None = None) -> None:
        self._at_once, self._longest, self._of_ladder, self._slots = at_once, longest, of_ladder, slots
        self._held: dict[str, int] = {}  # the slot of a running job
        self._waiting: list[tuple[str, str]] = []  # (job, ladder) in order
        self._running: dict[str, str] = {}  # ladder by job
        self._changed = threading.Condition()

    def check(self, ladder: str) -> None:
        """Raise BusyError if no other job of this ladder may wait now."""
        with self._changed:
            own = sum(waiting == ladder for _, waiting in self._waiting)
            if own >= self._of_ladder or len(self._waiting) >= self._longest:
                whose = f"{own} jobs of ladder {ladder!r}" if own >= self._of_ladder else f"{len(self._waiting)} jobs"
                raise BusyError(f"{whose} wait for their turn already; try again when some have ended", RETRY)

    def join(self, job: str, ladder: str) -> None:
        """Put a job at the end of the line."""
        with self._changed:
            self._waiting.append((job, ladder))

    def ahead(self, job: str) -> int:
        """How many jobs run or wait before a waiting job; 0 for one that runs or has ended."""
        with self._changed:
            names = [waiting for waiting, _ in self._waiting]
            return len(self._running) + names.index(job) if job in names else 0

    def has_begun(self, job: str) -> bool:
        """Whether a job of this line waits no longer."""
        with self._changed:
            return all(waiting != job for waiting, _ in self._waiting)

    @contextmanager
    def turn(self, job: str, check: Callable[[], None]) -> Iterator[None]:
        """Wait for the turn of a job that has joined, and hold it during the block. check: raises to stop waiting."""
        try:
            self._wait(job, check)
            yield
        finally:
            with self._changed:
                self._waiting = [entry for entry in self._waiting if entry[0] != job]
                self._running.pop(job, None)
                held = self._held.pop(job, None)
                if held is not None:
                    os.close(held)
                self._changed.notify_all()

    def _wait(self, job: str, check: Callable[[], None]) -> None:
        while True:
            check()
            with self._changed:
                entry = self._next()
                if entry is not None and entry[0] == job and self._has_slot(job):
                    self._waiting.remove(entry)
                    self._running[job] = entry[1]
                    self._changed.notify_all()
                    return
                self._changed.wait(LOOK)

    def _has_slot(self, job: str) -> bool:
        """Take a slot for a job that may run now, if one is free on this machine."""
        held = None if self._slots is None else self._slots.take()
        if held is not None:
            self._held[job] = held
        return self._slots is None or held is not None

    def _next(self) -> tuple[str, str] | None:
        """The first waiting job that may run now."""
        if len(self._running) >= self._at_once:
            return None
        busy = set(self._running.values())
        return next((entry for entry in self._waiting if entry[1] not in busy), None)
