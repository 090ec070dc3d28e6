"""The status of a ticket as its players see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, cast
from urllib.parse import quote

from evenmatch.accounts.access import Caller
from evenmatch.durations import SECOND
from evenmatch.history import FloatOrNaN
from evenmatch.ledger import ladder_rows, player_rows
from evenmatch.ledger.store import Head, Store
from evenmatch.live import live_sql
from evenmatch.live.live_sql import LiveMatchRow
from evenmatch.live.status import LiveState
from evenmatch.matchmaking import Waiting
from evenmatch.players.explanations import ShownRatingChange
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import OfferRow, Party, TicketRow, TicketState
from evenmatch.recording.receipts import MatchReceipt, first_receipts
from evenmatch.stakes import PlayerStakes
from evenmatch.times import Time


@dataclass(frozen=True)
class OfferStatus:
    """An offered match, as one of its tickets sees it.

    match_id    the live match with the offered open slots; null: a new match
    players     players who received the offer
    accepted    players who have accepted it
    own         whether each player of this ticket has accepted
    teams       names of the players who received the offer, by team
    ping        the highest ping of any player in the region, in milliseconds
    odds        predicted score of each team, a draw counts half, as `POST …/odds` gives it; null: the ladder's system
                cannot predict the match, or the ladder does not show its ratings
    spread      difference in percentiles between the lowest and the highest player; null: not shown
    costs       costs of the match by name, in equivalent seconds of waiting; empty: not shown
    attributes  the value of each attribute with which the match is played
    map         null: the queue has no maps
    stakes      ratings of this ticket's players after a win, a draw, a loss and quitting halfway, in a match of 600
                seconds that ends 2 : 1; empty: unknown, or not shown
    """

    offer: int
    queue: str
    match_id: str | None
    made_at: Time
    deadline: Time
    players: int
    accepted: int
    own: Mapping[str, bool]
    teams: tuple[tuple[str, ...], ...]
    region: str | None
    ping: float
    odds: tuple[float, ...] | None
    spread: FloatOrNaN
    costs: Mapping[str, float]
    attributes: Mapping[str, str]
    map: str | None
    stakes: Mapping[str, PlayerStakes] = field(default_factory=dict)


class MatchedPlayer(NamedTuple):
    """A player of a match."""

    player: str
    role: str | None


class TicketConnection(NamedTuple):
    """Where the players of a ticket connect to play their match.

    tokens  what each player of this ticket presents there, by name; empty: nothing, or not shown
    """

    address: str
    tokens: Mapping[str, str]


class TicketRating(NamedTuple):
    """What a match did to a player of a ticket. Its numbers are null if the match is not rated.

    before, after, change  of the rating; null: also if hidden
    percentile, division   as shown after the match; null: also if not shown
    page                   path of the web page that explains the result
    """

    before: float | None
    after: float | None
    change: float | None
    percentile: int | None
    division: str | None
    page: str


class TicketReceipt(NamedTuple):
    """The receipt of a recorded match, for the players of one ticket, by name. rated: false: no rating changed."""

    rated: bool
    players: Mapping[str, TicketRating]


@dataclass(frozen=True)
class StartedMatch:
    """The match that a ticket was assigned to.

    reason      why the match was cancelled
    connection  null: not announced yet, or the match has ended
    receipt     null: the match is not recorded
    """

    match_id: str
    state: LiveState
    queue: str | None
    region: str | None
    attributes: Mapping[str, str]
    map: str | None
    started_at: Time
    teams: tuple[tuple[MatchedPlayer, ...], ...]
    reason: str | None = None
    connection: TicketConnection | None = None
    receipt: TicketReceipt | None = None


class LinkedTicket(NamedTuple):
    """A ticket of the same party on another ladder of its playlist."""

    ladder: str
    ticket: int
    state: TicketState


@dataclass(frozen=True)
class Status:
    """A ticket and its state.

    state       offered: players must accept or decline; elsewhere: a match is offered on another ladder of the
                playlist; matched: the match can be played; gone: the ticket was removed, see `ended`
    change      number of the latest change of the ticket, its offer or its match; send it as `after` to wait for the
                next one
    waited      seconds, without the time when no matchmaker ran; null: the ticket no longer waits
    ended       why the ticket is gone, in words
    waiting     the search state by queue, while the ticket waits
    paused      the operator's messages, which may be empty, by paused queue, while the ticket waits
    matchmaker  starting: no matches are made yet, and this time does not count as waiting
    playlist    the party's tickets on other ladders; at most one of them has an offer
    """

    ticket: int
    state: TicketState
    change: int
    players: tuple[str, ...]
    queues: tuple[str, ...]
    queued_at: Time
    waited: float | None
    ended: str | None = None
    offer: OfferStatus | None = None
    match: StartedMatch | None = None
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    matchmaker: Literal["running", "starting"] = "running"
    playlist: tuple[LinkedTicket, ...] = ()
    paused: Mapping[str, str] = field(default_factory=dict)

    @property
    def follow(self) -> LinkedTicket | None:
        """The playlist's ticket to follow instead: one with an offer or a match, or one that waits if this is gone."""
        states = (queue_sql.OFFERED, queue_sql.MATCHED) + ((queue_sql.WAITING,) if self.state == queue_sql.GONE else ())
        others = [entry for entry in self.playlist if entry.state in states]
        return min(others, key=lambda entry: states.index(entry.state), default=None)

    @property
    def is_over(self) -> bool:
        """Whether this status is final: the ticket is gone, or its match has ended."""
        return self.state == queue_sql.GONE or (
            self.state == queue_sql.MATCHED and (self.match is None or self.match.state != live_sql.OPEN)
        )

    def seen_by(self, caller: Caller, own: str | None) -> Status:
        """The status without tickets on ladders that the caller may not read, and without tokens of other players.

        own  the name under which the caller joined; None: the caller is not a player, and sees all tokens
        """
        match, playlist = self.match, tuple(entry for entry in self.playlist if caller.may("read", entry.ladder))
        if match is not None and match.connection is not None and caller.player is not None:
            tokens = {name: token for name, token in match.connection.tokens.items() if name == own}
            match = replace(match, connection=match.connection._replace(tokens=tokens))
        return replace(self, match=match, playlist=playlist)


