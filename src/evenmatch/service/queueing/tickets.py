"""The tickets of a ladder as the database has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store
from evenmatch.service.queueing.parties import Party

WAITING, OFFERED, MATCHED, GONE = "waiting", "offered", "matched", "gone"


@dataclass(slots=True)
class TicketRow:
    """A ticket. ended: in words why it is gone; offer, match_id: of the state offered, and matched."""

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
    """Those of these tickets that there are, by number."""
    rows = store.rows.among(store.connection, f"{_TICKET} AND ticket IN ({{}})", (ladder,), tickets)
    return {row[0]: _ticket(row) for row in rows}


class Seen(NamedTuple):
    """What a mirror reads of a ticket; party: None where it does not wait."""

    ticket: int
    change: int
    queued_at: int
    seen_at: int
    party: Party | None


def changed(store: Store, ladder: int, after: int) -> list[Seen]:
    """Every ticket that changed after a change, in order."""
    sql = (
        "SELECT ticket, change, queued_at, seen_at, CASE WHEN state = ? THEN body END FROM ticket "
        "WHERE ladder = ? AND change > ? ORDER BY change, ticket"
    )
    return [Seen(*row)._replace(party=_party(row[4])) for row in store.all(sql, WAITING, ladder, after)]


def waiting(store: Store, ladder: int) -> list[Seen]:
    """Every ticket that waits, by number. It reads all rows: for the first look."""
    sql = "SELECT ticket, change, queued_at, seen_at, body FROM ticket WHERE ladder = ? AND state = ? ORDER BY ticket"
    return [Seen(*row)._replace(party=_party(row[4])) for row in store.all(sql, ladder, WAITING)]


def _party(body: str | None) -> Party | None:
    return None if body is None else Party.read(body)


def present(store: Store, ladder: int) -> list[TicketRow]:
    """Every ticket that waits or is asked, by number. It reads all rows."""
    return [
        _ticket(row) for row in store.all(f"{_TICKET} AND state IN (?, ?) ORDER BY ticket", ladder, WAITING, OFFERED)
    ]


def insert(store: Store, ladder: int, rows: Sequence[TicketRow]) -> None:
    """Add tickets that wait, and seats for their players."""
    columns = ("ladder", "ticket", "change", "state", "queued_at", "seen_at", "body")
    listed = [
        (ladder, one.ticket, one.change, one.state, one.queued_at, one.seen_at, one.party.write()) for one in rows
    ]
    store.rows.insert(store.connection, live_schema.ticket, columns, listed)


def still_waiting(store: Store, ladder: int, tickets: Sequence[int]) -> set[int]:
    """Which of these tickets wait."""
    sql = "SELECT ticket FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return {row[0] for row in store.rows.among(store.connection, sql, (ladder, WAITING), tickets)}


def seen_since(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, int]:
    """When those of these tickets that wait last gave a sign of life."""
    sql = "SELECT ticket, seen_at FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return dict(store.rows.among(store.connection, sql, (ladder, WAITING), tickets))


def note_seen(store: Store, ladder: int, tickets: Sequence[int], now: int) -> None:
    """Note a sign of life of each; the line is locked, and this is no change."""
    sql = "UPDATE ticket SET seen_at = ? WHERE ladder = ? AND ticket IN ({}) RETURNING ticket"
    store.rows.among(store.connection, sql, (now, ladder), tickets)


def postpone(store: Store, ladder: int, since: int | None, now: int, change: int) -> None:
    """Let open tickets have waited as long as they had `since`, and those queued later (None: all) only from now on."""
    sql = (
        "UPDATE ticket SET queued_at = CASE WHEN queued_at > ? THEN ? ELSE queued_at + ? END, change = ? "
        "WHERE ladder = ? AND state IN (?, ?) AND queued_at < ?"
    )
    until = -1 if since is None else since
    store.run(sql, until, now, now - until, change, ladder, WAITING, OFFERED, now)


def prune(store: Store, ladder: int, before: int, most: int = 2000) -> int:
    """Forget some of the tickets and offers that are over and began before a time; how many."""
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
