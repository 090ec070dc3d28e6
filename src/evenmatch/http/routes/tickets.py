"""Players wait for a match: join, look, answer, leave."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from evenmatch.errors import ForbiddenError
from evenmatch.http.access import Queuer
from evenmatch.http.asked import asked_of
from evenmatch.http.models.base import moment
from evenmatch.http.models.queues import (
    Done,
    JoinQueue,
    MatchedPlayer,
    MatchedTold,
    OfferTold,
    Say,
    TicketTold,
    WaitingTold,
)
from evenmatch.http.replies import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.http.wakes import until
from evenmatch.http.wire import wish_of
from evenmatch.matchmaking import Waiting
from evenmatch.service.callers.access import Caller
from evenmatch.service.queueing import wishes
from evenmatch.service.queueing.statuses import Asked, Begun, Status

router = APIRouter(prefix="/v1/ladders/{ladder:text}/tickets", tags=["tickets"])
Number = Annotated[int, Path(ge=1, le=2**62)]
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for a change after `after`.")]
After = Annotated[int | None, Query(ge=0, le=2**62, description="The change that is known.")]
FRESH = 5.0  # seconds after which a stream tells what a ticket waits for again
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events `ticket`."}
}


@router.post("", response_model=Done, status_code=201, operation_id="join_queue")
async def join_queue(ladder: str, party: JoinQueue, request: Request, caller: Queuer) -> Response:
    """A party wants a match, in one queue or several; the first match takes it out of all.

    With a player's token: that player alone. Ask for the ticket again within the queue's heartbeat, or it is dropped.
    """
    for member in party.members:
        caller.speaks_for(member.player)
    wish = wish_of(party)
    return written(done(ladder, await site_of(request).wishes.one(ladder, wish)), 201)


@router.get("/{ticket}", response_model=TicketTold, operation_id="ticket")
async def ticket(
    ladder: str, ticket: Number, request: Request, caller: Queuer, after: After = None, wait: Wait = 0.0
) -> Response:
    """A ticket, and what it waits for; with `after` and `wait` once it has changed. Asking is a sign of life."""
    site = site_of(request)
    asked_of(request.scope).waits = wait > 0 and after is not None
    with site.wakes.wait(ladder, ticket) as waiter:
        found = await until(
            lambda: _look(site, caller, ladder, ticket),
            lambda one: after is None or one.change > after,
            wait,
            site.stopping,
            waiter,
        )
    return read(request, told(ladder, found))


@router.get("/{ticket}/events", operation_id="ticket_events", response_class=StreamingResponse, responses=EVENTS)
async def ticket_events(ladder: str, ticket: Number, request: Request, caller: Queuer) -> StreamingResponse:
    """A ticket as server-sent events: one `ticket` now, one at each change, and one every five seconds.

    The stream ends when the ticket waits no longer. Reading it is a sign of life.
    """
    site = site_of(request)
    asked_of(request.scope).waits = True
    first = await _look(site, caller, ladder, ticket)

    async def events() -> AsyncIterator[bytes]:
        found = first
        with site.wakes.wait(ladder, ticket) as waiter:
            while True:
                body = to_json(told(ladder, found)).decode()
                yield f"id: {found.change}\nevent: ticket\ndata: {body}\n\n".encode()
                if found.state in {"matched", "gone"} or site.stopping.is_set():
                    return
                await waiter.news(FRESH, site.stopping)
                found = await _look(site, caller, ladder, ticket)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")


@router.post("/{ticket}/accept", response_model=Done, operation_id="accept_offer")
async def accept_offer(ladder: str, ticket: Number, say: Say, request: Request, caller: Queuer) -> Response:
    """A player of the ticket, or all of them, accept the match that is offered. Saying it twice is harmless."""
    player = _who(caller, say.player)
    wish = wishes.Accept(ticket, player, say.offer)
    return written(done(ladder, await site_of(request).wishes.one(ladder, wish)))


@router.post("/{ticket}/decline", response_model=Done, operation_id="decline_offer")
async def decline_offer(ladder: str, ticket: Number, say: Say, request: Request, caller: Queuer) -> Response:
    """A player declines: the ticket is gone, the others wait again with their age, and who declined waits it out."""
    player = _who(caller, say.player)
    wish = wishes.Decline(ticket, player, say.offer)
    return written(done(ladder, await site_of(request).wishes.one(ladder, wish)))


@router.delete("/{ticket}", response_model=Done, operation_id="leave_queue")
async def leave_queue(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """The party waits no longer. While a match is offered, that is to decline it."""
    wish = wishes.Leave(ticket, caller.player)
    return written(done(ladder, await site_of(request).wishes.one(ladder, wish)))


@router.post("/{ticket}/heartbeat", status_code=204, operation_id="heartbeat")
async def heartbeat(ladder: str, ticket: Number, request: Request, caller: Queuer) -> Response:
    """The party is still there. Who asks for the ticket now and then need not say so."""
    await _look(site_of(request), caller, ladder, ticket)
    return Response(status_code=204)


def _who(caller: Caller, player: str | None) -> str | None:
    """Who says so: a player's token speaks for its player."""
    if caller.player is None:
        return player
    if player is not None:
        caller.speaks_for(player)
    return caller.player


