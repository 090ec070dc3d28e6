"""The status of a ticket as its players see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from evenmatch.accounts.access import Caller
from evenmatch.durations import SECOND
from evenmatch.ledger import ladder_rows
from evenmatch.ledger.store import Store
from evenmatch.live import live_sql
from evenmatch.live.live_sql import LiveMatchRow
from evenmatch.matchmaking import Waiting
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import OfferRow, TicketRow
from evenmatch.stakes import PlayerStakes


@dataclass(frozen=True)
class OfferStatus:
    """An offer as one of its tickets sees it.

    match     the live match whose open slots are offered; None: a new match
    made_at, deadline  microseconds since the epoch
    players, accepted  the number of players in the offer, and of those who have accepted
    own       whether each of the ticket's own players has accepted, by name
    teams     the number of offered players in each team
    odds      the predicted score of each team, a draw counts half; None: the system cannot predict it
    stakes    of the players of this ticket, by name; empty: not known
    attributes, map  with which it is played; map None: the queue has none
    For the other fields see matchmaking.Proposal.
    """

    offer: int
    queue: str
    match: str | None
    made_at: int
    deadline: int
    players: int
    accepted: int
    own: Mapping[str, bool]
    teams: tuple[int, ...]
    region: str | None
    ping: float
    odds: tuple[float, ...] | None
    spread: float
    costs: Mapping[str, float]
    attributes: Mapping[str, str]
    map: str | None
    stakes: Mapping[str, PlayerStakes] = field(default_factory=dict)


@dataclass(frozen=True)
class StartedMatch:
    """The match of a ticket. state: open, closed, cancelled or expired."""

    match_id: str
    state: str
    queue: str | None
    started_at: int
    teams: tuple[tuple[str, ...], ...]
    region: str | None
    attributes: Mapping[str, str]
    map: str | None
    roles: Mapping[str, str | None]


class LinkedTicket(NamedTuple):
    """A party's ticket on another ladder of its playlist. state: waiting, offered, elsewhere, matched or gone."""

    ladder: str
    ticket: int
    state: str


@dataclass(frozen=True)
class Status:
    """The status of a ticket. state: waiting, offered, elsewhere (offered on another ladder), matched or gone.

    change   the later change number of the ticket and its offer; equal numbers mean that only time has passed
    waited   waiting time in seconds, without times when no matchmaker ran; None if it does not wait any more
    is_matching  whether a matchmaker runs now; False while it starts
    ended    why the ticket is gone, in words
    waiting  what it waits for, by queue; empty if this process does not know
    playlist  the tickets of its party on other ladders; at most one of them has an offer
    """

    ticket: int
    state: str
    change: int
    players: tuple[str, ...]
    queues: tuple[str, ...]
    queued_at: int
    waited: float | None
    ended: str | None = None
    offer: OfferStatus | None = None
    match: StartedMatch | None = None
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    is_matching: bool = True
    playlist: tuple[LinkedTicket, ...] = ()

    @property
    def follow(self) -> LinkedTicket | None:
        """The ticket of the playlist to follow instead: it has an offer or a match, or waits while this one is gone."""
        states = (queue_sql.OFFERED, queue_sql.MATCHED) + ((queue_sql.WAITING,) if self.state == queue_sql.GONE else ())
        others = [entry for entry in self.playlist if entry.state in states]
        return min(others, key=lambda entry: states.index(entry.state), default=None)

    def seen_by(self, caller: Caller) -> Status:
        """The status without the tickets on ladders that the caller may not read."""
        return replace(self, playlist=tuple(entry for entry in self.playlist if caller.may("read", entry.ladder)))


class StatusRead(NamedTuple):
    """A request for the status of a ticket.

    since  the latest change that its reader knows: unless there is a later one, `waiting` is left empty
    """

    ticket: int
    since: int = -1


def read(store: Store, ladder: int, numbers: Sequence[int], now: int, until: int | None = None) -> dict[int, Status]:
    """The status of the existing tickets among these numbers, by number; `waiting` is left empty.

    until  when a matchmaker last ran; None: one runs now
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
    """The tickets on other ladders of those of these tickets that belong to playlists, by number."""
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
        change=row.change if offer is None else max(row.change, offer.change),
        players=row.party.names,
        queues=row.party.queues,
        queued_at=row.queued_at,
        waited=max((now if until is None else min(now, until)) - row.queued_at, 0) / SECOND if is_open else None,
        ended=row.ended,
        offer=None if offer is None or row.state != queue_sql.OFFERED else _offer_status(offer, row.ticket),
        match=None if match is None else _begun_match(match),
        is_matching=until is None,
        playlist=linked,
    )


def _offer_status(offer: OfferRow, ticket: int) -> OfferStatus:
    body = offer.body
    return OfferStatus(
        offer=offer.offer,
        queue=offer.queue,
        match=body["match"],
        made_at=offer.made_at,
        deadline=offer.deadline,
        players=len(offer.chairs),
        accepted=len(offer.said),
        own={slot["player"]: slot["id"] in offer.said for slot in offer.chairs if slot["ticket"] == ticket},
        teams=tuple(map(len, body["teams"])),
        region=body["region"],
        ping=body["ping"],
        odds=None if body["odds"] is None else tuple(body["odds"]),
        spread=body["spread"],
        costs=body["costs"],
        attributes=body["attributes"],
        map=body["map"],
    )


def _begun_match(match: LiveMatchRow) -> StartedMatch:
    return StartedMatch(
        match_id=match.match_id,
        state=match.state,
        queue=match.queue,
        started_at=match.started_at,
        teams=tuple(tuple(slot["player"] for slot in team) for team in match.body["teams"]),
        region=match.body.get("region"),
        attributes=match.body.get("attributes", {}),
        map=match.body.get("map"),
        roles={slot["player"]: slot.get("role") for slot in match.slots()},
    )
