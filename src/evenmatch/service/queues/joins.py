"""Joins: parties are checked and written in one batch, and refused individually."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import ConflictError, EvenmatchError, InputError, NotYetError
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import live_matches, penalties, seats, tickets
from evenmatch.ledger.tables.seats import Seat
from evenmatch.ledger.tables.tickets import TicketRow
from evenmatch.matchmaking import Policy, check_choices
from evenmatch.service import stored_queues
from evenmatch.service.queues import kept_filters
from evenmatch.service.queues.join_profiles import JoinProfiles
from evenmatch.service.queues.kept_filters import completed
from evenmatch.service.queues.parties import check, choices_of, party_of
from evenmatch.service.queues.requests import Join, RequestResult
from evenmatch.service.stored_queues import QueueSetup
from evenmatch.service.times import iso_time

Outcome = RequestResult | EvenmatchError


def check_queues(join: Join, setups: Mapping[str, QueueSetup]) -> None:
    """Raise UnknownNameError for an unknown queue, InputError for a party that does not fit a queue."""
    roles: set[str] = set()
    for name in join.queues:
        policy = stored_queues.find(setups, name).policy
        roles.update(policy.roles)
        if len(join.members) > policy.team_size:
            raise InputError(
                f"a party of {len(join.members)} is too large for queue {name!r}; its teams have {policy.team_size} "
                f"player{'s' if policy.team_size > 1 else ''}"
            )
    for member in join.members:
        for role in member.roles:
            if role not in roles:
                known = f"the roles are {', '.join(sorted(roles))}" if roles else "none of its queues has roles"
                raise InputError(f"player {member.name!r} offers the role {role!r}; {known}")
    check_choices(choices_of(join), policies_of(join, setups))


def policies_of(join: Join, setups: Mapping[str, QueueSetup]) -> dict[str, Policy]:
    """The policies of the queues of a join, by name."""
    return {name: setups[name].policy for name in join.queues}


class Joins:
    """The joins of one transaction, which holds the ladder's change lock and has called `share_names`."""

    def __init__(
        self,
        store: Store,
        levels: JoinProfiles,
        setups: Mapping[str, QueueSetup],
        ids: Mapping[str, int],
        now: int,
    ) -> None:
        self._store, self._ladder, self._setups, self._now = store, levels.ladder, setups, now
        self._levels, self._ids = levels, ids

    def join(self, joins: Mapping[int, Join]) -> dict[int, Outcome]:
        """Create tickets for the allowed joins; return results or errors, by the reserved ticket numbers."""
        names = {self._ids[member.name]: member.name for join in joins.values() for member in join.members}
        players = sorted(names)
        self._names = names
        self._seats = seats.read(self._store, players)
        self._penalties = penalties.read_waits(self._store, self._ladder, players, self._now)
        self._kept = kept_filters.read(self._store, self._ladder, players)
        self._level = self._levels.of(self._store, players, self._now)
        self._existing = tickets.read(self._store, self._ladder, self._maybe_repeated(joins))
        new: dict[int, TicketRow] = {}
        outcomes: dict[int, Outcome] = {}
        for number, join in joins.items():
            try:
                earlier = self._earlier_result(join, new)
                outcomes[number] = self._admit(number, join, new) if earlier is None else earlier
            except EvenmatchError as error:
                outcomes[number] = error
        self._write(new, outcomes)
        return outcomes

    def _maybe_repeated(self, joins: Mapping[int, Join]) -> list[int]:
        """The tickets on this ladder that a join with a request id may repeat."""
        players = [
            self._ids[member.name] for join in joins.values() if join.request is not None for member in join.members
        ]
        taken = [self._seats[player] for player in players if player in self._seats]
        return sorted({seat.ticket for seat in taken if seat.ladder == self._ladder and seat.ticket is not None})

    def _earlier_result(self, join: Join, new: Mapping[int, TicketRow]) -> RequestResult | None:
        """The ticket that the same party got with the same request id; None: there is none."""
        if join.request is None:
            return None
        party = {self._ids[member.name] for member in join.members}
        for player in party:
            seat = self._seats.get(player)
            if seat is None or seat.ladder != self._ladder or seat.ticket is None:
                return None
            row = new.get(seat.ticket) or self._existing.get(seat.ticket)
            if row is not None and row.party.request == join.request and set(row.party.players) == party:
                return RequestResult(row.ticket, row.change, row.state, row.offer, row.match_id)
        return None

    def _admit(self, number: int, join: Join, new: dict[int, TicketRow]) -> RequestResult:
        """Add a ticket to `new`. Raises an EvenmatchError if the party may not join."""
        players = [self._ids[member.name] for member in join.members]
        if len(set(players)) < len(players):
            twice = next(member.name for member in join.members if players.count(self._ids[member.name]) > 1)
            raise InputError(f"player {twice!r} is in the party under two names; name each player once")
        for player in players:
            self._check_player(player)
        for member in join.members:
            enemy = next((name for name in member.avoid if self._ids[name] in players), None)
            if enemy is not None:
                raise InputError(f"player {member.name!r} avoids {enemy!r}, who is in the same party")
        policies = policies_of(join, self._setups)
        join = completed(join, self._ids, self._kept, policies)
        if not self._kept.keys().isdisjoint(players):
            check(join)
            check_choices(choices_of(join), policies)
        party = party_of(join, self._ids, self._level)
        new[number] = TicketRow(number, number, tickets.WAITING, self._now, self._now, party)
        self._seats.update(dict.fromkeys(players, Seat(self._ladder, number, None)))
        return RequestResult(number, number, tickets.WAITING)

    def _check_player(self, player: int) -> None:
        name = self._names[player]
        if self._level[player].banned:
            raise ConflictError(f"player {name!r} is banned from the ladder and cannot queue")
        if player in self._seats:
            self._refuse_seated(name, self._seats[player])
        if player in self._penalties:
            until = self._penalties[player]
            raise NotYetError(
                f"player {name!r} declined, missed or left a match and may queue again at {iso_time(until)}", until
            )

    def _refuse_seated(self, name: str, seat: Seat) -> None:
        ladder = self._levels.view.head.name
        if seat.ladder != self._ladder:
            ladder = next(head.name for head in self._store.heads() if head.ladder == seat.ladder)
        if seat.match_id is None:
            raise ConflictError(
                f"player {name!r} waits in ticket {seat.ticket} of ladder {ladder!r} and cannot join again"
            )
        match = live_matches.read(self._store, seat.ladder, [seat.match_id]).get(seat.match_id)
        until = self._now if match is None else match.expires_at
        raise NotYetError(
            f"player {name!r} plays match {seat.match_id!r} of ladder {ladder!r} until it is reported, or until "
            f"{iso_time(until)} at the latest",
            until,
        )

    def _write(self, new: dict[int, TicketRow], outcomes: dict[int, Outcome]) -> None:
        """Take the seats, then write the tickets. A player may have taken a seat on another ladder meanwhile."""
        wanted = {
            player: Seat(self._ladder, number, None) for number, row in new.items() for player in row.party.players
        }
        if not wanted:
            return
        seats.insert_missing(self._store, wanted)
        taken = seats.read(self._store, sorted(wanted))
        own = {player for player, seat in wanted.items() if taken.get(player) == seat}
        lost = {number: player for number, row in new.items() for player in row.party.players if player not in own}
        for number, player in lost.items():
            seats.delete(self._store, self._ladder, own.intersection(new.pop(number).party.players))
            outcomes[number] = ConflictError(
                f"player {self._names[player]!r} has just joined a queue or match on another ladder and cannot join "
                "here too"
            )
        tickets.insert(self._store, self._ladder, list(new.values()))
