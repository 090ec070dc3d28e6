"""Endpoints for tickets: join queues, follow a ticket, answer an offer, leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from msgspec.json import encode
from msgspec.structs import asdict
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from evenmatch.accounts.access import Caller
from evenmatch.http.access import Queuer
from evenmatch.http.models.queues import OfferOut, TicketOut
from evenmatch.http.models.tickets import JoinRequest, OfferAnswer, PartyMember, TicketChange
from evenmatch.http.request_bodies import described, read_body
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read, written
from evenmatch.http.routes.matches import player_stakes_out
from evenmatch.http.site import Site, site_of
from evenmatch.http.waiting_requests import EventStream, until
from evenmatch.queues import requests
from evenmatch.queues.queue_service import of_another_party
from evenmatch.queues.queue_sql import MATCHED
from evenmatch.queues.ticket_status import OfferStatus, Status, StatusRead

router = APIRouter(prefix="/v1/ladders/{ladder:text}/tickets", tags=["tickets"])
Number = Annotated[int, Path(ge=1, le=2**62)]
LONGEST_WAIT = 60.0  # longest long poll, in seconds
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a change after `after`.")]
After = Annotated[int | None, Query(ge=0, le=2**62, description="The latest change that the client knows.")]
RESULT = tuple(field.name for field in fields(requests.RequestResult))
FRESH = 5.0  # seconds between two events of a stream without changes
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/TicketEvent"}}},
        "description": "Events `ticket`, `announced`, `rated`.",
    }
}


@router.post(
    "",
    response_model=None,
    status_code=201,
    operation_id="join_queue",
    openapi_extra=described(TicketChange, JoinRequest, 201),
)
async def join_queue(ladder: str, request: Request, caller: Queuer) -> Response:
    """Join one or more queues as a party. The first match removes the ticket from all of them.

    With a playlist, the party also waits in queues of other ladders, with a ticket on each: see `playlist` of a ticket.
    With a player's token, only that player can join. A ticket that is not read within the queue's heartbeat is removed.
    """
    join = _permitted(caller, await read_body(request, JoinRequest, _join_of))
    return await _answered(request, ladder, join, 201)


@router.get("/{ticket}", response_model=TicketOut, operation_id="ticket")
async def ticket(
    ladder: str, ticket: Number, request: Request, caller: Queuer, after: After = None, wait: Wait = 0.0
) -> Response:
    """Return a ticket and its search state; with `after` and `wait`, wait for a change. Counts as a heartbeat."""
    site = site_of(request)
    status = None if wait <= 0 or after is None else await _changed(request, caller, ladder, ticket, after, wait)
    status = status or await _status(site, caller, ladder, ticket)
    seen = await site.visibility(caller, ladder)
    return read(request, ticket_out(ladder, seen.ticket(status)))


@router.get("/{ticket}/events", operation_id="ticket_events", response_class=StreamingResponse, responses=EVENTS)
async def ticket_events(ladder: str, ticket: Number, request: Request, caller: Queuer) -> StreamingResponse:
    """Stream a ticket as server-sent events: one now, one at each change, and one every five seconds while it waits.

    An event is named `announced` while its match has a connection, `rated` once it has changed ratings, and `ticket`
    otherwise. The stream ends when the ticket is gone or its match has ended, and after a minute. Reading it counts as
    a heartbeat.
    """
    site = site_of(request)
    context_of(request.scope).waits = True

    async def events(status: Status) -> AsyncIterator[bytes]:
        async with site.waiting.stream(LONGEST_WAIT) as waiter:
            with site.ticket_notifications.telling(ladder, ticket, waiter):
                known = -1
                while True:
                    if status.state == MATCHED and status.change == known:
                        yield b": nothing new\n\n"  # keeps the connection open
                    else:
                        seen = await site.visibility(caller, ladder)
                        body = to_json(ticket_out(ladder, seen.ticket(status))).decode()
                        yield f"id: {status.change}\nevent: {_event_of(status)}\ndata: {body}\n\n".encode()
                    if status.is_over or site.stopping.is_set():
                        return
                    known = status.change
                    await waiter.news(FRESH)
                    if waiter.is_over:
                        return
                    status = await _status(site, caller, ladder, ticket)

    with ExitStack() as held:
        held.enter_context(site.waiting.place(request, caller))
        return EventStream(events(await _status(site, caller, ladder, ticket)), held.pop_all())


def _event_of(status: Status) -> Literal["ticket", "announced", "rated"]:
    match = status.match
    if match is None or (match.connection is None and match.receipt is None):
        return "ticket"
    if match.receipt is None:
        return "announced"
    return "rated" if match.receipt.rated else "ticket"


@router.post(
    "/{ticket}/accept",
    response_model=None,
    operation_id="accept_offer",
    openapi_extra=described(TicketChange, OfferAnswer),
)
async def accept_offer(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """Accept the offered match, for one player of the ticket or all of them. Repeating it changes nothing."""
    say = await read_body(request, OfferAnswer, lambda say: say)
    player = _player_of(caller, say.player)
    return await _answered(request, ladder, requests.Accept(ticket, player, say.offer, caller.player is not None))


@router.post(
    "/{ticket}/decline",
    response_model=None,
    operation_id="decline_offer",
    openapi_extra=described(TicketChange, OfferAnswer),
)
async def decline_offer(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """Decline the offered match. The ticket is removed and the player penalized; the other parties keep waiting."""
    say = await read_body(request, OfferAnswer, lambda say: say)
    player = _player_of(caller, say.player)
    return await _answered(request, ladder, requests.Decline(ticket, player, say.offer, caller.player is not None))


@router.delete("/{ticket}", response_model=None, operation_id="leave_queue", openapi_extra=described(TicketChange))
async def leave_queue(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """Leave the queues. While a match is offered, this declines it."""
    return await _answered(request, ladder, requests.Leave(ticket, caller.player, caller.player is not None))


@router.post("/{ticket}/heartbeat", status_code=204, operation_id="heartbeat")
async def heartbeat(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """Report that the party is still there. Clients that read the ticket regularly do not need this."""
    await _status(site_of(request), caller, ladder, ticket)
    return Response(status_code=204)


def _permitted(caller: Caller, join: requests.Join) -> requests.Join:
    """Return the join, limited to the ladders that the caller may read.

    Raises ForbiddenError unless the caller may queue these players, and on the other ladders of the playlist.
    """
    for member in join.members:
        caller.speaks_for(member.name)
    for ladder in join.playlist:
        caller.check("queue", ladder)
    return join if caller.ladders is None else replace(join, readable=caller.ladders)


def _player_of(caller: Caller, player: str | None) -> str | None:
    """Return the player whom a request concerns. A player's token always acts for its own player."""
    if caller.player is None:
        return player
    if player is not None:
        caller.speaks_for(player)
    return caller.player


