"""The tables of a ladder's queues: queues and experiments, tickets, offers, seats, penalties, filters, leases.

Writers of tickets, offers and seats hold the ladder's change lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypedDict

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Row, Store

TicketState = Literal["waiting", "offered", "elsewhere", "matched", "gone"]
WAITING: Final = "waiting"
OFFERED: Final = "offered"
ELSEWHERE: Final = "elsewhere"
MATCHED: Final = "matched"
GONE: Final = "gone"
TICKETS_OPEN = (WAITING, OFFERED, ELSEWHERE)


class StoredMember(TypedDict):
    """A waiting player. For the fields that are not listed see matchmaking.Member.

    name     as sent;  rating, percentile  at the time of joining
    avoid    player ids;  avoid_unknown  names to avoid that no player had
    regions  chosen regions; empty: any;  max_ping  None: no limit
    """

    name: str
    id: int
    rating: float
    percentile: float
    newcomer: bool
    within: float
    loose: bool
    roles: list[str]
    ping: dict[str, float]
    max_ping: float | None
    regions: list[str]
    attributes: dict[str, list[str]]
    vetoes: list[str]
    avoid: list[int]
    avoid_unknown: list[str]


@dataclass(frozen=True, slots=True)
class Party:
    """The party of a ticket, and the queues in which it waits. request: an id chosen by the sender; None: none."""

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
    """A stored ticket. offer: set in state offered; match_id: set in state matched; ended: why it is gone, in words."""

    ticket: int
    change: int
    state: TicketState
    queued_at: int
    seen_at: int
    party: Party
    offer: int | None = None
    match_id: str | None = None
    ended: str | None = None
    playlist: Playlist = ()


class TicketUpdate(NamedTuple):
    """The columns of a ticket that QueueState follows. party: None unless the ticket waits."""

    ticket: int
    change: int
    queued_at: int
    seen_at: int
    party: Party | None


class TicketMove(NamedTuple):
    """The new state of a ticket; ended: the reason, in words."""

    state: TicketState
    offer: int | None = None
    match_id: str | None = None
    ended: str | None = None


_TICKETS_COLUMNS = (
    "ticket",
    "change",
    "state",
    "queued_at",
    "seen_at",
    "body",
    "offer",
    "match_id",
    "ended",
    "playlist",
)
_TICKET = f"SELECT {', '.join(_TICKETS_COLUMNS)} FROM ticket WHERE ladder = ?"


def read_tickets(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, TicketRow]:
    """The existing tickets among these numbers, by number."""
    rows = store.among(f"{_TICKET} AND ticket IN ({{}})", (ladder,), tickets)
    return {row[0]: _ticket(row) for row in rows}


def read_changed_tickets(store: Store, ladder: int, after: int) -> list[TicketUpdate]:
    """Every ticket with a later change number, in order of changes."""
    sql = (
        "SELECT ticket, change, queued_at, seen_at, CASE WHEN state = ? THEN body END FROM ticket "
        "WHERE ladder = ? AND change > ? ORDER BY change, ticket"
    )
    return [TicketUpdate(*row)._replace(party=_party(row[4])) for row in store.all(sql, WAITING, ladder, after)]


def read_waiting_tickets(store: Store, ladder: int) -> list[TicketUpdate]:
    """Every waiting ticket, in order of numbers. Reads all rows."""
    sql = "SELECT ticket, change, queued_at, seen_at, body FROM ticket WHERE ladder = ? AND state = ? ORDER BY ticket"
    return [TicketUpdate(*row)._replace(party=_party(row[4])) for row in store.all(sql, ladder, WAITING)]


def _party(body: str | None) -> Party | None:
    return None if body is None else Party.read(body)


def count_tickets_since(store: Store, ladder: int, since: int) -> int:
    """The number of tickets, in any state, that were queued at or after a time."""
    sql = "SELECT COUNT(*) FROM ticket WHERE ladder = ? AND queued_at >= ?"
    return int(store.all(sql, ladder, since)[0][0])


def read_tickets_since(store: Store, ladder: int, since: int, most: int) -> tuple[list[TicketUpdate], int]:
    """Tickets in any state that were queued at or after a time, in order of numbers, and the sampling interval.

    most  about how many to read; if there are more, only tickets whose numbers are multiples of the interval are read
    """
    every = max(1, -(-count_tickets_since(store, ladder, since) // most))
    sql = (
        "SELECT ticket, change, queued_at, seen_at, body FROM ticket WHERE ladder = ? AND queued_at >= ? "
        "AND ticket / ? * ? = ticket ORDER BY ticket"
    )
    rows = store.all(sql, ladder, since, every, every)
    return [TicketUpdate(*row)._replace(party=_party(row[4])) for row in rows], every


def read_open_tickets(store: Store, ladder: int) -> list[TicketRow]:
    """Every ticket that waits or has an offer, on this or another ladder, in order of numbers. Reads all rows."""
    return [
        _ticket(row) for row in store.all(f"{_TICKET} AND state IN (?, ?, ?) ORDER BY ticket", ladder, *TICKETS_OPEN)
    ]


def read_playlists(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, TicketRow]:
    """The tickets among these that belong to a playlist, by number."""
    rows = store.among(f"{_TICKET} AND playlist IS NOT NULL AND ticket IN ({{}})", (ladder,), tickets)
    return {row[0]: _ticket(row) for row in rows}


def read_ticket_states(store: Store, entries: Iterable[PlaylistTicket]) -> dict[PlaylistTicket, TicketState]:
    """The states of the existing tickets among these, on any ladders."""
    by_ladder: dict[int, list[int]] = {}
    for entry in sorted(set(entries)):
        by_ladder.setdefault(entry.ladder, []).append(entry.ticket)
    sql = "SELECT ticket, state FROM ticket WHERE ladder = ? AND ticket IN ({})"
    return {
        PlaylistTicket(ladder, ticket): state
        for ladder, numbers in by_ladder.items()
        for ticket, state in store.among(sql, (ladder,), numbers)
    }


def insert_tickets(store: Store, ladder: int, rows: Sequence[TicketRow]) -> None:
    """Insert waiting tickets. The caller has taken the seats of their players."""
    columns = ("ladder", "ticket", "change", "state", "queued_at", "seen_at", "body", "playlist")
    listed = [
        (
            *(ladder, row.ticket, row.change, row.state, row.queued_at, row.seen_at, row.party.write()),
            json.dumps(row.playlist) if row.playlist else None,
        )
        for row in rows
    ]
    store.insert(live_schema.ticket, columns, listed)


def move_tickets(store: Store, ladder: int, moves: Mapping[int, TicketMove], change: int) -> None:
    """Set the new states of tickets, by number, with a change number."""
    rows = [(ladder, ticket, *to, change) for ticket, to in moves.items()]
    store.update(live_schema.ticket, ("ladder", "ticket"), (*TicketMove._fields, "change"), rows)


def set_party(store: Store, ladder: int, ticket: int, party: Party, change: int) -> None:
    """Replace the party of a ticket."""
    sql = "UPDATE ticket SET body = ?, change = ? WHERE ladder = ? AND ticket = ?"
    store.run(sql, party.write(), change, ladder, ticket)


def read_waiting_among(store: Store, ladder: int, tickets: Sequence[int]) -> set[int]:
    """The numbers of the waiting tickets among these."""
    sql = "SELECT ticket FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return {row[0] for row in store.among(sql, (ladder, WAITING), tickets)}


def read_heartbeats(store: Store, ladder: int, tickets: Sequence[int]) -> dict[int, int]:
    """The time of the last heartbeat of each waiting ticket among these, by number."""
    sql = "SELECT ticket, seen_at FROM ticket WHERE ladder = ? AND state = ? AND ticket IN ({})"
    return dict(store.among(sql, (ladder, WAITING), tickets))


def set_heartbeats(store: Store, ladder: int, tickets: Sequence[int], now: int) -> None:
    """Write a heartbeat of each ticket, without a change number. Requires the ladder's change lock."""
    store.run_among("UPDATE ticket SET seen_at = ? WHERE ladder = ? AND ticket IN ({})", (now, ladder), tickets)


