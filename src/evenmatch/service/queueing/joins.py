"""Parties that come to wait: checked all together, written all together, refused each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenmatch.errors import ConflictError, EvenmatchError, InputError, NotYetError
from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.service.queueing import penalties, queue_rules, tickets
from evenmatch.service.queueing.levels import Levels
from evenmatch.service.queueing.parties import Party
from evenmatch.service.queueing.queue_rules import QueueSetup
from evenmatch.service.queueing.tickets import TicketRow
from evenmatch.service.queueing.wishes import Join, Told
from evenmatch.service.times import iso_time

Outcome = Told | EvenmatchError


class Seat(NamedTuple):
    """Where a player waits or plays."""

    ladder: int
    ticket: int | None
    match_id: str | None


def check_queues(wish: Join, setups: Mapping[str, QueueSetup]) -> None:
    """Raise UnknownNameError for a queue that is not there, InputError for a party that it does not take."""
    roles: set[str] = set()
    for name in wish.queues:
        policy = queue_rules.find(setups, name).policy
        roles.update(policy.roles)
        if len(wish.members) > policy.team_size:
            raise InputError(
                f"a party of {len(wish.members)} wants to join queue {name!r}; accepted are at most {policy.team_size}"
            )
    for one in wish.members:
        for role in one.roles:
            if role not in roles:
                accepted = f"accepted are {', '.join(sorted(roles))}" if roles else "none of its queues has roles"
                raise InputError(f"player {one.name!r} offers the role {role!r}; {accepted}")


class Joins:
    """The joins of one transaction. The ladder's line is locked, and names are shared."""

    def __init__(self, store: Store, levels: Levels, ids: Mapping[str, int], now: int) -> None:
        self._store, self._ladder, self._now = store, levels.ladder, now
        self._levels, self._ids = levels, ids

    def join(self, wishes: Mapping[int, Join]) -> dict[int, Outcome]:
        """What becomes of wishes, by the number that each ticket would have; those granted are written."""
        names = {self._ids[one.name]: one.name for wish in wishes.values() for one in wish.members}
        players = sorted(names)
        self._names = names
        self._seats = seats(self._store, players)
        self._penalties = penalties.waiting_out(self._store, self._ladder, players, self._now)
        self._level = self._levels.of(players)
        self._there = tickets.read(self._store, self._ladder, self._requested(wishes))
        new: dict[int, TicketRow] = {}
        outcomes: dict[int, Outcome] = {}
        for number, wish in wishes.items():
            try:
                again = self._again(wish, new)
                outcomes[number] = self._admit(number, wish, new) if again is None else again
            except EvenmatchError as error:
                outcomes[number] = error
        self._write(new, outcomes)
        return outcomes

    def _requested(self, wishes: Mapping[int, Join]) -> list[int]:
        """The tickets here that may be what a wish with a request asks for again."""
        asking = [self._ids[one.name] for wish in wishes.values() if wish.request is not None for one in wish.members]
        taken = [self._seats[player] for player in asking if player in self._seats]
        return sorted({seat.ticket for seat in taken if seat.ladder == self._ladder and seat.ticket is not None})

    def _again(self, wish: Join, new: Mapping[int, TicketRow]) -> Told | None:
        """The ticket that the same party has by the same request."""
        if wish.request is None:
            return None
        party = {self._ids[one.name] for one in wish.members}
        for player in party:
            seat = self._seats.get(player)
            if seat is None or seat.ladder != self._ladder or seat.ticket is None:
                return None
            row = new.get(seat.ticket) or self._there.get(seat.ticket)
            if row is not None and row.party.request == wish.request and set(row.party.players) == party:
                return Told(row.ticket, row.change, row.state, row.offer, row.match_id)
        return None

    def _admit(self, number: int, wish: Join, new: dict[int, TicketRow]) -> Told:
        """Make the ticket, unless something speaks against it."""
        players = [self._ids[one.name] for one in wish.members]
        if len(set(players)) < len(players):
            twice = next(one.name for one in wish.members if players.count(self._ids[one.name]) > 1)
            raise InputError(f"player {twice!r} is in the party under two names; accepted is each player once")
        for player in players:
            self._check_player(player)
        for one in wish.members:
            enemy = next((name for name in one.avoid if self._ids[name] in players), None)
            if enemy is not None:
                raise InputError(f"player {one.name!r} avoids {enemy!r}, who is in the same party")
        party = Party.of(wish, self._ids, self._level)
        new[number] = TicketRow(number, number, tickets.WAITING, self._now, self._now, party)
        self._seats.update(dict.fromkeys(players, Seat(self._ladder, number, None)))
        return Told(number, number, tickets.WAITING)

    def _check_player(self, player: int) -> None:
        name = self._names[player]
        if self._level[player].banned:
            raise ConflictError(f"player {name!r} is banned from the ladder; accepted are those who are not")
        if player in self._seats:
            self._refuse_seated(name, self._seats[player])
        if player in self._penalties:
            until = self._penalties[player]
            raise NotYetError(
                f"player {name!r} let others down and may queue again at {iso_time(until)}; accepted is a later time",
                until,
            )

    def _refuse_seated(self, name: str, seat: Seat) -> None:
        ladder = self._store.all("SELECT name FROM ladder WHERE ladder = ?", seat.ladder)[0][0]
        if seat.match_id is None:
            raise ConflictError(
                f"player {name!r} waits in ticket {seat.ticket} of ladder {ladder!r}; accepted are those who do not"
            )
        found = self._store.all(
            "SELECT expires_at FROM live WHERE ladder = ? AND match_id = ?", seat.ladder, seat.match_id
        )
        until = found[0][0] if found else self._now
        raise NotYetError(
            f"player {name!r} plays match {seat.match_id!r} of ladder {ladder!r} until it is reported, or until "
            f"{iso_time(until)}; accepted are those who do not",
            until,
        )

    def _write(self, new: dict[int, TicketRow], outcomes: dict[int, Outcome]) -> None:
        """Take the seats, then write the tickets. On another ladder the same player may have come first."""
        rows = [(player, self._ladder, number, None) for number, row in new.items() for player in row.party.players]
        if not rows:
            return
        columns = ("player", "ladder", "ticket", "match_id")
        self._store.rows.upsert(self._store.connection, live_schema.seat, columns, sorted(rows), same=True)
        there = seats(self._store, sorted(row[0] for row in rows))
        own = {
            (player, number)
            for player, seat in there.items()
            for number in [seat.ticket]
            if seat.ladder == self._ladder
        }
        lost = {number: player for player, _, number, _ in rows if (player, number) not in own}
        for number, player in lost.items():
            kept = [one for one in new.pop(number).party.players if (one, number) in own]
            sql = "DELETE FROM seat WHERE ladder = ? AND player IN ({}) RETURNING player"
            self._store.rows.among(self._store.connection, sql, (self._ladder,), kept)
            outcomes[number] = ConflictError(
                f"player {self._names[player]!r} took a seat on another ladder at this moment; accepted are those who "
                "wait or play nowhere else"
            )
        tickets.insert(self._store, self._ladder, list(new.values()))


def seats(store: Store, players: Sequence[int]) -> dict[int, Seat]:
    """Where those of these players wait or play who do."""
    sql = "SELECT player, ladder, ticket, match_id FROM seat WHERE player IN ({})"
    return {row[0]: Seat(*row[1:]) for row in store.rows.among(store.connection, sql, (), players)}
