"""The ticket rows of a ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store
from evenmatch.service.queues.parties import Party

WAITING, OFFERED, MATCHED, GONE = "waiting", "offered", "matched", "gone"


@dataclass(slots=True)
class TicketRow:
    """A stored ticket. ended: why it is gone, in words; offer: set in state offered; match_id: in state matched."""

    ticket: int
    change: int
    state: str
    queued_at: int
    seen_at: int
    party: Party
    offer: int | None = None
    match_id: str | None = None
    ended: str | None = None


_COLUMNS = ("ticket", "change", "state", "queued_at", "seen_at", "body", "offer", "match_id", "ended")
_TICKET = f"SELECT {', '.join(_COLUMNS)} FROM ticket WHERE ladder = ?"


def read(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, TicketRow]:
    """The existing tickets among these numbers, by number."""
    rows = store.rows.among(store.connection, f"{_TICKET} AND ticket IN ({{}})", (ladder,), tickets)
    return {row[0]: _ticket(row) for row in rows}


class Seen(NamedTuple):
    """The columns of a ticket that QueueState reads. party: None if the ticket does not wait."""

    ticket: int
    change: int
    queued_at: int
    seen_at: int
    party: Party | None


def changed(store: Store, ladder: int, after: int) -> list[Seen]:
    """Every ticket with a later change number, in order of changes."""
    sql = (
        "SELECT ticket, change, queued_at, seen_at, CASE WHEN state = ? THEN body END FROM ticket "
        "WHERE ladder = ? AND change > ? ORDER BY change, ticket"
    )
    return [Seen(*row)._replace(party=_party(row[4])) for row in store.all(sql, WAITING, ladder, after)]


def waiting(store: Store, ladder: int) -> list[Seen]:
    """Every waiting ticket, in order of numbers. Reads all rows: for the first read."""
    sql = "SELECT ticket, change, queued_at, seen_at, body FROM ticket WHERE ladder = ? AND state = ? ORDER BY ticket"
    return [Seen(*row)._replace(party=_party(row[4])) for row in store.all(sql, ladder, WAITING)]


def _party(body: str | None) -> Party | None:
    return None if body is None else Party.read(body)


def present(store: Store, ladder: int) -> list[TicketRow]:
    """Every ticket that waits or has an offer, in order of numbers. Reads all rows."""
    return [
        _ticket(row) for row in store.all(f"{_TICKET} AND state IN (?, ?) ORDER BY ticket", ladder, WAITING, OFFERED)
    ]


def insert(store: Store, ladder: int, rows: Sequence[TicketRow]) -> None:
    """Insert waiting tickets; the caller has taken the seats of their players."""
    columns = ("ladder", "ticket", "change", "state", "queued_at", "seen_at", "body")
    listed = [
        (ladder, row.ticket, row.change, row.state, row.queued_at, row.seen_at, row.party.write()) for row in rows
    ]
    store.rows.insert(store.connection, live_schema.ticket, columns, listed)


def still_waiting(store: Store, ladder: int, tickets: Sequence[int]) -> set[int]:
    """The numbers of the waiting tickets among these."""
    sql = "SELECT ticket FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return {row[0] for row in store.rows.among(store.connection, sql, (ladder, WAITING), tickets)}


def seen_since(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, int]:
    """The time of the last heartbeat of each waiting ticket among these, by number."""
    sql = "SELECT ticket, seen_at FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return dict(store.rows.among(store.connection, sql, (ladder, WAITING), tickets))


def note_seen(store: Store, ladder: int, tickets: Sequence[int], now: int) -> None:
    """Write a heartbeat of each ticket; it gets no change number. Requires the ladder's change lock."""
    sql = "UPDATE ticket SET seen_at = ? WHERE ladder = ? AND ticket IN ({}) RETURNING ticket"
    store.rows.among(store.connection, sql, (now, ladder), tickets)


def postpone(store: Store, ladder: int, since: int | None, now: int, change: int) -> None:
    """Shift the queueing times of open tickets so that the time from `since` to `now` does not count as waiting.

    since  None: no waiting time counts before now
    """
    sql = (
        "UPDATE ticket SET queued_at = CASE WHEN queued_at > ? THEN ? ELSE queued_at + ? END, change = ? "
        "WHERE ladder = ? AND state IN (?, ?) AND queued_at < ?"
    )
    until = -1 if since is None else since
    store.run(sql, until, now, now - until, change, ladder, WAITING, OFFERED, now)


def prune(store: Store, ladder: int, before: int, most: int = 2000) -> int:
    """Delete finished tickets and offers from before a time, at most `most` of each; return their number."""
    count = 0
    for table, began, over in (("ticket", "queued_at", (MATCHED, GONE)), ("offer", "made_at", ("made", "off"))):
        sql = (
            f"SELECT {table} FROM {table} WHERE ladder = ? AND state IN (?, ?) AND {began} < ? ORDER BY {table} LIMIT ?"
        )
        old = [row[0] for row in store.all(sql, ladder, *over, before, most)]
        delete = f"DELETE FROM {table} WHERE ladder = ? AND {table} IN ({{}}) RETURNING {table}"
        store.rows.among(store.connection, delete, (ladder,), old)
        count += len(old)
    return count


def _ticket(row: Row) -> TicketRow:
    ticket, change, state, queued_at, seen_at, body, offer, match_id, ended = row
    return TicketRow(ticket, change, state, queued_at, seen_at, Party.read(body), offer, match_id, ended)
