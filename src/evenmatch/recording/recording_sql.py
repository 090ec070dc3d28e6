"""The first read of a transaction that records matches: several tables in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.ledger import event_rows
from evenmatch.ledger.store import Head, Row, Statement, Store
from evenmatch.live.live_sql import OPEN


class RecordingLookup(NamedTuple):
    """The stored state of reported matches, and later events of their ladder.

    known  (position, digest) by event id, of ids in the ledger
    live   ids of live matches
    later  (kind, position, players) of the events after a position, in no particular order
    """

    known: dict[str, tuple[int, bytes]]
    live: list[str]
    later: Sequence[Row]


def look_up(store: Store, head: Head, ids: Sequence[str], after: int) -> RecordingLookup:
    """Look up one or more match ids, and the events after a position."""
    live = (
        "SELECT match_id, CAST(NULL AS bigint), CAST(NULL AS bytea) FROM live "
        "WHERE ladder = ? AND state = ? AND match_id IN ({})"
    )
    statements = [event_rows.events_by_id(store, head, ids), store.by_key(live, (head.ladder, OPEN), ids)]
    if after < head.position:
        statements.append(_later(head, after))
    known, open_matches, *others = store.each(statements)
    return RecordingLookup(
        event_rows.event_digests(known), [row[0] for row in open_matches], others[0] if others else ()
    )


def later_events(store: Store, head: Head, after: int) -> Sequence[Row]:
    """The events after a position, see RecordingLookup."""
    sql, values = _later(head, after)
    return store.all(sql, *values) if after < head.position else ()


def _later(head: Head, after: int) -> Statement:
    sql = "SELECT kind, position, players FROM event WHERE ladder = ? AND position > ? AND position <= ?"
    return sql, (head.ladder, after, head.position)