def postpone_tickets(store: Store, ladder: int, since: int | None, now: int, change: int) -> None:
    """Shift the queueing times of open tickets so that the time from `since` to `now` does not count as waiting.

    since  None: no waiting time counts before now
    """
    sql = (
        "UPDATE ticket SET queued_at = CASE WHEN queued_at > ? THEN ? ELSE queued_at + ? END, change = ? "
        "WHERE ladder = ? AND state IN (?, ?, ?) AND queued_at < ?"
    )
    until = -1 if since is None else since
    store.run(sql, until, now, now - until, change, ladder, *TICKETS_OPEN, now)


def delete_tickets_before(store: Store, ladder: int, before: int, most: int = 2000) -> None:
    """Delete finished tickets that were queued before a time, the oldest first, at most `most`."""
    sql = "SELECT ticket FROM ticket WHERE ladder = ? AND state IN (?, ?) AND queued_at < ? ORDER BY ticket LIMIT ?"
    old = [row[0] for row in store.all(sql, ladder, MATCHED, GONE, before, most)]
    store.run_among("DELETE FROM ticket WHERE ladder = ? AND ticket IN ({})", (ladder,), old)


def _ticket(row: Row) -> TicketRow:
    ticket, change, state, queued_at, seen_at, body, offer, match_id, ended, listed = row
    playlist = () if listed is None else tuple(PlaylistTicket(*entry) for entry in json.loads(listed))
    return TicketRow(ticket, change, state, queued_at, seen_at, Party.read(body), offer, match_id, ended, playlist)


