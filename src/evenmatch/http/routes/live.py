"""Game servers tell of matches that are on: begun, left, joined, closed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http.access import Reader, Reporter
from evenmatch.http.asked import asked_of
from evenmatch.http.models.base import micros, moment
from evenmatch.http.models.live import (
    Announce,
    Backfill,
    Cancel,
    Close,
    LiveMatch,
    LiveMatches,
    LivePlayer,
    Presences,
    SpellTold,
)
from evenmatch.http.models.matches import Receipt
from evenmatch.http.rendering import encoded, rendered
from evenmatch.http.replies import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.http.wakes import until
from evenmatch.service.playing.presence import Ending, PlayerEnd, Presence, TeamEnd
from evenmatch.service.playing.status import MatchStatus

router = APIRouter(prefix="/v1/ladders/{ladder:text}/live", tags=["running matches"])
MATCH = "/{match_id:text}"
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for a change after `after`.")]
After = Annotated[int | None, Query(ge=0, le=2**62, description="The change that is known.")]


@router.get("", response_model=LiveMatches, operation_id="live_matches")
async def live_matches(ladder: str, request: Request, _: Reader, queue: str | None = None) -> Response:
    """The matches that are on, the latest change last: those that a queue made wait here for a server to play them."""
    found = await site_of(request).work(site_of(request).running.on, ladder)
    listed = [told(one) for one in found if queue is None or one.queue == queue]
    return read(request, LiveMatches(items=listed))


@router.get(MATCH, response_model=LiveMatch, operation_id="live_match")
async def live_match(
    ladder: str, match_id: str, request: Request, _: Reader, after: After = None, wait: Wait = 0.0
) -> Response:
    """A running match, or one that was; with `after` and `wait` once it has changed."""
    site = site_of(request)
    if wait and after is not None:
        asked_of(request.scope).waits = True

    async def look() -> MatchStatus:
        return await site.work(site.running.status, ladder, match_id)

    found = await until(look, lambda one: after is None or one.change > after, wait, site.stopping)
    return read(request, told(found))


@router.put(MATCH, response_model=LiveMatch, operation_id="announce_match")
async def announce_match(ladder: str, match_id: str, match: Announce, request: Request, _: Reporter) -> Response:
    """A match begins. One that a queue made is confirmed so. The same again changes nothing."""
    site = site_of(request)
    found = await site.work(_announce, site, ladder, match_id, match)
    return written(told(found))


def _announce(site: Site, ladder: str, match_id: str, match: Announce) -> MatchStatus:
    return site.running.announce(
        ladder,
        match_id,
        [team.players for team in match.teams],
        started_at=None if match.started_at is None else micros(match.started_at),
        expires_in=match.expires_in,
        queue=match.queue,
    )


@router.post(f"{MATCH}/presence", response_model=LiveMatch, operation_id="tell_presence")
async def tell_presence(ladder: str, match_id: str, body: Presences, request: Request, _: Reporter) -> Response:
    """Players left, came back, or came late."""
    listed = [
        Presence(one.player, None if one.at is None else micros(one.at), one.back, one.team) for one in body.players
    ]
    return written(told(await site_of(request).work(site_of(request).running.leaves, ladder, match_id, listed)))


@router.put(f"{MATCH}/backfill", response_model=LiveMatch, operation_id="wish_backfill")
async def wish_backfill(ladder: str, match_id: str, body: Backfill, request: Request, _: Reporter) -> Response:
    """Wish for players from a queue to fill open seats; who accepts joins the match."""
    running = site_of(request).running
    return written(told(await site_of(request).work(running.openings, ladder, match_id, body.queue, body.seats)))


@router.post(f"{MATCH}/close", response_model=Receipt, operation_id="close_match")
async def close_match(ladder: str, match_id: str, body: Close, request: Request, _: Reporter) -> Response:
    """A match ended: it is recorded under its id, with seconds and quitters from who was there when.

    The same again gets the same answer.
    """
    ending = Ending(
        teams=[TeamEnd(team.place, team.score) for team in body.teams],
        players={name: PlayerEnd(one.score, one.performance, one.keep) for name, one in body.players.items()},
        ended_at=None if body.ended_at is None else micros(body.ended_at),
        duration=body.duration,
        rated=body.rated,
    )
    receipt = await site_of(request).work(site_of(request).running.close, ladder, match_id, ending)
    return written(encoded(rendered(receipt)))


@router.post(f"{MATCH}/cancel", response_model=LiveMatch, operation_id="cancel_match")
async def cancel_match(ladder: str, match_id: str, body: Cancel, request: Request, _: Reporter) -> Response:
    """A match is not to be rated, and nobody is blamed; its players may queue again."""
    return written(told(await site_of(request).work(site_of(request).running.cancel, ladder, match_id, body.reason)))


def told(status: MatchStatus) -> LiveMatch:
    """A running match as it goes over the wire."""
    return LiveMatch(
        match_id=status.match_id,
        ladder=status.ladder,
        change=status.change,
        state=status.state,  # type: ignore[arg-type] # one of these
        made_by="announcement" if status.announced else "queue",
        confirmed=status.confirmed,
        queue=status.queue,
        region=status.region,
        odds=status.odds,
        spread=status.spread,
        started_at=moment(status.started_at),
        expires_at=moment(status.expires_at),
        ended_at=None if status.ended_at is None else moment(status.ended_at),
        reason=status.reason,
        openings=None if status.openings is None else list(status.openings[1]),
        teams=[
            [
                LivePlayer(
                    player=one.player,
                    role=one.role,
                    ticket=one.ticket,
                    there=one.is_there,
                    spells=[
                        SpellTold(came=moment(came), left=None if left is None else moment(left))
                        for came, left in one.spells
                    ],
                )
                for one in team
            ]
            for team in status.teams
        ],
    )
