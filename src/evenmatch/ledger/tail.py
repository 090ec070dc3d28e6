"""Traces of a ladder's last events outside the table of events, which reveal removed events."""

from __future__ import annotations

from evenmatch.ledger.store import Head, Store

# The last event that each table refers to. Each row is written in the transaction of its event, or later.
_TRACES = {
    "the table of appearances": "SELECT MAX(position) FROM appearance WHERE ladder = ?",
    "the table of corrections": "SELECT MAX(position) FROM correction WHERE ladder = ?",
    "the last correction in the ladder's row": "SELECT corrected FROM ladder WHERE ladder = ?",
    "the corrections that the ratings include": "SELECT MAX(planned) FROM generation WHERE ladder = ?",
    "the journal": "SELECT MAX(position) FROM journal WHERE ladder = ?",
    "the checkpoints": "SELECT MAX(position) FROM checkpoint WHERE ladder = ?",
    "the seasons": "SELECT MAX(position) FROM season WHERE ladder = ?",
    "the deliveries to webhooks": "SELECT MAX(position) FROM told WHERE ladder = ?",
}


def read_traces(store: Store, head: Head) -> dict[str, int]:
    """The last position in each table, by the name of the table in words; empty tables are left out."""
    positions = {trace: store.all(sql, head.ladder)[0][0] for trace, sql in _TRACES.items()}
    return {trace: int(position) for trace, position in positions.items() if position is not None}