async def _look(site: Site, caller: Caller, ladder: str, ticket: int) -> Status:
    """A ticket, which is theirs where a player asks."""
    found = await site.looks.one(ladder, ticket)
    if caller.player is not None and caller.player not in found.players:
        raise ForbiddenError(f"ticket {ticket} is another party's; a player's token is for {caller.player!r} alone")
    return found


def done(ladder: str, outcome: wishes.Told) -> Done:
    """What became of a wish, as it goes over the wire."""
    return Done(
        ticket=outcome.ticket,
        ladder=ladder,
        state=outcome.state,  # type: ignore[arg-type] # one of these
        change=outcome.change,
        offer=outcome.offer,
        match_id=outcome.match_id,
    )


def told(ladder: str, status: Status) -> TicketTold:
    """A ticket as it goes over the wire."""
    return TicketTold(
        ticket=status.ticket,
        ladder=ladder,
        state=status.state,  # type: ignore[arg-type] # one of these
        change=status.change,
        players=list(status.players),
        queues=list(status.queues),
        queued_at=moment(status.queued_at),
        waited=status.waited,
        ended=status.ended,
        offer=None if status.offer is None else _offer(status.offer),
        match=None if status.match is None else _match(status.match),
        waiting={queue: _waiting(one) for queue, one in status.waiting.items()},
        matchmaker="running" if status.is_matching else "starting",
    )


def _offer(asked: Asked) -> OfferTold:
    return OfferTold(
        offer=asked.offer,
        queue=asked.queue,
        deadline=moment(asked.deadline),
        players=asked.players,
        accepted=asked.accepted,
        own=dict(asked.own),
        teams=list(asked.teams),
        match_id=asked.match,
        region=asked.region,
        odds=asked.odds,
        spread=asked.spread,
        costs=dict(asked.costs),
    )


def _match(begun: Begun) -> MatchedTold:
    return MatchedTold(
        match_id=begun.match_id,
        state=begun.state,  # type: ignore[arg-type] # one of these
        queue=begun.queue,
        region=begun.region,
        started_at=moment(begun.started_at),
        teams=[[MatchedPlayer(player=one, role=begun.roles.get(one)) for one in team] for team in begun.teams],
    )


def _waiting(waiting: Waiting) -> WaitingTold:
    known = not math.isnan(waiting.window[0])  # else it is left out of the search
    return WaitingTold(
        window=waiting.window if known else None,
        strict=waiting.strict,
        widens_in=waiting.widens_in,
        widens_to=waiting.widens_to,
        needed=waiting.needed,
        within=waiting.within,
        estimate=waiting.estimate,
        sentences=waiting.sentences,
    )