class StoredExperiment(NamedTuple):
    """A stored experiment. number: of the change that started it; stopped_at: None while it runs; body: JSON text."""

    number: int
    queue: str
    started_at: int
    stopped_at: int | None
    body: str


_QUEUE_EXPERIMENTS_COLUMNS = ("experiment", "queue", "started_at", "stopped_at", "body")


def insert_experiment(store: Store, ladder: int, experiment: StoredExperiment) -> None:
    """Insert an experiment."""
    store.insert(live_schema.queue_experiment, ("ladder", *_QUEUE_EXPERIMENTS_COLUMNS), [(ladder, *experiment)])


def stop_experiment(store: Store, ladder: int, queue: str, now: int) -> None:
    """End the running experiment of a queue, if there is one."""
    sql = "UPDATE queue_experiment SET stopped_at = ? WHERE ladder = ? AND queue = ? AND stopped_at IS NULL"
    store.run(sql, now, ladder, queue)


def read_experiments(store: Store, ladder: int, queue: str, since: int, until: int) -> list[StoredExperiment]:
    """The experiments of a queue that ran at some time between `since` and `until`, latest first."""
    sql = (
        f"SELECT {', '.join(_QUEUE_EXPERIMENTS_COLUMNS)} FROM queue_experiment "
        "WHERE ladder = ? AND queue = ? AND started_at < ? "
        "AND (stopped_at IS NULL OR stopped_at > ?) ORDER BY experiment DESC"
    )
    return [StoredExperiment(*row) for row in store.all(sql, ladder, queue, until, since)]


class StoredQueue(NamedTuple):
    """A stored queue. policy, rules: JSON texts;  change, paused: as in QueueSetup."""

    name: str
    change: int
    policy: str
    rules: str
    paused: str | None


def read_queues(store: Store, ladder: int) -> list[tuple[StoredQueue, StoredExperiment | None]]:
    """The queues of a ladder, ordered by name, each with its running experiment."""
    sql = (
        "SELECT q.queue, q.change, q.policy, q.rules, q.paused, "
        "e.experiment, e.queue, e.started_at, e.stopped_at, e.body "
        "FROM queue q LEFT JOIN queue_experiment e ON e.ladder = q.ladder AND e.queue = q.queue "
        "AND e.stopped_at IS NULL WHERE q.ladder = ? ORDER BY q.queue"
    )
    return [
        (StoredQueue(*row[:5]), None if row[5] is None else StoredExperiment(*row[5:]))
        for row in store.all(sql, ladder)
    ]