async def _changed(
    request: Request, caller: Caller, ladder: str, ticket: int, after: int, wait: float
) -> Status | None:
    """Return a ticket once it has changed after `after`; None if it does not change for `wait` seconds."""
    site = site_of(request)
    context_of(request.scope).waits = True
    async with site.waiting.poll(request, caller) as waiter:
        with site.ticket_notifications.telling(ladder, ticket, waiter):
            look = partial(_status, site, caller, ladder, ticket, after)
            status = await until(look, lambda status: status.change > after, wait, waiter)
    return status if status.change > after else None


async def _status(site: Site, caller: Caller, ladder: str, ticket: int, since: int = -1) -> Status:
    """Return a ticket as the caller may see it, and count this as a heartbeat.

    since  see StatusRead
    Raises ForbiddenError for a player's token of another party, whose request is no heartbeat.
    """
    status = await site.status_reads.one(ladder, StatusRead(ticket, since))
    own = player = caller.player
    if player is not None and player not in status.players:  # the names under which they joined
        own = await site.work(site.queue_service.member_name, ladder, ticket, player)
        if own is None:
            raise of_another_party(ticket, player)
    site.queue_service.heartbeats.note(ladder, status)
    return status.seen_by(caller, own)


async def _answered(request: Request, ladder: str, queue_request: requests.QueueRequest, status: int = 200) -> Response:
    """Carry out a request to the queues of a ladder, and respond with its result."""
    result = await site_of(request).wishes.one(ladder, queue_request)
    change = TicketChange(ladder=ladder, **{name: getattr(result, name) for name in RESULT})
    return written(encode(change), status)


def _join_of(party: JoinRequest) -> requests.Join:
    members = tuple(_queued(member) for member in party.members)
    return requests.Join(members=members, queues=party.queues, request=party.request_id, playlist=party.playlist)


def _queued(member: PartyMember) -> requests.QueuedPlayer:
    values = asdict(member)
    return requests.QueuedPlayer(name=values.pop("player"), **values)


def ticket_out(ladder: str, status: Status) -> TicketOut:
    """Return the response model of a ticket."""
    offer = None if status.offer is None else _offer(status.offer)
    return TicketOut.from_record(status, ladder=ladder, offer=offer)


def _offer(offer: OfferStatus) -> OfferOut:
    stakes = {name: player_stakes_out(stakes) for name, stakes in offer.stakes.items()}
    return OfferOut.from_record(offer, stakes=stakes)
