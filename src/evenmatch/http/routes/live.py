"""Endpoints for running matches: announce, report attendance, fill open slots, close or cancel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from msgspec.json import encode
from pydantic_core import to_json
from starlette.responses import Response

from evenmatch.http.access import Reader, Reporter
from evenmatch.http.models.base import micros
from evenmatch.http.models.from_records import model_of
from evenmatch.http.models.live import Announce, AttendanceReport, Backfill, Cancel, Close, LiveMatches
from evenmatch.http.models.reports import Receipt
from evenmatch.http.report_recording import rendered
from evenmatch.http.request_bodies import described
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.http.waiting_requests import until
from evenmatch.live.attendance import Ending, PlayerEnd, Presence, TeamEnd
from evenmatch.live.live_matches import Connection
from evenmatch.live.status import MatchStatus

router = APIRouter(prefix="/v1/ladders/{ladder:text}/live", tags=["running matches"])
MATCH = "/{match_id:text}"
LIVE_MATCH = model_of(MatchStatus)
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for a change after `after`.")]
After = Annotated[int | None, Query(ge=0, le=2**62, description="The latest change that the client knows.")]


@router.get("", response_model=LiveMatches, operation_id="live_matches")
async def live_matches(ladder: str, request: Request, caller: Reader, queue: str | None = None) -> Response:
    """List the running matches, latest change last. Game servers find the matches made by a queue here."""
    site = site_of(request)
    seen = (await site.visibility(caller, ladder)).of_live
    if queue is not None:
        await site.work(site.queue_service.queue, ladder, queue)

    def make() -> list[tuple[str | None, bytes]]:
        # One call for all matches would hold the interpreter's lock for too long.
        return [(match.queue, _rendered(seen.live(match))) for match in site.running.on(ladder)]

    def select() -> Response:
        items = b",".join(body for of, body in matches if queue in (None, of))
        return read(request, b'{"items":[%b]}' % items)

    # This takes long, so all callers and queues share one computation, in separate threads.
    matches = await site.computations.get(("live list", ladder, seen), partial(site.list_threads.work, ladder, make))
    return await site.work(select)


@router.get(MATCH, response_model=LIVE_MATCH, operation_id="live_match")
async def live_match(
    ladder: str, match_id: str, request: Request, caller: Reader, after: After = None, wait: Wait = 0.0
) -> Response:
    """Return a match that runs or has ended; with `after` and `wait`, wait for its next change."""
    site = site_of(request)

    find = partial(site.work, site.running.status, ladder, match_id)

    async def look() -> MatchStatus:
        return await site.computations.get(("live status", ladder, match_id), find)  # one query for all who wait

    if wait > 0 and after is not None:
        context_of(request.scope).waits = True
        async with site.waiting.poll(request, caller) as waiter:
            status = await until(look, lambda status: status.change > after, wait, waiter)
    else:
        status = await find()
    seen = await site.visibility(caller, ladder)
    question = ("live match", ladder, match_id, status.change, seen)
    body = await site.computations.get(question, partial(site.work, lambda: _rendered(seen.live(status))))
    return await site.work(read, request, body)


@router.put(MATCH, response_model=LIVE_MATCH, operation_id="announce_match")
async def announce_match(ladder: str, match_id: str, match: Announce, request: Request, caller: Reporter) -> Response:
    """Announce a match that begins, or confirm one that a queue made. Repeating the request changes nothing.

    Its players cannot queue until they leave or the match ends: on any ladder or, with a key for some ladders, on this
    one. A connection reaches each player on the ticket with which they queued.
    """
    site, given = site_of(request), match.connection
    announce = partial(
        site.running.announce,
        ladder,
        match_id,
        [team.players for team in match.teams],
        started_at=None if match.started_at is None else micros(match.started_at),
        expires_in=match.expires_in,
        queue=match.queue,
        connection=None if given is None else Connection(given.address, given.tokens),
        everywhere=caller.ladders is None,
    )
    return await _changed(site, ladder, announce)


@router.post(f"{MATCH}/presence", response_model=LIVE_MATCH, operation_id="tell_presence")
async def tell_presence(
    ladder: str, match_id: str, body: AttendanceReport, request: Request, caller: Reporter
) -> Response:
    """Report players who left, came back, or joined late."""
    site = site_of(request)
    changes = [
        Presence(change.player, None if change.at is None else micros(change.at), change.back, change.team)
        for change in body.players
    ]
    leaves = partial(site.running.leaves, ladder, match_id, changes, everywhere=caller.ladders is None)
    return await _changed(site, ladder, leaves)


@router.put(f"{MATCH}/backfill", response_model=LIVE_MATCH, operation_id="request_backfill")
async def request_backfill(ladder: str, match_id: str, body: Backfill, request: Request, caller: Reporter) -> Response:
    """Request players from a queue to fill open slots. Players who accept the offer join the match.

    They cannot queue on any ladder until they leave or the match ends. Therefore a key for some ladders gets 422 if the
    match may last longer from now on than the queue's `longest_match`.
    """
    site = site_of(request)
    everywhere = caller.ladders is None
    fill = partial(site.running.openings, ladder, match_id, body.queue, body.seats, everywhere=everywhere)
    return await _changed(site, ladder, fill)


@router.post(f"{MATCH}/close", response_model=None, operation_id="close_match", openapi_extra=described(Receipt))
async def close_match(ladder: str, match_id: str, body: Close, request: Request, _: Reporter) -> Response:
    """Close a match and record it under its id; playing times and quits follow from attendance.

    Repeating the request returns the same receipt.
    """
    ending = Ending(
        teams=[TeamEnd(team.place, team.score) for team in body.teams],
        players={
            name: PlayerEnd(end.score, end.performance, end.keep, end.entry) for name, end in body.players.items()
        },
        ended_at=None if body.ended_at is None else micros(body.ended_at),
        duration=body.duration,
        rated=body.rated,
        context=body.context,
    )
    site = site_of(request)

    def close() -> bytes:
        return encode(rendered(site.running.close(ladder, match_id, ending)))

    return written(await site.change(ladder, close))


@router.post(f"{MATCH}/cancel", response_model=LIVE_MATCH, operation_id="cancel_match")
async def cancel_match(ladder: str, match_id: str, body: Cancel, request: Request, _: Reporter) -> Response:
    """Cancel a match. It is not rated, nobody gets a penalty, and its players may queue again."""
    site = site_of(request)
    return await _changed(site, ladder, partial(site.running.cancel, ladder, match_id, body.reason))


async def _changed(site: Site, ladder: str, change: Callable[[], MatchStatus]) -> Response:
    """Change a running match, and return the response, which the same thread renders."""
    return written(await site.change(ladder, lambda: _rendered(change())))


def _rendered(status: MatchStatus) -> bytes:
    return to_json(LIVE_MATCH.model_validate(status))
