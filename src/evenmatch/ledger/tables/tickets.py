"""Rows of table `ticket`: parties that wait in queues, or waited."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NotRequired, TypedDict

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store

WAITING, OFFERED, ELSEWHERE, MATCHED, GONE = "waiting", "offered", "elsewhere", "matched", "gone"
OPEN = (WAITING, OFFERED, ELSEWHERE)


class StoredMember(TypedDict):
    """A waiting player: the name as it was sent, rating, percentile and its deviation at the time of joining.

    avoid: player ids; avoid_unknown: names to avoid that no player had; max_ping None: no limit; regions: those
    chosen, empty or missing: any.
    attributes, vetoes: missing in tickets of older versions, which accept everything.
    For the other fields see matchmaking.Member.
    """

    name: str
    id: int
    rating: float
    percentile: float
    deviation: NotRequired[float]
    newcomer: bool
    within: float
    loose: bool
    roles: list[str]
    ping: dict[str, float]
    max_ping: float | None
    regions: NotRequired[list[str]]
    attributes: NotRequired[dict[str, list[str]]]
    vetoes: NotRequired[list[str]]
    avoid: list[int]
    avoid_unknown: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class Party:
    """The party of a ticket: its members and the queues it waits in. request: id chosen by the sender; None: none."""

    request: str | None
    queues: tuple[str, ...]
    members: tuple[StoredMember, ...]

    @property
    def players(self) -> list[int]:
        """The ids of the players."""
        return [member["id"] for member in self.members]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the players, as they were sent."""
        return tuple(member["name"] for member in self.members)

    def write(self) -> str:
        """The JSON text for the ticket's row."""
        body = {"request": self.request, "queues": self.queues, "members": self.members}
        return json.dumps(body, ensure_ascii=False, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Party:
        """Parse the JSON text of `write`."""
        body = json.loads(text)
        return cls(body["request"], tuple(body["queues"]), tuple(body["members"]))


class PlaylistTicket(NamedTuple):
    """One of the tickets of a playlist. ladder: its id."""

    ladder: int
    ticket: int


Playlist = tuple[PlaylistTicket, ...]  # of two or more ladders; empty: the party waits on one ladder only


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
    playlist: Playlist = ()


class TicketUpdate(NamedTuple):
    """The columns of a ticket that a copy of the queues in memory follows. party: None if the ticket does not wait."""

    ticket: int
    change: int
    queued_at: int
    seen_at: int
    party: Party | None


class TicketMove(NamedTuple):
    """The new state of a ticket; ended: the reason, in words."""

    state: str
    offer: int | None = None
    match_id: str | None = None
    ended: str | None = None


_COLUMNS = ("ticket", "change", "state", "queued_at", "seen_at", "body", "offer", "match_id", "ended", "playlist")
_TICKET = f"SELECT {', '.join(_COLUMNS)} FROM ticket WHERE ladder = ?"


def read(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, TicketRow]:
    """The existing tickets among these numbers, by number."""
    rows = store.among(f"{_TICKET} AND ticket IN ({{}})", (ladder,), tickets)
    return {row[0]: _ticket(row) for row in rows}


def read_changed(store: Store, ladder: int, after: int) -> list[TicketUpdate]:
    """Every ticket with a later change number, in order of changes."""
    sql = (
        "SELECT ticket, change, queued_at, seen_at, CASE WHEN state = ? THEN body END FROM ticket "
        "WHERE ladder = ? AND change > ? ORDER BY change, ticket"
    )
    return [TicketUpdate(*row)._replace(party=_party(row[4])) for row in store.all(sql, WAITING, ladder, after)]


def read_waiting(store: Store, ladder: int) -> list[TicketUpdate]:
    """Every waiting ticket, in order of numbers. Reads all rows: for the first read."""
    sql = "SELECT ticket, change, queued_at, seen_at, body FROM ticket WHERE ladder = ? AND state = ? ORDER BY ticket"
    return [TicketUpdate(*row)._replace(party=_party(row[4])) for row in store.all(sql, ladder, WAITING)]


def _party(body: str | None) -> Party | None:
    return None if body is None else Party.read(body)


def count_since(store: Store, ladder: int, since: int) -> int:
    """The number of tickets, in any state, that were queued at or after a time."""
    sql = "SELECT COUNT(*) FROM ticket WHERE ladder = ? AND queued_at >= ?"
    return int(store.all(sql, ladder, since)[0][0])


def read_since(store: Store, ladder: int, since: int, most: int) -> tuple[list[TicketUpdate], int]:
    """Tickets, in any state, that were queued at or after a time, in order of numbers, and of how many each is one.

    most  about how many are read: if there are more, those whose number is a multiple
    """
    every = max(1, -(-count_since(store, ladder, since) // most))
    sql = (
        "SELECT ticket, change, queued_at, seen_at, body FROM ticket WHERE ladder = ? AND queued_at >= ? "
        "AND ticket / ? * ? = ticket ORDER BY ticket"
    )
    rows = store.all(sql, ladder, since, every, every)
    return [TicketUpdate(*row)._replace(party=_party(row[4])) for row in rows], every


def read_open(store: Store, ladder: int) -> list[TicketRow]:
    """Every ticket that waits or has an offer, here or elsewhere, in order of numbers. Reads all rows."""
    return [_ticket(row) for row in store.all(f"{_TICKET} AND state IN (?, ?, ?) ORDER BY ticket", ladder, *OPEN)]


def read_playlists(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, TicketRow]:
    """Those of these tickets that belong to a playlist, by number."""
    rows = store.among(f"{_TICKET} AND playlist IS NOT NULL AND ticket IN ({{}})", (ladder,), tickets)
    return {row[0]: _ticket(row) for row in rows}


def read_states(store: Store, entries: Iterable[PlaylistTicket]) -> dict[PlaylistTicket, str]:
    """The states of the existing tickets among these, of any ladders."""
    by_ladder: dict[int, list[int]] = {}
    for entry in sorted(set(entries)):
        by_ladder.setdefault(entry.ladder, []).append(entry.ticket)
    sql = "SELECT ticket, state FROM ticket WHERE ladder = ? AND ticket IN ({})"
    return {
        PlaylistTicket(ladder, ticket): state
        for ladder, numbers in by_ladder.items()
        for ticket, state in store.among(sql, (ladder,), numbers)
    }


def insert(store: Store, ladder: int, rows: Sequence[TicketRow]) -> None:
    """Insert waiting tickets; the caller has taken the seats of their players."""
    columns = ("ladder", "ticket", "change", "state", "queued_at", "seen_at", "body", "playlist")
    listed = [
        (
            *(ladder, row.ticket, row.change, row.state, row.queued_at, row.seen_at, row.party.write()),
            json.dumps(row.playlist) if row.playlist else None,
        )
        for row in rows
    ]
    store.insert(live_schema.ticket, columns, listed)


def move(store: Store, ladder: int, moves: Mapping[int, TicketMove], change: int) -> None:
    """Give tickets, by number, their new state and a change number."""
    rows = [(ladder, ticket, *to, change) for ticket, to in moves.items()]
    store.update(live_schema.ticket, ("ladder", "ticket"), (*TicketMove._fields, "change"), rows)


def set_party(store: Store, ladder: int, ticket: int, party: Party, change: int) -> None:
    """Replace the party of a ticket."""
    sql = "UPDATE ticket SET body = ?, change = ? WHERE ladder = ? AND ticket = ?"
    store.run(sql, party.write(), change, ladder, ticket)


def waiting_among(store: Store, ladder: int, tickets: Sequence[int]) -> set[int]:
    """The numbers of the waiting tickets among these."""
    sql = "SELECT ticket FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return {row[0] for row in store.among(sql, (ladder, WAITING), tickets)}


def read_seen(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, int]:
    """The time of the last heartbeat of each waiting ticket among these, by number."""
    sql = "SELECT ticket, seen_at FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return dict(store.among(sql, (ladder, WAITING), tickets))


def set_seen(store: Store, ladder: int, tickets: Sequence[int], now: int) -> None:
    """Write a heartbeat of each ticket; it gets no change number. Requires the ladder's change lock."""
    store.run_among("UPDATE ticket SET seen_at = ? WHERE ladder = ? AND ticket IN ({})", (now, ladder), tickets)


def postpone(store: Store, ladder: int, since: int | None, now: int, change: int) -> None:
    """Shift the queueing times of open tickets so that the time from `since` to `now` does not count as waiting.

    since  None: no waiting time counts before now
    """
    sql = (
        "UPDATE ticket SET queued_at = CASE WHEN queued_at > ? THEN ? ELSE queued_at + ? END, change = ? "
        "WHERE ladder = ? AND state IN (?, ?, ?) AND queued_at < ?"
    )
    until = -1 if since is None else since
    store.run(sql, until, now, now - until, change, ladder, *OPEN, now)


def delete_older_than(store: Store, ladder: int, before: int, most: int = 2000) -> None:
    """Delete finished tickets that were queued before a time, the oldest first, at most `most`."""
    sql = "SELECT ticket FROM ticket WHERE ladder = ? AND state IN (?, ?) AND queued_at < ? ORDER BY ticket LIMIT ?"
    old = [row[0] for row in store.all(sql, ladder, MATCHED, GONE, before, most)]
    store.run_among("DELETE FROM ticket WHERE ladder = ? AND ticket IN ({})", (ladder,), old)


def _ticket(row: Row) -> TicketRow:
    ticket, change, state, queued_at, seen_at, body, offer, match_id, ended, listed = row
    playlist = () if listed is None else tuple(PlaylistTicket(*entry) for entry in json.loads(listed))
    return TicketRow(ticket, change, state, queued_at, seen_at, Party.read(body), offer, match_id, ended, playlist)