class StatusRead(NamedTuple):
    """A request for the status of a ticket.

    since  the latest change that the reader knows; without a later one, `waiting` is left empty
    """

    ticket: int
    since: int = -1


def read(store: Store, ladder: int, numbers: Sequence[int], now: int, until: int | None = None) -> dict[int, Status]:
    """The status of the existing tickets among these numbers, by number. `waiting` is left empty.

    until  when a matchmaker last ran; None: one is running
    """
    rows = queue_sql.read_tickets(store, ladder, sorted(set(numbers)))
    offer_numbers = sorted({row.offer for row in rows.values() if row.offer is not None})
    match_ids = sorted({row.match_id for row in rows.values() if row.match_id is not None})
    known_offers, matches = queue_sql.read_offers(store, ladder, offer_numbers), live_sql.read(store, ladder, match_ids)
    linked = _linked(store, ladder, rows.values())
    return {
        number: _status(row, known_offers, matches, linked.get(number, ()), now, until) for number, row in rows.items()
    }


def _linked(store: Store, ladder: int, rows: Collection[TicketRow]) -> dict[int, tuple[LinkedTicket, ...]]:
    """The playlist tickets on other ladders of each of these tickets, by number."""
    playlists = {
        row.ticket: [entry for entry in row.playlist if entry.ladder != ladder] for row in rows if row.playlist
    }
    if not playlists:
        return {}
    entries = {entry for listed in playlists.values() for entry in listed}
    states = queue_sql.read_ticket_states(store, entries)
    names = ladder_rows.ladder_names(store, sorted({entry.ladder for entry in entries}))
    return {
        number: tuple(
            LinkedTicket(names[entry.ladder], entry.ticket, states.get(entry, queue_sql.GONE)) for entry in listed
        )
        for number, listed in playlists.items()
    }


