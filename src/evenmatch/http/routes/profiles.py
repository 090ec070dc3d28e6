"""Players: where they stand, what they played, how their rating went; and finding them by name."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http.access import Reader
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit
from evenmatch.http.models.base import LONGEST, moment
from evenmatch.http.models.profiles import (
    PathPoint,
    PlayerMatch,
    PlayerMatches,
    PlayerPath,
    PlayerProfile,
    PlayersFound,
    PlayerTold,
)
from evenmatch.http.replies import read
from evenmatch.http.routes.catalog import readable
from evenmatch.http.routes.standings import standing_told
from evenmatch.http.site import Site, site_of
from evenmatch.service.callers.access import Caller
from evenmatch.service.recorded import Recorded
from evenmatch.service.stories import Movement, shown, shown_number

router = APIRouter(prefix="/v1", tags=["players"])
PLAYER = "/ladders/{ladder:text}/players/{player:text}"

Points = Annotated[int, Query(ge=2, le=2000, description="Points at most.")]
Search = Annotated[str, Query(min_length=1, max_length=LONGEST, description="A part of the name, in any case.")]
Most = Annotated[int, Query(ge=1, le=100, description="Names at most.")]


@router.get(PLAYER, response_model=PlayerProfile, operation_id="get_player")
async def get_player(ladder: str, player: str, request: Request, caller: Reader) -> Response:
    """A player on a ladder: where they stand, and what the system keeps of them. A token tells of its player alone."""
    site = site_of(request)
    _check_own(site, caller, player)
    await site.views.view(ladder)
    found = await site.work(site.reading.profile, ladder, player)
    profile = PlayerProfile(
        ladder=ladder,
        player=found.player,
        names=found.names if caller.may("admin", ladder) else None,
        standing=None if found.standing is None else standing_told(found.player, found.standing),
        state=found.state,
        banned=found.banned,
        last_played=None if found.last_played is None else moment(found.last_played),
    )
    return read(request, profile)


@router.get(f"{PLAYER}/matches", response_model=PlayerMatches, operation_id="player_matches")
async def player_matches(
    ladder: str, player: str, request: Request, caller: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """A player's matches, the latest first, and what each did to them. A token tells of its player alone."""
    site = site_of(request)
    _check_own(site, caller, player)
    before = None if cursor is None else int(read_cursor(cursor, int)[0])
    name, found, further = await site.work(site.reading.played, ladder, player, before, limit)
    items = [_match(one, name) for one in found]
    following = None if further is None else write_cursor(further)
    return read(request, PlayerMatches(ladder=ladder, player=name, items=items, next=following))


@router.get(f"{PLAYER}/path", response_model=PlayerPath, operation_id="player_path")
async def player_path(ladder: str, player: str, request: Request, caller: Reader, points: Points = 200) -> Response:
    """A player's rating over time, for a graph: of many matches those that show every peak and every low.

    A token tells of its player alone.
    """
    site = site_of(request)
    _check_own(site, caller, player)
    name, found = await site.work(site.reading.path, ladder, player, points)
    listed = [
        PathPoint(match_id=one.match_id, played_at=moment(one.played_at), rating=one.after) for one in found.steps
    ]
    return read(request, PlayerPath(ladder=ladder, player=name, points=listed))


@router.get("/players", response_model=PlayersFound, operation_id="search_players")
async def search_players(request: Request, caller: Reader, search: Search, limit: Most = 20) -> Response:
    """Names of players that hold a text: of all players, or of those on the ladders that the caller may read.

    On a ladder of more than 200,000 players, of those alone whose name begins with it.
    """
    site = site_of(request)
    return read(
        request, PlayersFound(items=await site.work(site.reading.search, search, limit, readable(caller)), next=None)
    )


@router.get("/players/{player:text}", response_model=PlayerTold, operation_id="find_player")
async def find_player(player: str, request: Request, caller: Reader) -> Response:
    """A player, and the ladders that know them. A token tells of its player alone."""
    site = site_of(request)
    _check_own(site, caller, player)
    found = await site.work(site.reading.whereabouts, player, readable(caller))
    names = found.names if caller.may("admin") else None
    return read(request, PlayerTold(player=found.player, names=names, ladders=found.ladders))


def _check_own(site: Site, caller: Caller, player: str) -> None:
    """Raise ForbiddenError where a player's token asks for another, unless anybody may."""
    if not site.options.open_reads:
        caller.speaks_for(player)


def _match(match: Recorded, name: str) -> PlayerMatch:
    """A match from the side of one player, who is in it."""
    team, at = next(
        (team, at)
        for team, side in enumerate(match.sides)
        for at, (appearance, _) in enumerate(side.parts)
        if appearance.player == name
    )
    appearance, line = match.sides[team].parts[at]
    change = None if line is None else line.change
    moved = None if change is None else Movement.of(change.before, change.after)
    return PlayerMatch(
        match_id=match.match_id,
        position=match.position,
        played_at=moment(match.played_at),
        state=match.state,
        reason=match.reason,
        team=team,
        teams=len(match.sides),
        place=match.sides[team].finish.place,
        quit=appearance.quit,
        before=None if moved is None else moved.before,
        after=None if moved is None else moved.after,
        change=None if moved is None else moved.change,
        expected=None if change is None else shown_number(change.expected),
        factors=None if change is None else {name: shown(value) for name, value in change.factors.items()},
        sentence=match.reasons[team][at] if match.reasons else None,
    )
