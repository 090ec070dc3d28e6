"""Endpoints for tickets: join queues, follow a ticket, answer an offer, leave."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from evenmatch.accounts.access import Caller
from evenmatch.http.access import Queuer
from evenmatch.http.fast_json import join_of
from evenmatch.http.models.base import moment
from evenmatch.http.models.queues import (
    AttributeCountOut,
    JoinRequest,
    LinkedTicketOut,
    MatchedOut,
    MatchedPlayer,
    OfferAnswer,
    OfferOut,
    TicketChange,
    TicketOut,
    WaitingOut,
)
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read, written
from evenmatch.http.routes.matches import player_stakes_out
from evenmatch.http.site import Site, site_of
from evenmatch.http.waiting_requests import EventStream, until
from evenmatch.matchmaking import Waiting
from evenmatch.players.explanations import known_number
from evenmatch.queues import requests
from evenmatch.queues.queue_service import of_another_party
from evenmatch.queues.ticket_status import LinkedTicket, OfferStatus, StartedMatch, Status, StatusRead

router = APIRouter(prefix="/v1/ladders/{ladder:text}/tickets", tags=["tickets"])
Number = Annotated[int, Path(ge=1, le=2**62)]
LONGEST_WAIT = 60.0  # seconds of a long poll
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a change after `after`.")]
After = Annotated[int | None, Query(ge=0, le=2**62, description="The latest change that the client knows.")]
FRESH = 5.0  # seconds after which a stream repeats the state of a ticket
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events `ticket`."}
}


@router.post("", response_model=TicketChange, status_code=201, operation_id="join_queue")
async def join_queue(ladder: str, party: JoinRequest, request: Request, caller: Queuer) -> Response:
    """Join one or more queues as a party; the first match removes the ticket from all of them.

    A playlist waits in queues of other ladders, too, with a ticket on each: see `playlist` of a ticket. With a
    player's token: only that player. Read the ticket again within the queue's heartbeat, or it is removed.
    """
    join = permitted(caller, join_of(party))
    return written(done(ladder, await site_of(request).wishes.one(ladder, join)), 201)


@router.get("/{ticket}", response_model=TicketOut, operation_id="ticket")
async def ticket(
    ladder: str, ticket: Number, request: Request, caller: Queuer, after: After = None, wait: Wait = 0.0
) -> Response:
    """A ticket and its search state; with `after` and `wait`, return when it has changed. Counts as a heartbeat."""
    site = site_of(request)
    status = None if wait <= 0 or after is None else await _changed(request, caller, ladder, ticket, after, wait)
    status = status or await _status(site, caller, ladder, ticket)
    seen = await site.visibility(caller, ladder)
    return read(request, ticket_out(ladder, seen.ticket(status)))


@router.get("/{ticket}/events", operation_id="ticket_events", response_class=StreamingResponse, responses=EVENTS)
async def ticket_events(ladder: str, ticket: Number, request: Request, caller: Queuer) -> StreamingResponse:
    """A ticket as server-sent events: one `ticket` now, one at each change, and one every five seconds.

    The stream ends when the ticket no longer waits, and after a minute. Reading it counts as a heartbeat.
    """
    site = site_of(request)
    context_of(request.scope).waits = True

    async def events(status: Status) -> AsyncIterator[bytes]:
        async with site.waiting.stream(LONGEST_WAIT) as waiter:
            with site.ticket_notifications.telling(ladder, ticket, waiter):
                while True:
                    seen = await site.visibility(caller, ladder)
                    body = to_json(ticket_out(ladder, seen.ticket(status))).decode()
                    yield f"id: {status.change}\nevent: ticket\ndata: {body}\n\n".encode()
                    if status.state in {"matched", "gone"} or site.stopping.is_set():
                        return
                    await waiter.news(FRESH)
                    if waiter.is_over:
                        return
                    status = await _status(site, caller, ladder, ticket)

    with ExitStack() as held:
        held.enter_context(site.waiting.place(request, caller))
        return EventStream(events(await _status(site, caller, ladder, ticket)), held.pop_all())


@router.post("/{ticket}/accept", response_model=TicketChange, operation_id="accept_offer")
async def accept_offer(ladder: str, ticket: Number, say: OfferAnswer, request: Request, caller: Queuer) -> Response:
    """Accept the offered match, for one player of the ticket or all of them. Repeating it changes nothing."""
    player = player_of(caller, say.player)
    accept = requests.Accept(ticket, player, say.offer, caller.player is not None)
    return written(done(ladder, await site_of(request).wishes.one(ladder, accept)))


@router.post("/{ticket}/decline", response_model=TicketChange, operation_id="decline_offer")
async def decline_offer(ladder: str, ticket: Number, say: OfferAnswer, request: Request, caller: Queuer) -> Response:
    """Decline the offered match: the ticket is removed and the player penalized; the other parties wait on."""
    player = player_of(caller, say.player)
    decline = requests.Decline(ticket, player, say.offer, caller.player is not None)
    return written(done(ladder, await site_of(request).wishes.one(ladder, decline)))


@router.delete("/{ticket}", response_model=TicketChange, operation_id="leave_queue")
async def leave_queue(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """Leave the queues. While a match is offered, this declines it."""
    leave = requests.Leave(ticket, caller.player, caller.player is not None)
    return written(done(ladder, await site_of(request).wishes.one(ladder, leave)))


@router.post("/{ticket}/heartbeat", status_code=204, operation_id="heartbeat")
async def heartbeat(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """Report that the party is still there. Not needed by clients that read the ticket regularly."""
    await _status(site_of(request), caller, ladder, ticket)
    return Response(status_code=204)


def permitted(caller: Caller, join: requests.Join) -> requests.Join:
    """The join as this caller sends it.

    Raises ForbiddenError unless the caller may queue these players, and on the other ladders of the playlist.
    """
    for member in join.members:
        caller.speaks_for(member.name)
    for ladder in join.playlist:
        caller.check("queue", ladder)
    return join if caller.ladders is None else replace(join, readable=caller.ladders)


def player_of(caller: Caller, player: str | None) -> str | None:
    """The player a request is for; a player's token always acts for its own player."""
    if caller.player is None:
        return player
    if player is not None:
        caller.speaks_for(player)
    return caller.player