def read_all_queues(store: Store) -> list[tuple[int, str, str, str]]:
    """(ladder id, ladder name, queue name, rules as JSON) of every queue of all ladders, ordered by both names."""
    sql = (
        "SELECT q.ladder, l.name, q.queue, q.rules FROM queue q JOIN ladder l ON l.ladder = q.ladder "
        "ORDER BY l.name, q.queue"
    )
    return [(number, ladder, queue, rules) for number, ladder, queue, rules in store.all(sql)]


def put_queue(store: Store, ladder: int, queue: StoredQueue) -> None:
    """Insert a queue, or replace the one with its name."""
    columns = ("ladder", "queue", "change", "policy", "rules", "paused")
    store.upsert(live_schema.queue, columns, [(ladder, *queue)])


def delete_queue(store: Store, ladder: int, queue: str) -> None:
    """Delete a queue."""
    store.run("DELETE FROM queue WHERE ladder = ? AND queue = ?", ladder, queue)


def read_filters(store: Store, ladder: int, players: Sequence[int]) -> dict[int, str]:
    """The stored filters of these players as JSON, by player id. Players without one are omitted."""
    sql = "SELECT player, body FROM queue_filter WHERE ladder = ? AND player IN ({})"
    return dict(store.among(sql, (ladder,), players))


def put_filter(store: Store, ladder: int, player: int, body: str) -> None:
    """Insert or replace a player's filter."""
    store.upsert(live_schema.queue_filter, ("ladder", "player", "body"), [(ladder, player, body)])


def delete_filter(store: Store, ladder: int, player: int) -> bool:
    """Delete a player's filter; return whether there was one."""
    sql = "DELETE FROM queue_filter WHERE ladder = ? AND player = ? RETURNING player"
    return bool(store.all(sql, ladder, player))


class TrialMoment(TypedDict):
    """The moment of an experiment at which a match was offered.

    experiment  its number;  arm  "a" or "b";  elapsed  microseconds since its start
    """

    experiment: int
    arm: str
    elapsed: int


class MatchForecast(TypedDict):
    """The prediction of a match when its last player accepted, stored as JSON.

    teams       ids of the players by team;  parties  sizes of the parties by team
    odds        predicted score of each team; None: the ladder's system could not predict the match
    spread      percentiles between the lowest and the highest player;  percentile  the mean of its players
    waits       seconds from joining to the offer, of each ticket
    estimates   the median and the 90 % quantile of each ticket's wait, estimated at joining; None: not estimated
    attributes, map  what it is played with; map None: the queue has none
    trial       None: no experiment ran
    """

    teams: list[list[int]]
    parties: list[list[int]]
    odds: list[float] | None
    spread: float
    percentile: float
    waits: list[float]
    estimates: Sequence[Sequence[float] | None]
    attributes: dict[str, str]
    map: str | None
    trial: TrialMoment | None


class FormedMatch(NamedTuple):
    """A match formed by a queue. policy: number of the change that set the queue's policy."""

    match_id: str
    queue: str
    formed_at: int
    policy: int
    forecast: MatchForecast


_FORMED_MATCHES_COLUMNS = ("match_id", "queue", "formed_at", "policy", "body")


def insert_formed_match(store: Store, ladder: int, match: FormedMatch) -> None:
    """Insert a formed match."""
    row = (ladder, *match[:4], json.dumps(match.forecast, sort_keys=True))
    store.insert(live_schema.formed_match, ("ladder", *_FORMED_MATCHES_COLUMNS), [row])