def _status(
    row: TicketRow,
    known_offers: Mapping[int, OfferRow],
    matches: Mapping[str, LiveMatchRow],
    linked: tuple[LinkedTicket, ...],
    now: int,
    until: int | None,
) -> Status:
    offer = None if row.offer is None else known_offers.get(row.offer)
    match = None if row.match_id is None else matches.get(row.match_id)
    is_open = row.state in queue_sql.TICKETS_OPEN
    return Status(
        ticket=row.ticket,
        state=row.state,
        change=max(row.change, *(also.change for also in (offer, match) if also is not None), 0),
        players=row.party.names,
        queues=row.party.queues,
        queued_at=row.queued_at,
        waited=max((now if until is None else min(now, until)) - row.queued_at, 0) / SECOND if is_open else None,
        ended=row.ended,
        offer=None if offer is None or row.state != queue_sql.OFFERED else _offer_status(offer, row.ticket),
        match=None if match is None else _begun_match(match, row.party),
        matchmaker="running" if until is None else "starting",
        playlist=linked,
    )


def _offer_status(offer: OfferRow, ticket: int) -> OfferStatus:
    body = offer.body
    return OfferStatus(
        offer=offer.offer,
        queue=offer.queue,
        match_id=body["match"],
        made_at=offer.made_at,
        deadline=offer.deadline,
        players=len(offer.chairs),
        accepted=len(offer.said),
        own={slot["player"]: slot["id"] in offer.said for slot in offer.chairs if slot["ticket"] == ticket},
        teams=tuple(tuple(slot["player"] for slot in team) for team in body["teams"]),
        region=body["region"],
        ping=body["ping"],
        odds=None if body["odds"] is None else tuple(body["odds"]),
        spread=body["spread"],
        costs=body["costs"],
        attributes=body["attributes"],
        map=body["map"],
    )


def with_receipts(store: Store, head: Head, statuses: Mapping[int, Status]) -> dict[int, Status]:
    """These tickets by number, with the receipts of those whose match is recorded. Raises DamageError."""
    closed = {
        number: status.match
        for number, status in statuses.items()
        if status.match is not None and status.match.state == live_sql.CLOSED
    }
    if not closed:
        return dict(statuses)
    receipts = first_receipts(store, head, sorted({match.match_id for match in closed.values()}))
    ids = player_rows.ids_of(store, sorted({name for number in closed for name in statuses[number].players}))
    present = player_rows.names_of(store, sorted(ids.values()))
    names = {player: present[number] for player, number in ids.items()}
    rated = {
        number: replace(match, receipt=_ticket_receipt(receipts[match.match_id], statuses[number].players, names))
        for number, match in closed.items()
        if match.match_id in receipts
    }
    return dict(statuses) | {number: replace(statuses[number], match=match) for number, match in rated.items()}


def _ticket_receipt(receipt: MatchReceipt, players: Sequence[str], names: Mapping[str, str]) -> TicketReceipt:
    """The part of a receipt that concerns the players of a ticket. names: their present ones."""
    lines = {line.change.player: line for team in receipt.teams for line in team}
    ratings = {}
    for player in players:
        name = names.get(player, player)
        page = "/".join(
            ("/ladders", quote(receipt.ladder, ""), "matches", quote(receipt.match_id, ""), "results", quote(name, ""))
        )
        if (line := lines.get(name)) is None:
            ratings[player] = TicketRating(None, None, None, None, None, page)
        else:
            change = ShownRatingChange.of(line.change.before, line.change.after)
            ratings[player] = TicketRating(*change, line.percentile, line.division, page)
    return TicketReceipt(receipt.rated, ratings)


def _begun_match(match: LiveMatchRow, party: Party) -> StartedMatch:
    stored = match.body.get("connection")
    tokens = {} if stored is None else stored["tokens"]
    own = {member["name"]: tokens[str(member["id"])] for member in party.members if str(member["id"]) in tokens}
    return StartedMatch(
        match_id=match.match_id,
        state=cast("LiveState", match.state),
        queue=match.queue,
        started_at=match.started_at,
        teams=tuple(
            tuple(MatchedPlayer(slot["player"], slot.get("role")) for slot in team) for team in match.body["teams"]
        ),
        region=match.body.get("region"),
        attributes=match.body.get("attributes", {}),
        map=match.body.get("map"),
        reason=match.body.get("reason"),
        connection=None if stored is None else TicketConnection(stored["address"], own),
    )
