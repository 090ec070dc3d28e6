"""When the running matches of all ladders expire, kept in memory and brought up to date by what changed."""

from __future__ import annotations

import threading

from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.service.playing import live


class Expiries:
    """Of each ladder that was asked about. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._upto: dict[int, int] = {}
        self._open: dict[int, dict[str, int]] = {}

    def due(self, ladder: int, now: int) -> list[str]:
        """The matches of a ladder that are on and should be no longer, the first to expire first."""
        with self._guard:
            self._catch_up(ladder)
            found = [(at, match_id) for match_id, at in self._open[ladder].items() if at <= now]
        return [match_id for _, match_id in sorted(found)]

    def _catch_up(self, ladder: int) -> None:
        known = self._upto.get(ladder)
        with self._database.read() as connection:
            store = Store(connection, self._database.rows)
            upto = live.last_change(store, ladder)
            if known == upto:
                return
            told = live.expiries(store, ladder, known)
        mine = self._open.setdefault(ladder, {})
        for match_id, state, expires_at in told:
            if state == live.OPEN:
                mine[match_id] = expires_at
            else:
                mine.pop(match_id, None)
        self._upto[ladder] = upto