def read_formed_matches(store: Store, ladder: int, queue: str, since: int, until: int, limit: int) -> list[FormedMatch]:
    """The matches that a queue formed at or after `since` and before `until`: the latest `limit`, oldest first."""
    sql = f"SELECT {', '.join(_FORMED_MATCHES_COLUMNS)} FROM formed_match WHERE ladder = ? AND queue = ?"
    period = "AND formed_at >= ? AND formed_at < ? ORDER BY formed_at DESC, match_id DESC LIMIT ?"
    rows = store.all(f"{sql} {period}", ladder, queue, since, until, limit)
    return [FormedMatch._make((*row[:4], json.loads(row[4]))) for row in reversed(rows)]


OFFERS_OPEN, ALLOCATING, MADE, OFF = "open", "allocating", "made", "off"
OFFERS_PENDING = (OFFERS_OPEN, ALLOCATING)
AT_ONCE = 1000  # offers read at a time by `read_recent_offers`


class OfferSlot(TypedDict):
    """A player of an offer. ticket: the one in which the player waits; role: the one to play; None: any."""

    player: str
    id: int
    ticket: int
    role: str | None


class OfferBody(TypedDict):
    """The part of an offer that is stored as JSON.

    match   the live match whose open slots are offered; None: a new match
    odds    predicted score of each team, see LadderOdds; None: the ladder's system cannot predict such a match
    spread  percentiles between the lowest and the highest player
    waited  longest wait of its tickets in seconds;  costs  by name, as in matchmaking.Proposal
    waits   wait of each ticket in seconds;  percentile  the mean of its players
    estimates  as in MatchForecast
    policy  number of the change that set the queue's policy
    attributes, map  what it is played with, as in matchmaking.Proposal;  maps  those that all players accept
    trial   the moment of the queue's experiment; None: none runs, or the slots of a live match are offered
    """

    teams: list[list[OfferSlot]]
    match: str | None
    region: str | None
    ping: float
    odds: list[float] | None
    spread: float
    waited: float
    costs: dict[str, float]
    waits: list[float]
    estimates: Sequence[Sequence[float] | None]
    percentile: float
    policy: int
    attributes: dict[str, str]
    maps: list[str]
    map: str | None
    trial: TrialMoment | None


@dataclass(slots=True)
class OfferRow:
    """A stored offer. said: ids of the players who accepted.

    state     open, allocating (all accepted, a game server is wanted), made (the match began) or off (cancelled)
    deadline  by which players must answer or, while allocating, a server must be found
    """

    offer: int
    change: int
    queue: str
    state: str
    made_at: int
    deadline: int
    match_id: str | None
    body: OfferBody
    said: set[int] = field(default_factory=set)

    @property
    def chairs(self) -> list[OfferSlot]:
        """The slots of all players, team by team."""
        return [slot for team in self.body["teams"] for slot in team]

    @property
    def tickets(self) -> list[int]:
        """The numbers of its tickets, ascending."""
        return sorted({slot["ticket"] for slot in self.chairs})


_OFFERS_COLUMNS = ("offer", "change", "queue", "state", "made_at", "deadline", "match_id", "body", "said")
_OFFER = f"SELECT {', '.join(_OFFERS_COLUMNS)} FROM offer WHERE ladder = ?"


def read_offers(store: Store, ladder: int, offers: Sequence[int]) -> dict[int, OfferRow]:
    """The existing offers among these numbers, by number."""
    rows = store.among(f"{_OFFER} AND offer IN ({{}})", (ladder,), offers)
    return {row[0]: _offer(row) for row in rows}


def read_changed_offers(store: Store, ladder: int, after: int) -> list[OfferRow]:
    """Every offer with a later change number, in order of changes."""
    return [_offer(row) for row in store.all(f"{_OFFER} AND change > ? ORDER BY change, offer", ladder, after)]


def read_recent_offers(store: Store, ladder: int, since: int) -> Iterator[OfferRow]:
    """Pending offers, and offers since a time that became matches, in order of changes, read AT_ONCE at a time."""
    sql = (
        f"{_OFFER} AND (state IN (?, ?) OR (state = ? AND made_at >= ?)) "
        "AND change >= ? AND (change > ? OR offer > ?) ORDER BY change, offer LIMIT ?"
    )
    offer, change = -1, -1
    while rows := store.all(sql, ladder, *OFFERS_PENDING, MADE, since, change, change, offer, AT_ONCE):
        yield from map(_offer, rows)
        offer, change = rows[-1][:2]


