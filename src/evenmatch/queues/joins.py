"""Joins: parties are checked and written in one batch, and refused individually."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from evenmatch.errors import ConflictError, EvenmatchError, InputError, NotYetError
from evenmatch.ledger import ladder_rows, player_rows
from evenmatch.ledger.store import Store
from evenmatch.live import live_sql
from evenmatch.matchmaking import Policy, check_choices
from evenmatch.players.name_rule import NameRule
from evenmatch.queues import kept_filters, queue_sql, stored_queues
from evenmatch.queues.changes import QueueChanges
from evenmatch.queues.kept_filters import completed
from evenmatch.queues.parties import JoinProfiles, check, choices_of, party_of, with_admitted
from evenmatch.queues.playlists import LostSeatError
from evenmatch.queues.queue_sql import Party, PlaylistTicket, Seat, TicketRow
from evenmatch.queues.requests import Join, RequestResult
from evenmatch.queues.stored_queues import QueueSetup
from evenmatch.times import iso_time

Outcome = RequestResult | EvenmatchError


def admit(
    changes: QueueChanges, ladder: str, profiles: Mapping[str, JoinProfiles], joins: Mapping[int, Join]
) -> dict[int, Outcome]:
    """Create tickets for joins; return for each its result, or why it is refused, by its index.

    changes   holds the change locks of all ladders in `profiles`; its transaction shares names
    ladder    the ladder of the joins;  profiles  its join profiles and those of the other ladders in playlists
    joins     by index: the ticket numbers are the first reserved change number of `changes` plus the index
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
            check_queues(join, queues, setups)
        except EvenmatchError as error:
            outcomes[index] = error
        else:
            allowed[changes.first + index] = join
    if allowed:
        joined = Joins(changes, ladder, profiles, setups, allowed).join()
        outcomes |= {number - changes.first: outcome for number, outcome in joined.items()}
    return outcomes


def check_queues(
    join: Join, queues: Mapping[str, Sequence[str]], setups: Mapping[str, Mapping[str, QueueSetup]]
) -> None:
    """Raise UnknownNameError for an unknown queue, InputError for a party that does not fit a queue.

    queues  those of the join, by ladder;  setups  all queues of each ladder
    """
    roles: set[str] = set()
    for ladder, names in queues.items():
        for name in names:
            policy = stored_queues.find(setups[ladder], name).policy
            roles.update(policy.roles)
            if len(join.members) > policy.team_size:
                raise InputError(
                    f"a party of {len(join.members)} is too large for queue {name!r}; its teams have "
                    f"{policy.team_size} player{'s' if policy.team_size > 1 else ''} (team_size)"
                )
    for member in join.members:
        for role in member.roles:
            if role not in roles:
                known = f"the roles are {', '.join(sorted(roles))}" if roles else "none of its queues has roles"
                raise InputError(f"player {member.name!r} offers the role {role!r}; {known}")
    policies: dict[str, Policy] = {}
    for ladder, names in queues.items():
        own = policies_of(names, setups[ladder])
        policies |= {f"{ladder}/{name}": policy for name, policy in own.items()} if policies else own
    check_choices(choices_of(join), policies)


def policies_of(names: Sequence[str], setups: Mapping[str, QueueSetup]) -> dict[str, Policy]:
    """The policies of these queues, by name."""
    return {name: setups[name].policy for name in names}


class _Entrance:
    """One ladder, and its rules for joining players.

    names  players by id;  first  the first of the ticket numbers reserved for playlists
    """

    def __init__(
        self,
        store: Store,
        name: str,
        profile: JoinProfiles,
        setups: Mapping[str, QueueSetup],
        names: Mapping[int, str],
        now: int,
        first: int,
    ) -> None:
        self._store, self._setups, self._now = store, setups, now
        self.name, self.ladder, self._next = name, profile.ladder, first
        self._names = names
        players = _created(names)
        self._penalties = queue_sql.read_penalty_ends(store, self.ladder, players, now)
        self._playing = queue_sql.read_ladder_seats(store, self.ladder, players)
        self._kept = kept_filters.read(store, self.ladder, players)
        self._level = profile.of(store, sorted(names), now)

    def party(self, join: Join, queues: tuple[str, ...], ids: Mapping[str, int]) -> Party:
        """The party as it waits in queues of this ladder. Raises an EvenmatchError if it may not."""
        players = [ids[member.name] for member in join.members]
        for player in players:
            self._check_player(player)
        policies = policies_of(queues, self._setups)
        join = completed(join, ids, self._kept, policies)
        if not self._kept.keys().isdisjoint(players):
            check(join)
            check_choices(choices_of(join), policies)
        return party_of(join, queues, ids, self._level)

    def _check_player(self, player: int) -> None:
        name = self._names[player]
        if player in self._playing:
            raise _playing(self._store, name, self.name, self.ladder, self._playing[player], self._now)
        if self._level[player].banned:
            raise ConflictError(f"player {name!r} is banned from ladder {self.name!r} and cannot queue")
        if player in self._penalties:
            until = self._penalties[player]
            raise NotYetError(
                f"player {name!r} declined, missed or left a match and may queue again at {iso_time(until)} "
                "(penalty of the queue)",
                until,
            )

    def next_entry(self) -> PlaylistTicket:
        """A new ticket number of this ladder."""
        self._next += 1
        return PlaylistTicket(self.ladder, self._next - 1)


