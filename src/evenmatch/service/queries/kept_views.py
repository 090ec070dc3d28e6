"""Views of standings that a client is reading page by page, kept for a short time after newer ones exist."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.service.queries.standings import View

SECONDS = 60  # that a view is kept after its last page was read
ROWS = 2_000_000  # players of all kept views, about 100 bytes each


class _KeptView(NamedTuple):
    """A view and the monotonic time, in seconds, of the last page read from it."""

    view: View
    read_at: float


class KeptViews:
    """The views of walks through standings, of all ladders. Safe to share between threads.

    The least recently read view is dropped first when the views have more than ROWS players together.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], _KeptView] = OrderedDict()  # the least recently read first
        self._rows = 0
        self._guard = threading.Lock()

    def keep(self, view: View) -> None:
        """Keep a view, so that `find` returns it for its identity."""
        with self._guard:
            key = view.head.name, view.identity
            self._drop(key)
            self._kept[key] = _KeptView(view, self._clock())
            self._rows += len(view.snapshot.board)
            self._limit()

    def find(self, present: View, identity: str) -> View | None:
        """The view with this identity: a kept one, or the present one if it lists the same players in the same order.

        None: it is not kept any more, or a correction or a change of settings came after it.
        """
        if present.identity == identity:
            return present
        with self._guard:
            self._limit()
            kept = self._kept.get((present.head.name, identity))
        if kept is None or kept.view.basis != present.basis:
            return None
        self.keep(kept.view)
        return kept.view

    def _limit(self) -> None:
        """Drop the views that were not read for long, and what is more than fits; the latest one always fits."""
        oldest = self._clock() - SECONDS
        while self._kept:
            key, kept = next(iter(self._kept.items()))
            if kept.read_at >= oldest and (self._rows <= ROWS or len(self._kept) == 1):
                return
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._rows -= len(kept.view.snapshot.board)