def read_allocating_offers(store: Store) -> list[tuple[str, OfferRow]]:
    """Offers of all ladders that want a game server, the oldest first, each with the name of its ladder.

    The state is a literal so that PostgreSQL can use the partial index.
    """
    columns = ", ".join(f"o.{name}" for name in _OFFERS_COLUMNS)
    sql = (
        f"SELECT l.name, {columns} FROM offer o JOIN ladder l ON l.ladder = o.ladder "
        "WHERE o.state = 'allocating' ORDER BY o.deadline, o.ladder, o.offer"
    )
    return [(name, _offer(tuple(row))) for name, *row in store.all(sql)]


def read_latest_offers(store: Store, ladder: int, limit: int) -> list[OfferRow]:
    """The latest offers in any state, newest first."""
    return [_offer(row) for row in store.all(f"{_OFFER} ORDER BY offer DESC LIMIT ?", ladder, limit)]


def read_latest_maps(store: Store, ladder: int, queue: str, limit: int) -> list[str]:
    """The maps of a queue's latest offers in any state, at most `limit`, the latest last."""
    sql = "SELECT body FROM offer WHERE ladder = ? AND queue = ? ORDER BY offer DESC LIMIT ?"
    bodies = [json.loads(row[0]) for row in store.all(sql, ladder, queue, limit)]
    return [body["map"] for body in reversed(bodies) if body["map"] is not None and body["match"] is None]


def insert_offers(store: Store, ladder: int, offers: Iterable[OfferRow]) -> None:
    """Insert new offers."""
    rows = [
        (
            *(ladder, offer.offer, offer.change, offer.queue, offer.state),
            *(offer.made_at, offer.deadline, offer.match_id),
            json.dumps(offer.body, ensure_ascii=False, sort_keys=True),
            json.dumps(sorted(offer.said)),
        )
        for offer in offers
    ]
    store.insert(live_schema.offer, ("ladder", *_OFFERS_COLUMNS), rows)


def update_offers(store: Store, ladder: int, offers: Iterable[OfferRow]) -> None:
    """Write the mutable columns of offers."""
    rows = [
        (ladder, row.offer, row.change, row.state, row.deadline, row.match_id, json.dumps(sorted(row.said)))
        for row in offers
    ]
    store.update(live_schema.offer, ("ladder", "offer"), ("change", "state", "deadline", "match_id", "said"), rows)


def delete_offers_before(store: Store, ladder: int, before: int, most: int = 2000) -> None:
    """Delete finished offers that were made before a time, the oldest first, at most `most`."""
    sql = "SELECT offer FROM offer WHERE ladder = ? AND state IN (?, ?) AND made_at < ? ORDER BY offer LIMIT ?"
    old = [row[0] for row in store.all(sql, ladder, MADE, OFF, before, most)]
    store.run_among("DELETE FROM offer WHERE ladder = ? AND offer IN ({})", (ladder,), old)


def _offer(row: Row) -> OfferRow:
    offer, change, queue, state, made_at, deadline, match_id, body, said = row
    return OfferRow(
        offer, change, queue, state, made_at, deadline, match_id, body=json.loads(body), said=set(json.loads(said))
    )


class StoredPenalty(NamedTuple):
    """A player's strikes as of `struck_at`. until: when the player may queue again. Microseconds since the epoch."""

    strikes: float
    struck_at: int
    until: int


_PENALTIES_COLUMNS = ("player", *StoredPenalty._fields)


def read_penalties(store: Store, ladder: int, players: Sequence[int]) -> dict[int, StoredPenalty]:
    """The penalties of these players by id. Players without one are omitted."""
    sql = f"SELECT {', '.join(_PENALTIES_COLUMNS)} FROM penalty WHERE ladder = ? AND player IN ({{}})"
    return {row[0]: StoredPenalty(*row[1:]) for row in store.among(sql, (ladder,), players)}