class Joins:
    """Joins that are allowed by the queues, see `admit`; joins: by their reserved ticket numbers.

    Players come into being only when their party is written: until then, a name that is not known has a negative id.
    """

    def __init__(
        self,
        changes: QueueChanges,
        ladder: str,
        profiles: Mapping[str, JoinProfiles],
        setups: Mapping[str, Mapping[str, QueueSetup]],
        joins: Mapping[int, Join],
    ) -> None:
        self._store, self._name, self._now, self._joins = changes.store, ladder, changes.now, joins
        self._ladder = changes.ladder
        self._ids = player_rows.ids_of(self._store, sorted(_names(joins.values())))
        members = list(dict.fromkeys(member.name for join in joins.values() for member in join.members))
        self._unknown = [name for name in members if name not in self._ids]
        self._ids |= {name: -number for number, name in enumerate(self._unknown, 1)}
        self._names = {self._ids[member.name]: member.name for join in joins.values() for member in join.members}
        used = {ladder, *(name for join in joins.values() for name in join.playlist)}
        self._rules = {
            name: NameRule(self._store, self._store.head(name), settings, members)
            for name in sorted(used)
            if (settings := profiles[name].view.settings).names == "refuse"
        }
        self._entrances = {
            name: _Entrance(
                self._store,
                name,
                profiles[name],
                setups[name],
                self._names,
                self._now,
                changes.locks[profiles[name].ladder],
            )
            for name in sorted(used)
        }
        self._seats = queue_sql.read_seats(self._store, _created(self._names))
        self._existing = self._maybe_repeated()
        self._new: dict[int, dict[PlaylistTicket, TicketRow]] = {}  # by number; the ticket of this ladder comes first

    def join(self) -> dict[int, Outcome]:
        """Create the tickets; return results or errors by number."""
        outcomes: dict[int, Outcome] = {}
        for number, join in self._joins.items():
            try:
                earlier = self._earlier_result(join)
                outcomes[number] = self._admit(number, join) if earlier is None else earlier
            except EvenmatchError as error:
                outcomes[number] = error
        self._write(outcomes)
        return outcomes

    def _maybe_repeated(self) -> dict[PlaylistTicket, TicketRow]:
        """The tickets that a join with a request id may repeat, and for playlists those of any of their ladders."""
        numbers: defaultdict[int, set[int]] = defaultdict(set)
        for join in self._joins.values():
            if join.request is None:
                continue
            known = {self._ladder, *(self._entrances[name].ladder for name in join.playlist)}
            taken = [self._seats.get(self._ids[member.name]) for member in join.members]
            for seat in taken:
                if seat is not None and seat.ticket is not None and seat.ladder in known:
                    numbers[seat.ladder].add(seat.ticket)
        return {
            PlaylistTicket(ladder, number): row
            for ladder, listed in numbers.items()
            for number, row in queue_sql.read_tickets(self._store, ladder, sorted(listed)).items()
        }

    def _earlier_result(self, join: Join) -> RequestResult | None:
        """The ticket that the same party got with the same request id; None: there is none."""
        if join.request is None:
            return None
        party = {self._ids[member.name] for member in join.members}
        taken = [self._seats.get(player) for player in party]
        entries = {PlaylistTicket(seat.ladder, seat.ticket) for seat in taken if seat is not None and seat.ticket}
        if len(entries) != 1 or None in taken:
            return None
        entry = entries.pop()
        rows = {entry: row for listed in self._new.values() for entry, row in listed.items()} | self._existing
        row = rows.get(entry)
        if row is None or row.party.request != join.request or set(row.party.players) != party:
            return None
        if entry.ladder != self._ladder:  # the playlist has an offer there
            own = [other.ticket for other in row.playlist if other.ladder == self._ladder]
            row = queue_sql.read_tickets(self._store, self._ladder, own).get(own[0]) if own else None
        return None if row is None else self._result(row)

    def _admit(self, number: int, join: Join) -> RequestResult:
        """Add the tickets of a party to `new`. Raises an EvenmatchError if it may not join one of the ladders."""
        players = [self._ids[member.name] for member in join.members]
        if len(set(players)) < len(players):
            twice = next(member.name for member in join.members if players.count(self._ids[member.name]) > 1)
            raise InputError(f"player {twice!r} is in the party under two names; name each player once")
        for player in players:
            if player in self._seats:
                self._refuse_seated(self._names[player], self._seats[player], join.readable)
        for member in join.members:
            enemy = next((name for name in member.avoid if self._ids.get(name) in players), None)
            if enemy is not None:
                raise InputError(f"player {member.name!r} avoids {enemy!r}, who is in the same party")
        parties = {self._name: self._entrances[self._name].party(join, join.queues, self._ids)}
        for name, queues in join.playlist.items():
            parties[name] = self._entrances[name].party(join, queues, self._ids)
        for name in self._rules.keys() & parties.keys():
            self._rules[name].check([member.name for member in join.members])
        entries = [PlaylistTicket(self._ladder, number)]
        entries += [self._entrances[name].next_entry() for name in join.playlist]
        playlist = tuple(entries) if join.playlist else ()
        self._new[number] = rows = {}
        for entry, party in zip(entries, parties.values(), strict=True):
            row = TicketRow(entry.ticket, entry.ticket, queue_sql.WAITING, self._now, self._now, party)
            row.playlist = playlist
            rows[entry] = row
        self._seats.update(dict.fromkeys(players, Seat(self._ladder, number, None)))
        return self._result(rows[entries[0]])

    def _result(self, row: TicketRow) -> RequestResult:
        names = {entrance.ladder: name for name, entrance in self._entrances.items()}
        named = [entry for entry in row.playlist if entry.ladder != self._ladder and entry.ladder in names]
        others = {names[entry.ladder]: entry.ticket for entry in named}
        return RequestResult(row.ticket, row.change, row.state, row.offer, row.match_id, others)

    def _refuse_seated(self, name: str, seat: Seat, readable: Collection[str] | None) -> None:
        ladder = (
            self._name
            if seat.ladder == self._ladder
            else ladder_rows.ladder_names(self._store, [seat.ladder])[seat.ladder]
        )
        if seat.ladder != self._ladder and readable is not None and ladder not in readable:
            raise ConflictError(f"player {name!r} waits or plays on another ladder and cannot join")
        if seat.match_id is None:
            raise ConflictError(
                f"player {name!r} waits in ticket {seat.ticket} of ladder {ladder!r} and cannot join again"
            )
        raise _playing(self._store, name, ladder, seat.ladder, seat.match_id, self._now)

    def _write(self, outcomes: dict[int, Outcome]) -> None:
        """Create the new players, take the seats, then write the tickets.

        A player may have taken a seat on another ladder meanwhile. Raises LostSeatError if their party has new players.
        """
        created = self._create_players()
        players = {number: next(iter(rows.values())).party.players for number, rows in self._new.items()}
        wanted = {player: Seat(self._ladder, number, None) for number, party in players.items() for player in party}
        if not wanted:
            return
        queue_sql.insert_missing_seats(self._store, wanted)
        taken = queue_sql.read_seats(self._store, sorted(wanted))
        own = {player for player, seat in wanted.items() if taken.get(player) == seat}
        lost = {number: player for number, party in players.items() for player in party if player not in own}
        if any(not created.isdisjoint(players[number]) for number in lost):
            raise LostSeatError
        for number, player in lost.items():
            queue_sql.delete_seats(self._store, self._ladder, own.intersection(players[number]))
            del self._new[number]
            outcomes[number] = ConflictError(
                f"player {self._names[player]!r} has just joined a queue or match on another ladder and cannot join "
                "here too"
            )
        rows: defaultdict[int, list[TicketRow]] = defaultdict(list)
        for listed in self._new.values():
            for entry, row in listed.items():
                rows[entry.ladder].append(row)
        for ladder in sorted(rows):
            queue_sql.insert_tickets(self._store, ladder, rows[ladder])

    def _create_players(self) -> set[int]:
        """Create the unknown members of the parties that will be written, and put their ids into the tickets."""
        rows = [row for listed in self._new.values() for row in listed.values()]
        names = {name for row in rows for name in row.party.names}.intersection(self._unknown)
        admitted, _ = player_rows.create(self._store, names)
        self._names |= {player: name for name, player in admitted.items()}
        for row in rows:
            row.party = with_admitted(row.party, admitted)
        return set(admitted.values())


def _playing(store: Store, name: str, ladder: str, number: int, match_id: str, now: int) -> NotYetError:
    """The error for a player of a live match. number: the id of its ladder."""
    match = live_sql.read(store, number, [match_id]).get(match_id)
    until = now if match is None else match.expires_at
    return NotYetError(
        f"player {name!r} plays match {match_id!r} of ladder {ladder!r} until it is reported, or until "
        f"{iso_time(until)} at the latest",
        until,
    )


def _created(players: Iterable[int]) -> list[int]:
    """The players with an id of the database: a name that is not known has a negative one, and no rows."""
    return sorted(player for player in players if player > 0)


def _names(joins: Iterable[Join]) -> set[str]:
    """The names of all members of these parties, and of the players they avoid."""
    return {name for join in joins for member in join.members for name in (member.name, *member.avoid)}
