"""Endpoints for players: profile, matches, rating history, search, renaming, merging, erasing and odd names."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http.access import Admin, Reader, audit_entry, check_own
from evenmatch.http.cursors import Cursor, Limit, list_key, read_cursor, write_cursor
from evenmatch.http.models.base import LONGEST
from evenmatch.http.models.from_records import page_of
from evenmatch.http.models.players import (
    MergeRequest,
    PathPoint,
    PlayerCareer,
    PlayerErased,
    PlayerMatch,
    PlayerMatches,
    PlayerOut,
    PlayerPath,
    PlayerProfile,
    PlayerRenamed,
    PlayersFound,
    PlayersMerged,
    RenameRequest,
)
from evenmatch.http.responses import encoded, read, read_page, written
from evenmatch.http.routes.corrections import outcome
from evenmatch.http.routes.ladders import readable
from evenmatch.http.routes.standings import standings_out
from evenmatch.http.site import site_of
from evenmatch.jobs.tasks import DueTask
from evenmatch.players.explanations import ShownRatingChange, shown, shown_number
from evenmatch.players.matches import MatchProfile
from evenmatch.players.name_rule import OddName, odd_names
from evenmatch.players.players import NAMED_TWICE

router = APIRouter(prefix="/v1", tags=["players"])
PLAYER = "/ladders/{ladder:text}/players/{player:text}"

Points = Annotated[int, Query(ge=2, le=2000, description="Most points to return.")]
Search = Annotated[str, Query(min_length=1, max_length=LONGEST, description="A part of the name; case is ignored.")]
Most = Annotated[int, Query(ge=1, le=100, description="Most names to return.")]


@router.get(PLAYER, response_model=PlayerProfile, operation_id="get_player")
async def get_player(ladder: str, player: str, request: Request, caller: Reader) -> Response:
    """Return a player's standing and rating state on a ladder. A player's token reads only that player."""
    site = site_of(request)
    check_own(site, caller, player)
    await site.views.view(ladder)
    reading = site.reading(caller)
    profile = await site.work(reading.profile, ladder, player)
    names = profile.names if caller.may("admin", ladder) else None
    own = [] if profile.standing is None else [(profile.player, profile.standing)]
    standing = next(iter(await site.work(standings_out, reading, ladder, own)), None)
    return read(request, PlayerProfile.from_record(profile, ladder=ladder, names=names, standing=standing))


@router.get(f"{PLAYER}/matches", response_model=PlayerMatches, operation_id="player_matches")
async def player_matches(
    ladder: str, player: str, request: Request, caller: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List a player's matches, the last played first, with rating changes. A player's token reads only that player."""
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
    """Return a player's rating, percentile and division over time, for a graph. Long paths keep all peaks and lows.

    A player's token reads only that player.
    """
    site = site_of(request)
    check_own(site, caller, player)
    name, path = await site.work(site.reading(caller).path, ladder, player, points)
    shown_points = [PathPoint.from_record(step, rating=step.after) for step in path.steps]
    return read(request, PlayerPath.from_record(path, ladder=ladder, player=name, points=shown_points))


@router.get(f"{PLAYER}/career", response_model=PlayerCareer, operation_id="player_career")
async def player_career(ladder: str, player: str, request: Request, caller: Reader) -> Response:
    """Return a player's record, streaks, peak, trends, best wins, rivals and team-mates, for a player card.

    A player's token reads only that player.
    """
    site = site_of(request)
    check_own(site, caller, player)
    name, career, _ = await site.work(site.reading(caller).career, ladder, player)
    return read(request, PlayerCareer.from_record(career, ladder=ladder, player=name))


@router.get("/players", response_model=PlayersFound, operation_id="search_players")
async def search_players(request: Request, caller: Reader, search: Search, limit: Most = 20) -> Response:
    """Find players by a part of their name, on the ladders that the caller may read. Case and diacritics are ignored.

    On ladders of more than 200,000 players, only names that begin with the text are found.
    """
    site = site_of(request)
    names = await site.work(site.reading(caller).search, search, limit, readable(caller))
    return read(request, PlayersFound(items=names, next=None))


@router.get("/players/{player:text}", response_model=PlayerOut, operation_id="find_player")
async def find_player(player: str, request: Request, caller: Reader) -> Response:
    """Return a player and their ladders. A player's token reads only that player."""
    site = site_of(request)
    check_own(site, caller, player)
    identity = await site.work(site.reading(caller).whereabouts, player, readable(caller))
    names = identity.names if caller.may("admin") else None
    return read(request, PlayerOut.from_record(identity, names=names))


def _match(match: MatchProfile, name: str) -> PlayerMatch:
    """Return the response model of a match for one of its players."""
    team, slot = match.part_of(name)
    appearance, line = match.sides[team].parts[slot]
    change = None if line is None else line.change
    moved = None if change is None else ShownRatingChange.of(change.before, change.after)
    explanation = match.explanations[team][slot] if match.explanations else None
    return PlayerMatch.from_record(
        match,
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
        headline=None if explanation is None else explanation.headline,
        otherwise=None if explanation is None else explanation.otherwise,
    )


identity_router = APIRouter(prefix="/v1/players/{player:text}", tags=["players"])


@identity_router.post("/rename", response_model=PlayerRenamed, operation_id="rename_player")
async def rename_player(player: str, asked: RenameRequest, request: Request, caller: Admin) -> Response:
    """Rename a player; reports under the old name still count for them."""
    site = site_of(request)
    service = site.service.noting(audit_entry(request, caller, "player.renamed", target=player, body={"to": asked.to}))
    changed = await site.change("", service.rename, player, asked.to)
    return written(PlayerRenamed(player=asked.to, changed=changed))


@identity_router.post("/merge", response_model=PlayersMerged, operation_id="merge_player")
async def merge_player(player: str, asked: MergeRequest, request: Request, caller: Admin) -> Response:
    """Merge a player into `into`, who then has the matches of both. The two must never have met in a match.

    A later match that names the player twice is recorded, but not rated. A job rates large ladders again, and they show
    the previous ratings until it has ended.
    """
    site = site_of(request)
    service = site.service.noting(
        audit_entry(request, caller, "player.merged", target=player, body={"into": asked.into})
    )
    ladders = await site.change("", lambda: service.merge(player, asked.into, rebuild=False))
    for ladder in ladders:
        await outcome(site, DueTask(ladder))
    return written(PlayersMerged(player=asked.into, ladders=ladders, note=NAMED_TWICE))


@identity_router.post("/erase", response_model=PlayerErased, operation_id="erase_player")
async def erase_player(player: str, request: Request, caller: Admin) -> Response:
    """Replace a player's names with a pseudonym everywhere, permanently; no rating changes."""
    site = site_of(request)
    service = site.service.noting(audit_entry(request, caller, "player.erased"))
    return written(PlayerErased(pseudonym=await site.change("", service.erase, player)))


odd_names_router = APIRouter(prefix="/v1/ladders/{ladder:text}/odd-names", tags=["players"])


@odd_names_router.get("", response_model=page_of(OddName), operation_id="list_odd_names")
async def list_odd_names(ladder: str, request: Request, _: Admin, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the names on the ladder that could be mistaken for others; none if the setting `names` is any."""
    site = site_of(request)
    after = "" if cursor is None else str(read_cursor(cursor, str)[0])
    names, following = await site.work(odd_names, site.service, ladder, after, limit)
    after_page = None if following is None else write_cursor(following)
    return read_page(request, OddName, names, after_page)
