"""Playlists: a party's tickets on several ladders, one of them with an offer at most; the first match ends them all.

A ticket whose playlist has an offer on another ladder is in state `elsewhere`. Each transaction that changes a ticket
of a playlist holds the change locks of all its ladders, so the states of its tickets always agree, whichever process
and whichever ladder's matchmaker writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from evenmatch.ledger.store import Store
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import PlaylistTicket, TicketMove, TicketRow

T = TypeVar("T")
MATCHED_ELSEWHERE = "its party got a match on another ladder of the playlist"


class MissingLocksError(Exception):
    """A transaction needs the change locks of more ladders. ladders: their ids."""

    def __init__(self, ladders: Collection[int]) -> None:
        super().__init__(f"change locks of ladders {sorted(ladders)} are missing")
        self.ladders = ladders


class LostSeatError(Exception):
    """Another transaction has just given a seat on another ladder to a player of this one."""


def with_locks(counts: Mapping[int, int], attempt: Callable[[Mapping[int, int]], T]) -> T:
    """Call `attempt`, a whole transaction, again with more locks for as long as it misses some; return its result.

    It is also called again after a LostSeatError: it then finds the player in that seat and refuses the party.

    counts   how many change numbers to reserve on which ladders, by id
    attempt  takes the locks of the ladders that it is given by `ladder_rows.reserve_changes_of_each`
    """
    while True:
        try:
            return attempt(counts)
        except MissingLocksError as missing:
            counts = {**dict.fromkeys(missing.ladders, 1), **counts}
        except LostSeatError:
            continue


class PlaylistMoves:
    """Changes that follow, for the other tickets of their playlists, from changes to some tickets of a ladder.

    touched  the tickets changed on other ladders, by the ladder's id
    kept     players of removed tickets who still wait on another ladder
    """

    def __init__(self, store: Store, ladder: int, moves: Mapping[int, TicketMove], left: Collection[int]) -> None:
        """`left`: those of the removed tickets whose party leaves the whole playlist."""
        self._store, self._ladder, self._moves, self._left = store, ladder, moves, left
        self._rows = queue_sql.read_playlists(store, ladder, sorted(moves))
        self._new: dict[PlaylistTicket, TicketMove] = {}
        self.touched: defaultdict[int, list[int]] = defaultdict(list)
        self.kept: set[int] = set()

    def follow(self, locks: Mapping[int, int]) -> None:
        """Move the other tickets, and the seats of their players to where their offer is.

        locks  the ladders whose change locks are held, with a change number of each
        Raises MissingLocksError, changing nothing.
        """
        entries = {entry for row in self._rows.values() for entry in row.playlist}
        missing = {entry.ladder for entry in entries} - locks.keys()
        if missing:
            raise MissingLocksError(missing)
        states = queue_sql.read_ticket_states(self._store, entries)
        for row in self._rows.values():
            others = {
                entry: states[entry]
                for entry in row.playlist
                if entry.ladder != self._ladder and states.get(entry) in queue_sql.TICKETS_OPEN
            }
            self._follow(row, self._moves[row.ticket], others)
        self._write(locks)

    def _follow(self, row: TicketRow, move: TicketMove, others: Mapping[PlaylistTicket, str]) -> None:
        if move.state == queue_sql.GONE and row.ticket not in self._left:
            self._hand_over(row, others)
            return
        for entry in others:  # an offer, an answer or a departure here: this ticket now stands for the playlist
            queue_sql.move_seats(self._store, row.party.players, entry.ladder, self._ladder, row.ticket)
        match move.state:
            case queue_sql.OFFERED:
                self._move(others, TicketMove(queue_sql.ELSEWHERE))
            case queue_sql.WAITING:
                self._move(others, TicketMove(queue_sql.WAITING))
            case queue_sql.MATCHED:
                self._move(others, TicketMove(queue_sql.GONE, ended=MATCHED_ELSEWHERE))
            case _:
                self._move(others, TicketMove(queue_sql.GONE, ended=move.ended))

    def _hand_over(self, row: TicketRow, others: Mapping[PlaylistTicket, str]) -> None:
        """The ticket ends and the rest of its playlist goes on, with the seats of its players."""
        if not others:
            return
        self.kept.update(row.party.players)
        offered = [entry for entry, state in others.items() if state == queue_sql.OFFERED]
        heir = min(offered or others)
        queue_sql.move_seats(self._store, row.party.players, self._ladder, heir.ladder, heir.ticket)
        if not offered:
            self._move([entry for entry in others if others[entry] != queue_sql.WAITING], TicketMove(queue_sql.WAITING))

    def _move(self, entries: Iterable[PlaylistTicket], move: TicketMove) -> None:
        self._new.update(dict.fromkeys(entries, move))

    def _write(self, locks: Mapping[int, int]) -> None:
        moves: defaultdict[int, dict[int, TicketMove]] = defaultdict(dict)
        for entry, move in self._new.items():
            moves[entry.ladder][entry.ticket] = move
            self.touched[entry.ladder].append(entry.ticket)
        for ladder, listed in moves.items():
            queue_sql.move_tickets(self._store, ladder, listed, locks[ladder])
