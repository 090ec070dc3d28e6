"""What a ticket's players are shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evenmatch.ledger.store import Store
from evenmatch.matchmaking import Waiting
from evenmatch.service.playing import live
from evenmatch.service.playing.live import Live
from evenmatch.service.queueing import offers, tickets
from evenmatch.service.queueing.offers import OfferRow
from evenmatch.service.queueing.tickets import TicketRow

SECOND = 1_000_000


@dataclass(frozen=True)
class Asked:
    """An offer as one of its tickets sees it.

    match     the running match whose open seats are offered; None: a new match
    deadline  microseconds since the epoch
    players, accepted  how many are asked, and how many of them have accepted
    own       of the ticket's own players by name: whether they have accepted
    teams     how many players are asked for each team
    The others are as matchmaking.Proposal has them.
    """

    offer: int
    queue: str
    match: str | None
    deadline: int
    players: int
    accepted: int
    own: Mapping[str, bool]
    teams: tuple[int, ...]
    region: str | None
    ping: float
    odds: float
    spread: float
    costs: Mapping[str, float]


@dataclass(frozen=True)
class Begun:
    """The match that a ticket's players are in. state: open, closed, cancelled or expired."""

    match_id: str
    state: str
    queue: str | None
    started_at: int
    teams: tuple[tuple[str, ...], ...]
    region: str | None
    roles: Mapping[str, str | None]


@dataclass(frozen=True)
class Status:
    """A ticket now. state: waiting, offered, matched or gone.

    change   of the ticket or of its offer, the later one: while it is the same, nothing but time has changed
    waited   seconds so far, without those in which no process makes matches; None when it waits no more
    is_matching  whether a process makes matches now; False while the matchmaker starts
    ended    in words why it is gone
    waiting  what it waits for, by queue; empty where this process cannot tell
    """

    ticket: int
    state: str
    change: int
    players: tuple[str, ...]
    queues: tuple[str, ...]
    queued_at: int
    waited: float | None
    ended: str | None = None
    offer: Asked | None = None
    match: Begun | None = None
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    is_matching: bool = True


def read(store: Store, ladder: int, numbers: Sequence[int], now: int, until: int | None = None) -> dict[int, Status]:
    """Those of these tickets that there are, by number; `waiting` is left empty.

    until  when matches were last made; None: now
    """
    rows = tickets.read(store, ladder, sorted(set(numbers)))
    asked = sorted({one.offer for one in rows.values() if one.offer is not None})
    begun = sorted({one.match_id for one in rows.values() if one.match_id is not None})
    known, matches = offers.read(store, ladder, asked), live.read(store, ladder, begun)
    return {number: _status(row, known, matches, now, until) for number, row in rows.items()}


def _status(
    row: TicketRow, known: Mapping[int, OfferRow], matches: Mapping[str, Live], now: int, until: int | None
) -> Status:
    offer = None if row.offer is None else known.get(row.offer)
    match = None if row.match_id is None else matches.get(row.match_id)
    is_open = row.state in (tickets.WAITING, tickets.OFFERED)
    return Status(
        ticket=row.ticket,
        state=row.state,
        change=row.change if offer is None else max(row.change, offer.change),
        players=row.party.names,
        queues=row.party.queues,
        queued_at=row.queued_at,
        waited=max((now if until is None else min(now, until)) - row.queued_at, 0) / SECOND if is_open else None,
        ended=row.ended,
        offer=None if offer is None or row.state != tickets.OFFERED else _asked(offer, row.ticket),
        match=None if match is None else _begun(match),
        is_matching=until is None,
    )


def _asked(offer: OfferRow, ticket: int) -> Asked:
    body = offer.body
    return Asked(
        offer=offer.offer,
        queue=offer.queue,
        match=body["match"],
        deadline=offer.deadline,
        players=len(offer.chairs),
        accepted=len(offer.said),
        own={one["player"]: one["id"] in offer.said for one in offer.chairs if one["ticket"] == ticket},
        teams=tuple(map(len, body["teams"])),
        region=body["region"],
        ping=body["ping"],
        odds=body["odds"],
        spread=body["spread"],
        costs=body["costs"],
    )


def _begun(match: Live) -> Begun:
    return Begun(
        match_id=match.match_id,
        state=match.state,
        queue=match.queue,
        started_at=match.started_at,
        teams=tuple(tuple(slot["player"] for slot in team) for team in match.body["teams"]),
        region=match.body.get("region"),
        roles={slot["player"]: slot.get("role") for slot in match.slots()},
    )
