"""Joins: parties are checked and stored in one batch, and refused individually."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from evenmatch.errors import ConflictError, EvenmatchError, InputError, NotYetError
from evenmatch.ledger import ladder_rows, player_rows
from evenmatch.ledger.store import Store
from evenmatch.live import live_sql
from evenmatch.matchmaking import check_choices
from evenmatch.players.name_rule import NameRule
from evenmatch.queues import kept_filters, queue_sql, stored_queues
from evenmatch.queues.changes import QueueChanges
from evenmatch.queues.kept_filters import completed
from evenmatch.queues.parties import JoinProfiles, check, choices_of, party_of
from evenmatch.queues.playlists import LostSeatError
from evenmatch.queues.queue_sql import PlaylistTicket, Seat, TicketRow
from evenmatch.queues.requests import Join, RequestResult
from evenmatch.queues.stored_queues import QueueSetup
from evenmatch.times import iso_time

Outcome = RequestResult | EvenmatchError
Player = int | str  # the id of a player, or the name of one who is created when their ticket is stored


def admit(
    changes: QueueChanges, ladder: str, profiles: Mapping[str, JoinProfiles], joins: Mapping[int, Join]
) -> dict[int, Outcome]:
    """Create tickets for joins. Returns the result of each, or the error that refuses it, by index.

    changes   holds the change locks of all ladders in `profiles`; its transaction shares names
    ladder    the ladder of the joins;  profiles  its join profiles and those of the other ladders in playlists
    joins     by index; the ticket number is the first reserved change number of `changes` plus the index
    """
    setups = {
        name: changes.setups if name == ladder else stored_queues.read(changes.store, profile.ladder)
        for name, profile in profiles.items()
    }
    allowed: dict[int, Join] = {}
    outcomes: dict[int, Outcome] = {}
    for index, join in joins.items():
        queues = {ladder: join.queues, **join.playlist}
        try:
            for name in queues:
                profiles[name].view.settings.check_open(name)
            _check_queues(join, queues, setups)
        except EvenmatchError as error:
            outcomes[index] = error
        else:
            allowed[changes.first + index] = join
    if allowed:
        joined = _Joins(changes, ladder, profiles, setups, allowed).join()
        outcomes |= {number - changes.first: outcome for number, outcome in joined.items()}
    return outcomes


def _check_queues(
    join: Join, queues: Mapping[str, Sequence[str]], setups: Mapping[str, Mapping[str, QueueSetup]]
) -> None:
    """Raise UnknownNameError for an unknown queue, InputError for a party that does not fit a queue.

    queues  those of the join, by ladder;  setups  all queues of each ladder
    """
    policies = {
        name if ladder == next(iter(queues)) else f"{ladder}/{name}": stored_queues.find(setups[ladder], name).policy
        for ladder, names in queues.items()
        for name in names
    }
    for name, policy in policies.items():
        if len(join.members) > policy.team_size:
            raise InputError(
                f"a party of {len(join.members)} is too large for queue {name!r}; its teams have "
                f"{policy.team_size} player{'s' if policy.team_size > 1 else ''} (team_size)"
            )
    roles = {role for policy in policies.values() for role in policy.roles}
    for member in join.members:
        for role in member.roles:
            if role not in roles:
                known = f"the roles are {', '.join(sorted(roles))}" if roles else "none of its queues has roles"
                raise InputError(f"player {member.name!r} offers the role {role!r}; {known}")
    check_choices(choices_of(join), policies)


class _Entrance:
    """A ladder that parties join, and what it knows of their players. ids: of the members who exist, by name."""

    def __init__(
        self,
        store: Store,
        name: str,
        profile: JoinProfiles,
        setups: Mapping[str, QueueSetup],
        ids: Mapping[str, int],
        now: int,
    ) -> None:
        self._store, self._setups, self._now, self._ids = store, setups, now, ids
        self.name, self.ladder = name, profile.ladder
        players = sorted(set(ids.values()))
        self._penalties = queue_sql.read_penalty_ends(store, self.ladder, players, now)
        self._playing = queue_sql.read_ladder_seats(store, self.ladder, players)
        self._kept = kept_filters.read(store, self.ladder, players)
        self.levels, self.newcomer = profile.of(store, players, now), profile.newcomer(now)
        self._ban_ends = {player: ban.until for player, ban in profile.plan.banned(now).items()}

    def completed(self, join: Join, queues: tuple[str, ...]) -> Join:
        """The join to queues of this ladder, with its players' stored filters. Raises EvenmatchError."""
        players = {member.name: self._ids[member.name] for member in join.members if member.name in self._ids}
        for name, player in players.items():
            self._check_player(name, player)
        for name in queues:
            self._setups[name].check_open()
        policies = {name: self._setups[name].policy for name in queues}
        join = completed(join, self._ids, self._kept, policies)
        if not self._kept.keys().isdisjoint(players.values()):
            check(join)
            check_choices(choices_of(join), policies)
        return join

    def _check_player(self, name: str, player: int) -> None:
        if player in self._playing:
            raise _playing(self._store, name, self.name, self.ladder, self._playing[player], self._now)
        if self.levels[player].banned:
            until = self._ban_ends.get(player)
            if until is None:
                raise ConflictError(f"player {name!r} is banned from ladder {self.name!r} and cannot queue")
            raise NotYetError(
                f"player {name!r} is banned from ladder {self.name!r} and may queue again at {iso_time(until)}", until
            )
        if player in self._penalties:
            until = self._penalties[player]
            raise NotYetError(
                f"player {name!r} declined, missed or left a match and may queue again at {iso_time(until)} "
                "(penalty of the queue)",
                until,
            )


