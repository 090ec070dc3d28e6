"""Playlists: a party's tickets on several ladders, at most one of them with an offer. The first match ends them all.

A ticket whose playlist has an offer on another ladder is in state `elsewhere`. Each transaction that changes a ticket
of a playlist holds the change locks of all its ladders. So the states of its tickets always agree, whichever process
writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from evenmatch.ledger.store import Store
from evenmatch.queues import endings, queue_sql
from evenmatch.queues.queue_sql import PlaylistTicket, TicketMove, TicketRow

T = TypeVar("T")


class MissingLocksError(Exception):
    """A transaction needs the change locks of more ladders. ladders: their ids."""

    def __init__(self, ladders: Collection[int]) -> None:
        super().__init__(f"change locks of ladders {sorted(ladders)} are missing")
        self.ladders = ladders


class LostSeatError(Exception):
    """Another transaction has just given one of the players a seat on another ladder."""


def with_locks(counts: Mapping[int, int], attempt: Callable[[Mapping[int, int]], T]) -> T:
    """Call `attempt`, a whole transaction, and return its result. Repeat it with more locks while it misses some.

    It is also repeated after a LostSeatError; it then finds the player in the other seat and refuses the party.

    counts   number of change numbers to reserve, by ladder id
    attempt  takes the locks of these ladders with `ladder_rows.reserve_changes_of_each`
    """
    while True:
        try:
            return attempt(counts)
        except MissingLocksError as missing:
            counts = {**dict.fromkeys(missing.ladders, 1), **counts}
        except LostSeatError:
            continue


class PlaylistMoves:
    """The changes to the other tickets of a playlist that follow from changes to a ladder's tickets.

    touched  the tickets changed on other ladders, by the ladder's id
    kept     players of removed tickets who still wait on another ladder
    """

    def __init__(self, store: Store, ladder: int, moves: Mapping[int, TicketMove], left: Collection[int]) -> None:
        """left: the removed tickets whose party leaves the whole playlist."""
        self._store, self._ladder, self._moves, self._left = store, ladder, moves, left
        self._rows = queue_sql.read_playlists(store, ladder, sorted(moves))
        self._new: dict[PlaylistTicket, TicketMove] = {}
        self.touched: defaultdict[int, list[int]] = defaultdict(list)
        self.kept: set[int] = set()

    def follow(self, locks: Mapping[int, int]) -> None:
        """Move the other tickets, and move their players' seats to the ladder with the offer.

        locks  a change number of each ladder whose change lock is held, by ladder id
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
        for entry in others:  # after an offer, an answer or a departure, this ticket represents the playlist
            queue_sql.move_seats(self._store, row.party.players, entry.ladder, self._ladder, row.ticket)
        match move.state:
            case queue_sql.OFFERED:
                self._move(others, TicketMove(queue_sql.ELSEWHERE))
            case queue_sql.WAITING:
                self._move(others, TicketMove(queue_sql.WAITING))
            case queue_sql.MATCHED:
                self._move(others, TicketMove(queue_sql.GONE, ended=endings.MATCHED_ELSEWHERE))
            case _:
                self._move(others, TicketMove(queue_sql.GONE, ended=move.ended))

    def _hand_over(self, row: TicketRow, others: Mapping[PlaylistTicket, str]) -> None:
        """End a ticket while the rest of its playlist continues, and move its players' seats there."""
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