async def _changed(
    request: Request, caller: Caller, ladder: str, ticket: int, after: int, wait: float
) -> Status | None:
    """The state of a ticket once it has changed after `after`; None if it does not for `wait` seconds."""
    site = site_of(request)
    context_of(request.scope).waits = True
    async with site.waiting.poll(request, caller) as waiter:
        with site.ticket_notifications.telling(ladder, ticket, waiter):
            look = partial(_status, site, caller, ladder, ticket, after)
            status = await until(look, lambda status: status.change > after, wait, waiter)
    return status if status.change > after else None


async def _status(site: Site, caller: Caller, ladder: str, ticket: int, since: int = -1) -> Status:
    """The state of a ticket, as the caller may see it, which counts as a heartbeat of the ticket.

    since  see StatusRead
    Raises ForbiddenError for a player's token of another party, whose request is no heartbeat.
    """
    status = await site.status_reads.one(ladder, StatusRead(ticket, since))
    player, is_member = caller.player, site.queue_service.is_member
    is_known = player is None or player in status.players  # by the names under which they joined
    if player is not None and not is_known and not await site.work(is_member, ladder, ticket, player):
        raise of_another_party(ticket, player)
    site.queue_service.heartbeats.note(ladder, status)
    return status.seen_by(caller)


def done(ladder: str, outcome: requests.RequestResult) -> TicketChange:
    """The response model of the result of a queue request."""
    return TicketChange(
        ticket=outcome.ticket,
        ladder=ladder,
        state=outcome.state,  # type: ignore[arg-type] # one of the declared values
        change=outcome.change,
        offer=outcome.offer,
        match_id=outcome.match_id,
        playlist=dict(outcome.playlist),
    )


def ticket_out(ladder: str, status: Status) -> TicketOut:
    """The response model of a ticket."""
    return TicketOut(
        ticket=status.ticket,
        ladder=ladder,
        state=status.state,  # type: ignore[arg-type] # one of the declared values
        change=status.change,
        players=list(status.players),
        queues=list(status.queues),
        queued_at=moment(status.queued_at),
        waited=status.waited,
        ended=status.ended,
        offer=None if status.offer is None else _offer(status.offer),
        match=None if status.match is None else _match(status.match),
        waiting={queue: _waiting(waiting) for queue, waiting in status.waiting.items()},
        matchmaker="running" if status.is_matching else "starting",
        playlist=list(map(_linked, status.playlist)),
        follow=None if status.follow is None else _linked(status.follow),
    )


def _linked(entry: LinkedTicket) -> LinkedTicketOut:
    return LinkedTicketOut(
        ladder=entry.ladder,
        ticket=entry.ticket,
        state=entry.state,  # type: ignore[arg-type] # one of the declared values
    )


def _offer(offer: OfferStatus) -> OfferOut:
    return OfferOut(
        offer=offer.offer,
        queue=offer.queue,
        deadline=moment(offer.deadline),
        players=offer.players,
        accepted=offer.accepted,
        own=dict(offer.own),
        teams=list(offer.teams),
        match_id=offer.match,
        region=offer.region,
        attributes=dict(offer.attributes),
        map=offer.map,
        odds=None if offer.odds is None else list(offer.odds),
        spread=known_number(offer.spread),
        costs=dict(offer.costs),
        stakes={name: player_stakes_out(stakes) for name, stakes in offer.stakes.items()},
    )


def _match(begun: StartedMatch) -> MatchedOut:
    return MatchedOut(
        match_id=begun.match_id,
        state=begun.state,  # type: ignore[arg-type] # one of the declared values
        queue=begun.queue,
        region=begun.region,
        attributes=dict(begun.attributes),
        map=begun.map,
        started_at=moment(begun.started_at),
        teams=[[MatchedPlayer(player=name, role=begun.roles.get(name)) for name in team] for team in begun.teams],
    )


def _waiting(waiting: Waiting) -> WaitingOut:
    has_window = not math.isnan(waiting.window[0])  # NaN: not part of the search
    return WaitingOut(
        window=waiting.window if has_window else None,
        strict=waiting.strict,
        widens_in=waiting.widens_in,
        widens_to=waiting.widens_to,
        needed=waiting.needed,
        within=waiting.within,
        estimate=waiting.estimate,
        upper=waiting.upper,
        attributes={
            name: AttributeCountOut(accepts=list(count.values), players=count.players)
            for name, count in waiting.attributes.items()
        },
        sentences=waiting.sentences,
    )
