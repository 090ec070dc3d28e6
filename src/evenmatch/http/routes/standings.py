"""Who stands where: pages of the standings, around somebody, among friends, and how ratings are spread."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from itertools import pairwise
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.errors import UsageError
from evenmatch.http.access import Reader
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit
from evenmatch.http.models.base import Name
from evenmatch.http.models.standings import (
    Among,
    Around,
    Bin,
    DistributionTold,
    DivisionCut,
    StandingRow,
    StandingsPage,
    StandingTold,
)
from evenmatch.http.replies import encoded, read
from evenmatch.http.site import Site, site_of
from evenmatch.service.boards import View
from evenmatch.service.seasons import Final
from evenmatch.service.service import Service
from evenmatch.standings.board import Standing

router = APIRouter(prefix="/v1/ladders/{ladder:text}/standings", tags=["standings"])
BINS = 40
FRIENDS = 500

Number = Annotated[
    int | None, Query(alias="season", ge=1, le=2**31, description="A season; otherwise the present one.")
]
EachSide = Annotated[int, Query(ge=0, le=100, description="Players above, and players below.")]
Bins = Annotated[int, Query(ge=2, le=200, description="Ranges at most.")]
Friends = Annotated[
    list[Name], Query(alias="player", min_length=1, max_length=FRIENDS, description="A name, as often as there are.")
]


@router.get("", response_model=StandingsPage, operation_id="get_standings")
async def get_standings(
    ladder: str, request: Request, _: Reader, limit: Limit = 50, cursor: Cursor = None, number: Number = None
) -> Response:
    """The listed players, best first: now, or as a season ended.

    Listed is who completed the placement matches, and a match within the active days. On a ladder of very many players
    the standings may be some seconds old.
    """
    site = site_of(request)
    if number is not None and not await _is_present(site, ladder, number):
        offset = 0 if cursor is None else _offset(cursor)
        return read(request, await site.work(_finals, site, ladder, number, offset, limit))
    if cursor is not None:
        _place(cursor)
    question = ("standings", limit, cursor)
    make = partial(_page, site.service, limit=limit, cursor=cursor)
    return await _shown(site, request, ladder, question, make)


@router.get("/around/{player:text}", response_model=Around, operation_id="standings_around")
async def standings_around(ladder: str, player: str, request: Request, _: Reader, each_side: EachSide = 5) -> Response:
    """A player between those above and those below; who is not listed, among those around the place of their rating."""
    site = site_of(request)
    await site.views.view(ladder)
    name, standing, rows = await site.work(site.reading.around, ladder, player, each_side)
    items = [standing_told(*row) for row in rows]
    return read(request, Around(ladder=ladder, player=name, standing=standing_told(name, standing), items=items))


@router.get("/among", response_model=Among, operation_id="standings_among")
async def standings_among(ladder: str, request: Request, _: Reader, players: Friends) -> Response:
    """Some players alone, with the ladder's ranks: the listed first, then the others by rating."""
    site = site_of(request)
    await site.views.view(ladder)
    rows, missing = await site.work(site.reading.among, ladder, players)
    return read(request, Among(ladder=ladder, items=[standing_told(*row) for row in rows], missing=missing))


async def _shown(
    site: Site, request: Request, ladder: str, question: Hashable, make: Callable[[View], bytes]
) -> Response:
    """What a ladder's standings answer to a question, kept for the next who asks."""
    view, body = await site.views.page(ladder, question, make)
    site.answers.keep(request, ladder, view, body)
    return read(request, body)


def standing_told(name: str, standing: Standing) -> StandingTold:
    """Where a player stands, as JSON knows it."""
    return StandingTold(**_row(name, standing).model_dump(), placed=standing.placed, active=standing.active)


def _row(name: str, one: Standing | Final) -> StandingRow:
    return StandingRow(
        rank=one.rank,
        player=name,
        rating=one.rating,
        percentile=one.percentile,
        division=one.division,
        matches=one.matches,
        completed=one.completed,
    )


def _page(service: Service, view: View, *, limit: int, cursor: str | None) -> bytes:
    """A page of a view, as JSON."""
    taken = view.snapshot
    rows = taken.page(1, limit + 1) if cursor is None else taken.after(*_place(cursor), limit + 1)
    items = [_row(*row) for row in service.named(rows[:limit])]
    last = rows[limit - 1] if len(rows) > limit else None
    page = StandingsPage(
        ladder=view.head.name,
        title=view.settings.title or view.head.name,
        season=None,
        listed=len(taken),
        active=taken.population,
        players=len(taken.board),
        placement=view.settings.standings.placement,
        rebuild_due=view.head.due is not None,
        items=items,
        next=None if last is None else write_cursor(last.rating, last.player),
    )
    return encoded(page)


def _place(cursor: str) -> tuple[float, int]:
    """The rating and the id of the player with whom a page ended. Raises UsageError."""
    rating, player = read_cursor(cursor, float, int)
    return float(rating), int(player)


def _offset(cursor: str) -> int:
    offset = int(read_cursor(cursor, int)[0])
    if offset < 0:
        raise UsageError(f"cursor {cursor[:50]!r}: accepted is the `next` of a page before, as it came")
    return offset


async def _is_present(site: Site, ladder: str, number: int) -> bool:
    """Whether a season is the one that has not ended."""
    return any(one.number == number and one.closed_at is None for one in await site.work(site.service.seasons, ladder))


def _finals(site: Site, ladder: str, number: int, offset: int, limit: int) -> StandingsPage:
    """A page of the standings with which a season ended."""
    settings, found = site.reading.finals(ladder, number, offset, limit + 1)
    return StandingsPage(
        ladder=ladder,
        title=settings.title or ladder,
        season=number,
        listed=None,
        active=None,
        players=None,
        placement=settings.standings.placement,
        rebuild_due=False,
        items=[_row(one.player, one) for one in found[:limit]],
        next=write_cursor(offset + limit) if len(found) > limit else None,
    )


distribution = APIRouter(prefix="/v1/ladders/{ladder:text}/distribution", tags=["standings"])


@distribution.get("", response_model=DistributionTold, operation_id="rating_distribution")
async def rating_distribution(ladder: str, request: Request, _: Reader, bins: Bins = BINS) -> Response:
    """How many active players have which rating, in round ranges, and where divisions begin."""
    return await _shown(site_of(request), request, ladder, ("distribution", bins), partial(_spread, bins=bins))


def _spread(view: View, *, bins: int) -> bytes:
    found = view.snapshot.distribution(bins)
    ranges = zip(pairwise(found.edges.tolist()), found.counts.tolist(), strict=True)
    told = DistributionTold(
        ladder=view.head.name,
        active=view.snapshot.population,
        bins=[Bin(low=low, high=high, players=count) for (low, high), count in ranges],
        divisions=[
            DivisionCut(name=one.division.name, lowest=one.division.lowest, rating=one.rating)
            for one in view.snapshot.cuts()
        ],
    )
    return encoded(told)