def read_penalty_ends(store: Store, ladder: int, players: Sequence[int], now: int) -> dict[int, int]:
    """When these players may queue again, by id. Players who may queue now are omitted."""
    sql = "SELECT player, until FROM penalty WHERE ladder = ? AND until > ? AND player IN ({})"
    return dict(store.among(sql, (ladder, now), players))


def put_penalties(store: Store, ladder: int, penalties: Mapping[int, StoredPenalty]) -> None:
    """Insert or replace the penalties of players, by id."""
    rows = [(ladder, player, *penalty) for player, penalty in penalties.items()]
    store.upsert(live_schema.penalty, ("ladder", *_PENALTIES_COLUMNS), rows)


def delete_penalty(store: Store, ladder: int, player: int) -> bool:
    """Delete a player's penalty; return whether there was one."""
    sql = "DELETE FROM penalty WHERE ladder = ? AND player = ? RETURNING player"
    return bool(store.all(sql, ladder, player))


class Seat(NamedTuple):
    """A player's seat: the ticket in which the player waits, or the match that the player plays. ladder: its id."""

    ladder: int
    ticket: int | None
    match_id: str | None


_SEATS_COLUMNS = ("player", *Seat._fields)


def read_seats(store: Store, players: Sequence[int]) -> dict[int, Seat]:
    """The seats of these players by id. Players without one are omitted."""
    sql = f"SELECT {', '.join(_SEATS_COLUMNS)} FROM seat WHERE player IN ({{}})"
    return {row[0]: Seat(*row[1:]) for row in store.among(sql, (), players)}


def read_seats_with_ladders(store: Store, players: Sequence[int]) -> list[tuple[int, str, Seat]]:
    """(player id, name of the ladder, seat) of these players, ordered by id. Players without a seat are omitted."""
    sql = (
        "SELECT s.player, l.name, s.ladder, s.ticket, s.match_id FROM seat s JOIN ladder l ON l.ladder = s.ladder "
        "WHERE s.player IN ({})"
    )
    rows = store.among(sql, (), players)
    return [(player, name, Seat(*seat)) for player, name, *seat in sorted(rows)]


def insert_missing_seats(store: Store, seats: Mapping[int, Seat]) -> None:
    """Insert seats by player id. Existing seats stay."""
    rows = sorted((player, *seat) for player, seat in seats.items())
    store.upsert(live_schema.seat, _SEATS_COLUMNS, rows, same=True)


def move_seats(store: Store, players: Iterable[int], source: int, ladder: int, ticket: int) -> None:
    """Move these players' seats from ladder `source` to a ticket on another ladder."""
    sql = "UPDATE seat SET ladder = ?, ticket = ? WHERE ladder = ? AND player IN ({})"
    store.run_among(sql, (ladder, ticket, source), sorted(players))


def set_seat_matches(store: Store, ladder: int, matches: Mapping[int, str]) -> None:
    """Record which match players on this ladder play, by player id."""
    rows = [(player, ladder, match_id) for player, match_id in sorted(matches.items())]
    store.update(live_schema.seat, ("player", "ladder"), ("match_id",), rows)


def delete_seats(store: Store, ladder: int, players: Iterable[int]) -> None:
    """Delete the seats of players on this ladder."""
    store.run_among("DELETE FROM seat WHERE ladder = ? AND player IN ({})", (ladder,), sorted(players))


