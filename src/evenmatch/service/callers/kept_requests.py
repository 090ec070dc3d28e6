"""Limits of the requests with an Idempotency-Key that are kept for a day, of each API key and of its players together.

Beyond them requests are refused. To drop the oldest instead would break the promise of these keys: a request that was
dropped and is sent again would be carried out again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import idempotent_requests
from evenmatch.ledger.tables.idempotent_requests import Attempt
from evenmatch.service.callers.access import Caller

KEPT = 86_400 * SECOND  # how long an answer is repeated
COUNTED_EVERY = 3600 * SECOND  # between two counts of what is stored, also by other processes
ROW = 256  # bytes of a request beside its answer


class KeptLimit(NamedTuple):
    """The most requests that are kept, and the most bytes of their rows."""

    requests: int
    size: int


_Counts = dict[tuple[str, bool], KeptLimit]  # by API key, and whether they are of its players
OF_KEY = KeptLimit(10_000_000, 4 * 2**30)


class KeptRequests:
    """The kept requests by the last call of `count`, and by what this process has added since. Thread-safe."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._guard = threading.Lock()
        self._counted_at: int | None = None
        self._kept: _Counts = {}
        self._added: _Counts = {}  # since the present or last count began

    def refusal(self, caller: Caller) -> str | None:
        """Why no further request of a caller is kept; None: it is."""
        with self._guard:
            kept = self._kept.get((caller.issuer, caller.player is not None), KeptLimit(0, 0))
        whose = f"key {caller.issuer}" if caller.player is None else "all players of this game together"
        if kept.requests >= OF_KEY.requests:
            what = f"{whose} has {kept.requests:,} requests"
        elif kept.size >= OF_KEY.size:
            what = f"{whose} has {kept.size:,} bytes of answers to requests"
        else:
            return None
        return f"{what} with an Idempotency-Key of the last 24 hours, which is the limit; send the request without one"

    def add(self, attempt: Attempt, requests: int, answer: int = 0) -> None:
        """Count requests that were stored (negative: deleted), and the bytes of their answers."""
        issuer, _, player = attempt.id.caller.partition("/")
        with self._guard:
            for counts in (self._kept, self._added):
                _add(counts, (issuer, bool(player)), requests, answer)

    def count(self) -> None:
        """Count what is stored, unless that was done within the hour. Reads all rows: for one worker of the process.

        Until it returns, the last count holds. What is added while it reads may count twice until the next one.
        Raises StoreError.
        """
        now = self._clock()
        if self._counted_at is not None and now - self._counted_at < COUNTED_EVERY:
            return
        with self._guard:
            self._added = {}
        with self._database.read() as store:
            rows = idempotent_requests.sizes(store, now - KEPT)
        kept: _Counts = {}
        for issuer, is_player, requests, answers in rows:
            _add(kept, (issuer, is_player), requests, answers)
        with self._guard:
            for whose, (requests, size) in self._added.items():
                _add(kept, whose, requests, size - requests * ROW)
            self._kept = kept
        self._counted_at = now


def _add(counts: _Counts, whose: tuple[str, bool], requests: int, answers: int) -> None:
    before = counts.get(whose, KeptLimit(0, 0))
    counts[whose] = KeptLimit(before.requests + requests, before.size + requests * ROW + answers)
