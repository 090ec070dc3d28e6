"""Endpoints for players: profile, matches, rating history, and search by name."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http.access import Reader, check_own
from evenmatch.http.cursors import list_key, write_cursor
from evenmatch.http.models.base import LONGEST, moment
from evenmatch.http.models.players import (
    InactivityOut,
    PathFall,
    PathPoint,
    PlayerMatch,
    PlayerMatches,
    PlayerOut,
    PlayerPath,
    PlayerProfile,
    PlayersFound,
)
from evenmatch.http.page_parameters import Cursor, Limit
from evenmatch.http.responses import encoded, read
from evenmatch.http.routes.ladders import readable
from evenmatch.http.routes.standings import standing_out
from evenmatch.http.site import site_of
from evenmatch.service.queries.inactivity import InactivityNotice
from evenmatch.service.queries.match_explanations import ShownRatingChange, shown, shown_number
from evenmatch.service.queries.match_profiles import MatchProfile

router = APIRouter(prefix="/v1", tags=["players"])
PLAYER = "/ladders/{ladder:text}/players/{player:text}"

Points = Annotated[int, Query(ge=2, le=2000, description="Most points to return.")]
Search = Annotated[
    str, Query(min_length=1, max_length=LONGEST, description="A part of the name; upper and lower case are the same.")
]
Most = Annotated[int, Query(ge=1, le=100, description="Most names to return.")]


@router.get(PLAYER, response_model=PlayerProfile, operation_id="get_player")
async def get_player(ladder: str, player: str, request: Request, caller: Reader) -> Response:
    """A player on a ladder: standing and rating state. A player's token reads only that player."""
    site = site_of(request)
    check_own(site, caller, player)
    await site.views.view(ladder)
    profile = await site.work(site.reading(caller).profile, ladder, player)
    response = PlayerProfile(
        ladder=ladder,
        player=profile.player,
        names=profile.names if caller.may("admin", ladder) else None,
        standing=None if profile.standing is None else standing_out(profile.player, profile.standing),
        state=profile.state,
        banned=profile.banned,
        last_played=None if profile.last_played is None else moment(profile.last_played),
        inactivity=None if profile.inactivity is None else _inactivity(profile.inactivity),
    )
    return read(request, response)


@router.get(f"{PLAYER}/matches", response_model=PlayerMatches, operation_id="player_matches")
async def player_matches(
    ladder: str, player: str, request: Request, caller: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """A player's matches, the last played first, with rating changes. A player's token reads only that player."""
    site = site_of(request)
    check_own(site, caller, player)
    before = list_key(cursor)

    def page() -> bytes:
        name, matches, further = site.reading(caller).played(ladder, player, before, limit)
        items = [_match(match, name) for match in matches]
        following = None if further is None else write_cursor(*further)
        return encoded(PlayerMatches(ladder=ladder, player=name, items=items, next=following))

    return read(request, await site.work(page))


@router.get(f"{PLAYER}/path", response_model=PlayerPath, operation_id="player_path")
async def player_path(ladder: str, player: str, request: Request, caller: Reader, points: Points = 200) -> Response:
    """A player's rating, percentile and division over time, for a graph; long paths keep every peak and low.

    A player's token reads only that player.
    """
    site = site_of(request)
    check_own(site, caller, player)
    name, path = await site.work(site.reading(caller).path, ladder, player, points)
    path_points = [
        PathPoint(
            match_id=step.match_id,
            played_at=moment(step.played_at),
            rating=step.after,
            percentile=step.percentile,
            division=step.division,
        )
        for step in path.steps
    ]
    falls = [
        PathFall(of=fall.of, fell_at=moment(fall.fell_at), before=fall.before, after=fall.after, text=fall.text)
        for fall in path.falls
    ]
    return read(request, PlayerPath(ladder=ladder, player=name, points=path_points, falls=falls))


@router.get("/players", response_model=PlayersFound, operation_id="search_players")
async def search_players(request: Request, caller: Reader, search: Search, limit: Most = 20) -> Response:
    """Names of players that contain a text, from the ladders that the caller may read. Case and diacritics are ignored.

    On a ladder of more than 200,000 players, only names that begin with the text.
    """
    site = site_of(request)
    names = await site.work(site.reading(caller).search, search, limit, readable(caller))
    return read(request, PlayersFound(items=names, next=None))


@router.get("/players/{player:text}", response_model=PlayerOut, operation_id="find_player")
async def find_player(player: str, request: Request, caller: Reader) -> Response:
    """A player and the ladders they are on. A player's token reads only that player."""
    site = site_of(request)
    check_own(site, caller, player)
    identity = await site.work(site.reading(caller).whereabouts, player, readable(caller))
    names = identity.names if caller.may("admin") else None
    return read(request, PlayerOut(player=identity.player, names=names, ladders=identity.ladders))


def _inactivity(notice: InactivityNotice) -> InactivityOut:
    leaves_at, falls_at = (None if time is None else moment(time) for time in (notice.leaves_at, notice.falls_at))
    return InactivityOut.model_validate({**notice._asdict(), "leaves_at": leaves_at, "falls_at": falls_at})


def _match(match: MatchProfile, name: str) -> PlayerMatch:
    """The response model of a match for one of its players."""
    team, slot = next(
        (team, slot)
        for team, side in enumerate(match.sides)
        for slot, (appearance, _) in enumerate(side.parts)
        if appearance.player == name
    )
    appearance, line = match.sides[team].parts[slot]
    change = None if line is None else line.change
    moved = None if change is None else ShownRatingChange.of(change.before, change.after)
    return PlayerMatch(
        match_id=match.match_id,
        position=match.position,
        played_at=moment(match.played_at),
        state=match.state,
        reason=match.reason,
        late=match.late,
        team=team,
        teams=len(match.sides),
        place=match.sides[team].finish.place,
        quit=appearance.quit,
        before=None if moved is None else moved.before,
        after=None if moved is None else moved.after,
        change=None if moved is None else moved.change,
        expected=None if change is None else shown_number(change.expected),
        percentile=None if line is None else line.percentile,
        division=None if line is None else line.division,
        factors=None if change is None else {name: shown(value) for name, value in change.factors.items()},
        sentence=match.reasons[team][slot] if match.reasons else None,
    )
