"""Endpoints for standings: pages, around a player, among selected players; and the rating distribution."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.errors import UsageError
from evenmatch.http.access import Reader
from evenmatch.http.cursors import Cursor, Limit, read_cursor, write_cursor
from evenmatch.http.models.base import Name
from evenmatch.http.models.standings import (
    DistributionBin,
    DistributionOut,
    DivisionCut,
    NeighboursOut,
    SelectedStandings,
    StandingOut,
    StandingsPage,
)
from evenmatch.http.responses import encoded, read
from evenmatch.http.site import Site, site_of
from evenmatch.ladders.ladder_queries import LadderQueries, Named
from evenmatch.ladders.seasons import StandingRow
from evenmatch.ladders.standings import View

router = APIRouter(prefix="/v1/ladders/{ladder:text}/standings", tags=["standings"])
BINS = 40
FRIENDS = 500

Number = Annotated[
    int | None, Query(alias="season", ge=1, le=2**31, description="Number of a season; default: the current one.")
]
EachSide = Annotated[int, Query(ge=0, le=100, description="Number of players above, and of players below.")]
Bins = Annotated[int, Query(ge=2, le=200, description="Most ranges to return.")]
Friends = Annotated[
    list[Name],
    Query(
        alias="player", min_length=1, max_length=FRIENDS, description="Name of a player; repeat the parameter for each."
    ),
]


@router.get("", response_model=StandingsPage, operation_id="get_standings")
async def get_standings(
    ladder: str, request: Request, caller: Reader, limit: Limit = 50, cursor: Cursor = None, number: Number = None
) -> Response:
    """List the listed players, best first: now, or at the end of a season.

    A player is listed after the placement matches, if the last match was within the active days. On a very large ladder
    the standings may be some seconds old. All pages show the same moment if each is requested within a minute of the
    previous one. Otherwise `moved` is true.
    """
    site = site_of(request)
    if number is not None and not await _is_current(site, ladder, number):
        return read(request, await site.work(_finals, site.reading(caller), ladder, number, cursor, limit))
    if cursor is not None:
        _place(cursor)
    make = partial(_page, site, site.reading(caller), limit=limit, cursor=cursor)
    return read(request, await site.views.body(request, ladder, caller, make))


@router.get("/around/{player:text}", response_model=NeighboursOut, operation_id="standings_around")
async def standings_around(
    ladder: str, player: str, request: Request, caller: Reader, each_side: EachSide = 5
) -> Response:
    """Return a player and the listed players above and below. An unlisted player is placed by rating, if shown."""
    site = site_of(request)
    await site.views.view(ladder)
    reading = site.reading(caller)
    name, standing, rows = await site.work(reading.around, ladder, player, each_side)
    own, *items = await site.work(standings_out, reading, ladder, [(name, standing), *rows])
    return read(request, NeighboursOut(ladder=ladder, player=name, standing=own, items=items))


@router.get("/among", response_model=SelectedStandings, operation_id="standings_among")
async def standings_among(ladder: str, request: Request, caller: Reader, players: Friends) -> Response:
    """Return selected players with their ranks: listed players first, then the others by rating, if it is shown."""
    site = site_of(request)
    await site.views.view(ladder)
    reading = site.reading(caller)
    rows, missing = await site.work(reading.among, ladder, players)
    items = await site.work(standings_out, reading, ladder, rows)
    return read(request, SelectedStandings(ladder=ladder, items=items, missing=missing))


def standings_out(reading: LadderQueries, ladder: str, rows: Named) -> list[StandingOut]:
    """Return the response models of standings."""
    records = reading.records(reading.view(ladder), [standing for _, standing in rows])
    return [StandingOut.from_record(standing, player=name, record=records[standing.player]) for name, standing in rows]


def _page(site: Site, reading: LadderQueries, view: View, *, limit: int, cursor: str | None) -> bytes:
    walk, moved = view, False
    if cursor is None:
        rows = view.snapshot.page(1, limit + 1)
    else:
        place, player, identity = _place(cursor)
        kept = site.views.kept.find(view, identity)
        walk, moved = kept or view, kept is None
        rows = walk.snapshot.after(place, player, limit + 1)
    records = reading.records(walk, rows[:limit])
    items = [
        StandingRow(name, *standing[1:7], records.get(standing.player))
        for name, standing in site.service.named(rows[:limit])
    ]
    following = None
    if len(rows) > limit:
        site.views.kept.keep(walk)
        last = rows[limit - 1].player
        following = write_cursor(walk.snapshot.place_of(last), last, walk.identity)
    page = StandingsPage(
        ladder=view.head.name,
        title=view.settings.title or view.head.name,
        season=None,
        listed=len(walk.snapshot),
        active=walk.snapshot.population,
        players=len(walk.snapshot.board),
        placement=view.settings.standings.placement,
        rebuild_due=view.head.due is not None,
        items=items,
        next=following,
        moved=moved,
    )
    return encoded(page)


def _place(cursor: str) -> tuple[float, int, str]:
    """Decode a cursor: the last player's place (see Snapshot.place_of) and id, and the view's identity.

    Raises UsageError.
    """
    place, player, identity = read_cursor(cursor, float, int, str)
    return float(place), int(player), str(identity)


def _offset(cursor: str, order: str) -> int | None:
    """Return the number of rows before a page of final standings; None if the previous page had another order.

    Raises UsageError.
    """
    try:
        offset, previous = read_cursor(cursor, int, str)
    except UsageError:
        _place(cursor)  # it may come from the standings before the season ended
        return None
    return int(offset) if previous == order and int(offset) >= 0 else None


async def _is_current(site: Site, ladder: str, number: int) -> bool:
    """Return whether a season has not ended."""
    seasons = await site.work(site.service.seasons, ladder)
    return any(season.number == number and season.closed_at is None for season in seasons)


def _finals(reading: LadderQueries, ladder: str, number: int, cursor: str | None, limit: int) -> StandingsPage:
    """Return a page of a season's final standings; the first one if the previous page had another order."""
    order = reading.order_of_finals(ladder)
    offset = 0 if cursor is None else _offset(cursor, order)
    moved, begin = offset is None, 0 if offset is None else offset
    settings, rows = reading.finals(ladder, number, begin, limit + 1)
    return StandingsPage(
        ladder=ladder,
        title=settings.title or ladder,
        season=number,
        listed=None,
        active=None,
        players=None,
        placement=settings.standings.placement,
        rebuild_due=False,
        items=rows[:limit],
        next=write_cursor(begin + limit, order) if len(rows) > limit else None,
        moved=moved,
    )


distribution = APIRouter(prefix="/v1/ladders/{ladder:text}/distribution", tags=["standings"])


@distribution.get("", response_model=DistributionOut, operation_id="rating_distribution")
async def rating_distribution(ladder: str, request: Request, caller: Reader, bins: Bins = BINS) -> Response:
    """Return the numbers of active players in round ranges of ratings, and the ratings at which divisions begin."""
    make = partial(_distribution, bins=bins)
    return read(request, await site_of(request).views.body(request, ladder, caller, make))


def _distribution(view: View, *, bins: int) -> bytes:
    histogram = view.snapshot.distribution(bins)
    ranges: list[tuple[tuple[float, float], int]] = []
    if histogram is not None:
        ranges += zip(pairwise(histogram.edges.tolist()), histogram.counts.tolist(), strict=True)
    response = DistributionOut(
        ladder=view.head.name,
        active=view.snapshot.population,
        bins=[DistributionBin(low=low, high=high, players=count) for (low, high), count in ranges],
        divisions=[DivisionCut.from_record(cut.division, rating=cut.rating) for cut in view.snapshot.cuts()],
    )
    return encoded(response)