def delete_seats_of_match(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Delete the seats of players in a match. Their other seats stay."""
    sql = "DELETE FROM seat WHERE ladder = ? AND match_id = ? AND player IN ({})"
    store.run_among(sql, (ladder, match_id), sorted(set(players)))


def count_seats_by_ladder(store: Store) -> list[Row]:
    """(ladder id, waiting players, playing players, open matches with players) of each ladder with seats.

    Includes seats that hold on one ladder only.
    """
    sql = (
        "SELECT ladder, COUNT(*) - COUNT(match_id), COUNT(match_id), COUNT(DISTINCT match_id) FROM "
        "(SELECT ladder, match_id FROM seat UNION ALL SELECT ladder, match_id FROM ladder_seat) AS taken "
        "GROUP BY ladder"
    )
    return store.all(sql)


_LADDER_SEATS_COLUMNS = ("ladder", "player", "match_id")


def read_ladder_seats(store: Store, ladder: int, players: Sequence[int]) -> dict[int, str]:
    """The matches of the players among these with a seat that holds on this ladder only, by player id."""
    sql = "SELECT player, match_id FROM ladder_seat WHERE ladder = ? AND player IN ({})"
    return dict(store.among(sql, (ladder,), players))


def insert_missing_ladder_seats(store: Store, ladder: int, players: Iterable[int], match_id: str) -> None:
    """Insert seats in a match that hold on this ladder only. Existing seats stay."""
    rows = [(ladder, player, match_id) for player in sorted(players)]
    store.upsert(live_schema.ladder_seat, _LADDER_SEATS_COLUMNS, rows, same=True)


def delete_ladder_seats_of_match(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Delete the seats of players in a match."""
    sql = "DELETE FROM ladder_seat WHERE ladder = ? AND match_id = ? AND player IN ({})"
    store.run_among(sql, (ladder, match_id), sorted(set(players)))


NOBODY = ""  # owner of a lease that was released or never held

_TAKE = (
    "INSERT INTO lease (name, owner, beat, held_at) VALUES (?, ?, 1, ?) ON CONFLICT (name) DO UPDATE SET "
    "owner = excluded.owner, beat = lease.beat + 1, held_at = excluded.held_at "
    "WHERE lease.owner = ? AND lease.beat = ? RETURNING beat"
)


class StoredLease(NamedTuple):
    """A lease. held_at: time of the last heartbeat, microseconds since the epoch; None: never held."""

    owner: str
    beat: int
    held_at: int | None


def read_lease(store: Store, name: str) -> StoredLease:
    """The lease of this name. If it was never taken, NOBODY owns it."""
    rows = store.all("SELECT owner, beat, held_at FROM lease WHERE name = ?", name)
    return StoredLease(*rows[0]) if rows else StoredLease(NOBODY, 0, None)


def take_lease(store: Store, name: str, owner: str, held_at: int, known: tuple[str, int]) -> int | None:
    """Set the owner and increment the heartbeat if the lease still has the (owner, heartbeat) `known`.

    Returns the new heartbeat, or None if the lease has changed.
    """
    rows = store.all(_TAKE, name, owner, held_at, *known)
    return rows[0][0] if rows else None


def write_test_lease(store: Store, name: str, held_at: int) -> None:
    """Write a lease that no process holds, to test whether the database accepts writes."""
    sql = (
        "INSERT INTO lease (name, owner, beat, held_at) VALUES (?, ?, 1, ?) "
        "ON CONFLICT (name) DO UPDATE SET beat = lease.beat + 1, held_at = excluded.held_at"
    )
    store.run(sql, name, NOBODY, held_at)


def read_leases_named(store: Store, prefix: str) -> dict[str, StoredLease]:
    """The leases whose names begin with a prefix, ordered by name."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    sql = "SELECT name, owner, beat, held_at FROM lease WHERE name >= ? AND name < ? ORDER BY name"
    rows = store.all(sql, prefix, after)
    return {row[0]: StoredLease(*row[1:]) for row in rows}


def delete_lease(store: Store, name: str, beat: int) -> None:
    """Delete a lease unless its heartbeat has changed."""
    store.run("DELETE FROM lease WHERE name = ? AND beat = ?", name, beat)


def release_lease(store: Store, name: str, owner: str) -> None:
    """Give the lease to NOBODY if this owner has it."""
    store.run("UPDATE lease SET owner = ? WHERE name = ? AND owner = ?", NOBODY, name, owner)