class _NewTicket(NamedTuple):
    """A ticket to be stored. join: completed for its ladder;  queues: of that ladder."""

    entrance: _Entrance
    ticket: int
    join: Join
    queues: tuple[str, ...]


class _Joins:
    """Joins that the queues allow; see `admit`. joins: by their reserved ticket numbers."""

    def __init__(
        self,
        changes: QueueChanges,
        ladder: str,
        profiles: Mapping[str, JoinProfiles],
        setups: Mapping[str, Mapping[str, QueueSetup]],
        joins: Mapping[int, Join],
    ) -> None:
        self._store, self._ladder, self._now, self._joins = changes.store, changes.ladder, changes.now, joins
        self._ids = player_rows.ids_of(self._store, sorted(_names(joins.values())))
        members = list(dict.fromkeys(member.name for join in joins.values() for member in join.members))
        known = {name: self._ids[name] for name in members if name in self._ids}
        used = [ladder, *sorted({name for join in joins.values() for name in join.playlist} - {ladder})]
        self._rules = {
            name: NameRule(self._store, self._store.head(name), settings, members)
            for name in used
            if (settings := profiles[name].view.settings).names == "refuse"
        }
        self._entrances = {
            name: _Entrance(self._store, name, profiles[name], setups[name], known, self._now) for name in used
        }
        self._own = self._entrances[ladder]
        self._next = {name: changes.locks[profiles[name].ladder] for name in used}  # ticket numbers for playlists
        seats = queue_sql.read_seats(self._store, sorted(set(known.values())))
        self._seats = dict[Player, Seat](seats.items())
        self._existing = self._maybe_repeated()
        self._new: dict[int, list[_NewTicket]] = {}  # by number; the ticket of this ladder comes first
        self._outcomes: dict[int, Outcome] = {}

    def join(self) -> dict[int, Outcome]:
        """Create the tickets; return results or errors by number. Raises LostSeatError."""
        for number, join in self._joins.items():
            try:
                self._outcomes[number] = self._earlier_result(join) or self._admit(number, join)
            except EvenmatchError as error:
                self._outcomes[number] = error
        if self._new:
            self._write()
        return self._outcomes

    def _players(self, join: Join) -> list[Player]:
        return [self._ids.get(member.name, member.name) for member in join.members]

    def _maybe_repeated(self) -> dict[PlaylistTicket, TicketRow]:
        """The tickets that a join with a request id may repeat, on any ladder of its playlist."""
        numbers: defaultdict[int, set[int]] = defaultdict(set)
        for join in self._joins.values():
            if join.request is None:
                continue
            known = {self._ladder, *(self._entrances[name].ladder for name in join.playlist)}
            for seat in map(self._seats.get, self._players(join)):
                if seat is not None and seat.ticket is not None and seat.ladder in known:
                    numbers[seat.ladder].add(seat.ticket)
        return {
            PlaylistTicket(ladder, number): row
            for ladder, listed in numbers.items()
            for number, row in queue_sql.read_tickets(self._store, ladder, sorted(listed)).items()
        }

    def _earlier_result(self, join: Join) -> Outcome | None:
        """The earlier result for the same party and request id; None: there is none."""
        players = set(self._players(join))
        seats = {self._seats.get(player) for player in players}
        seat = seats.pop() if len(seats) == 1 else None
        if join.request is None or seat is None or seat.ticket is None:
            return None
        if seat.ladder == self._ladder and seat.ticket in self._new:
            first = self._joins[seat.ticket]
            is_same = first.request == join.request and set(self._players(first)) == players
            return self._outcomes[seat.ticket] if is_same else None
        row = self._existing.get(PlaylistTicket(seat.ladder, seat.ticket))
        if row is None or row.party.request != join.request or set(row.party.players) != players:
            return None
        if seat.ladder != self._ladder:  # the playlist has an offer on that ladder
            own = [other.ticket for other in row.playlist if other.ladder == self._ladder]
            row = queue_sql.read_tickets(self._store, self._ladder, own).get(own[0]) if own else None
        if row is None:
            return None
        names = {entrance.ladder: name for name, entrance in self._entrances.items() if entrance is not self._own}
        others = {names[entry.ladder]: entry.ticket for entry in row.playlist if entry.ladder in names}
        return RequestResult(row.ticket, row.change, row.state, row.offer, row.match_id, others)

    def _admit(self, number: int, join: Join) -> RequestResult:
        """Add the tickets of a party to `_new`. Raises EvenmatchError if the party may not join one of the ladders."""
        players = self._players(join)
        if len(set(players)) < len(players):
            twice = next(player for player in players if players.count(player) > 1)
            name = next(member.name for member in join.members if self._ids.get(member.name) == twice)
            raise InputError(f"player {name!r} is in the party under two names; name each player once")
        for member, player in zip(join.members, players, strict=True):
            if player in self._seats:
                self._refuse_seated(member.name, self._seats[player], join.readable)
        for member in join.members:
            enemy = next((name for name in member.avoid if self._ids.get(name, name) in players), None)
            if enemy is not None:
                raise InputError(f"player {member.name!r} avoids {enemy!r}, who is in the same party")
        queues = {self._own.name: join.queues, **join.playlist}
        joins = {name: self._entrances[name].completed(join, own) for name, own in queues.items()}
        for name in self._rules.keys() & queues.keys():
            self._rules[name].check([member.name for member in join.members])
        self._new[number] = tickets = [_NewTicket(self._own, number, joins[self._own.name], join.queues)]
        for name, own in join.playlist.items():
            tickets.append(_NewTicket(self._entrances[name], self._next[name], joins[name], own))
            self._next[name] += 1
        self._seats.update(dict.fromkeys(players, Seat(self._ladder, number, None)))
        others = {new.entrance.name: new.ticket for new in tickets[1:]}
        return RequestResult(number, number, queue_sql.WAITING, playlist=others)

    def _refuse_seated(self, name: str, seat: Seat, readable: Collection[str] | None) -> None:
        ladder = ladder_rows.ladder_names(self._store, [seat.ladder])[seat.ladder]
        if seat.ladder != self._ladder and readable is not None and ladder not in readable:
            raise ConflictError(f"player {name!r} waits or plays on another ladder and cannot join")
        if seat.match_id is None:
            raise ConflictError(
                f"player {name!r} waits in ticket {seat.ticket} of ladder {ladder!r} and cannot join again"
            )
        raise _playing(self._store, name, ladder, seat.ladder, seat.match_id, self._now)

    def _write(self) -> None:
        """Create the new players, take the seats, then write the tickets.

        Raises LostSeatError if a player has taken a seat on another ladder in the meantime.
        """
        names = {member.name for number in self._new for member in self._joins[number].members}
        self._ids |= player_rows.create(self._store, names - self._ids.keys())[0]
        wanted = {
            self._ids[member.name]: Seat(self._ladder, number, None)
            for number in self._new
            for member in self._joins[number].members
        }
        queue_sql.insert_missing_seats(self._store, wanted)
        if queue_sql.read_seats(self._store, sorted(wanted)) != wanted:
            raise LostSeatError
        rows: defaultdict[int, list[TicketRow]] = defaultdict(list)
        for tickets in self._new.values():
            entries = tuple(PlaylistTicket(new.entrance.ladder, new.ticket) for new in tickets)
            for new in tickets:
                party = party_of(new.join, new.queues, self._ids, new.entrance.levels, new.entrance.newcomer)
                row = TicketRow(new.ticket, new.ticket, queue_sql.WAITING, self._now, self._now, party)
                row.playlist = entries if len(entries) > 1 else ()
                rows[new.entrance.ladder].append(row)
        for ladder in sorted(rows):
            queue_sql.insert_tickets(self._store, ladder, rows[ladder])


def _playing(store: Store, name: str, ladder: str, number: int, match_id: str, now: int) -> NotYetError:
    """The error for a player of a live match. number: the id of its ladder."""
    match = live_sql.read(store, number, [match_id]).get(match_id)
    until = now if match is None else match.expires_at
    return NotYetError(
        f"player {name!r} plays match {match_id!r} of ladder {ladder!r} until it is reported, or until "
        f"{iso_time(until)} at the latest",
        until,
    )


def _names(joins: Iterable[Join]) -> set[str]:
    """The names of all members of these parties and of the players that they avoid."""
    return {name for join in joins for member in join.members for name in (member.name, *member.avoid)}
