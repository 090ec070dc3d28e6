"""Expiry times of the live matches of all ladders, cached in memory and updated from the database's changes."""

from __future__ import annotations

import threading

from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import live_matches
from evenmatch.ledger.tables.change_locks import last_change


class Expiries:
    """Finds overdue matches of a ladder without reading all of them. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._upto: dict[int, int] = {}
        self._open: dict[int, dict[str, int]] = {}

    def due(self, ladder: int, now: int) -> list[str]:
        """The ids of a ladder's live matches whose expiry time has passed, ordered by that time."""
        with self._guard:
            self._catch_up(ladder)
            overdue = [(time, match_id) for match_id, time in self._open[ladder].items() if time <= now]
        return [match_id for _, match_id in sorted(overdue)]

    def _catch_up(self, ladder: int) -> None:
        known = self._upto.get(ladder)
        with self._database.read() as store:
            upto = last_change(store, ladder)
            if known == upto:
                return
            changed = live_matches.read_expiries(store, ladder, known)
        expires = self._open.setdefault(ladder, {})
        for match_id, state, expires_at in changed:
            if state == live_matches.OPEN:
                expires[match_id] = expires_at
            else:
                expires.pop(match_id, None)
        self._upto[ladder] = upto
