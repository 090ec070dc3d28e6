"""Rows of table `ended_session`: web sessions that were ended before their expiry."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store


def contains(store: Store, session: str) -> bool:
    """Whether the session with this id was ended."""
    return bool(store.all("SELECT 1 FROM ended_session WHERE session = ?", session))


def among(store: Store, sessions: Sequence[str]) -> set[str]:
    """Those of the sessions with these ids that were ended."""
    return {row[0] for row in store.among("SELECT session FROM ended_session WHERE session IN ({})", (), sessions)}


def put(store: Store, session: str, until: int) -> None:
    """Insert an ended session, or replace the one with its id. until: when it would have expired."""
    store.upsert(live_schema.ended_session, ("session", "until"), [(session, until)])


def delete_expired(store: Store, now: int) -> None:
    """Delete the sessions that would have expired by now."""
    store.run("DELETE FROM ended_session WHERE until <= ?", now)
