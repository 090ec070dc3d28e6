"""Endpoints to read ladders, their rules and seasons, and the available rating systems and policies."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from math import isnan

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch import systems
from evenmatch.http.access import Reader
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.models.base import moment
from evenmatch.http.models.ladders import (
    HeadOut,
    LadderDetails,
    LadderRules,
    LaddersPage,
    LearnedOut,
    LearnedPage,
    PoliciesPage,
    RulesOut,
    SeasonOut,
    SeasonsPage,
    SystemsPage,
)
from evenmatch.http.page_parameters import Cursor, Limit
from evenmatch.http.responses import encoded, read
from evenmatch.http.routes.ladder_changes import ladder_out
from evenmatch.http.site import site_of
from evenmatch.service.callers.access import Caller
from evenmatch.service.ladder_heads import present_head
from evenmatch.service.ladders import Ladder
from evenmatch.service.queries.descriptions import options_as_data, policies_as_data, rules_as_data, system_as_data
from evenmatch.service.seasons import Season
from evenmatch.systems.ladder_records import Learned

router = APIRouter(prefix="/v1", tags=["ladders"])
LADDER = "/ladders/{ladder:text}"


@router.get("/ladders", response_model=LaddersPage, operation_id="list_ladders")
async def list_ladders(request: Request, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The ladders that the caller may read, by name."""
    site = site_of(request)
    after = None if cursor is None else str(read_cursor(cursor, str)[0])
    ladders = await site.work(site.reading(caller).ladders, after, limit + 1, readable(caller))
    items = [ladder_out(ladder) for ladder in ladders[:limit]]
    following = write_cursor(items[-1].name) if len(ladders) > limit else None
    return read(request, LaddersPage(items=items, next=following))


@router.get(LADDER, response_model=LadderDetails, operation_id="get_ladder")
async def get_ladder(ladder: str, request: Request, caller: Reader) -> Response:
    """A ladder: its rules with every parameter explained, settings, counts and current season."""
    site = site_of(request)
    details, season = await site.work(site.reading(caller).ladder, ladder)
    fields = ladder_out(details).model_dump()
    return read(request, LadderDetails(**fields, rules=_rules(details), present_season=_season(season)))


@router.get(f"{LADDER}/rules", response_model=LadderRules, operation_id="ladder_rules")
async def ladder_rules(ladder: str, request: Request, caller: Reader) -> Response:
    """The rules for players: what a match changes and why, who is listed, where divisions begin."""
    site = site_of(request)
    details, _current = await site.work(site.reading(caller).ladder, ladder)
    settings = ladder_out(details).settings
    rules = LadderRules(ladder=details.name, title=details.title, rules=_rules(details), settings=settings)
    return read(request, rules)


@router.get(f"{LADDER}/seasons", response_model=SeasonsPage, operation_id="list_seasons")
async def list_seasons(ladder: str, request: Request, _: Reader) -> Response:
    """All seasons of a ladder; for the final standings of one use `standings?season=`."""
    site = site_of(request)
    seasons = await site.work(site.service.seasons, ladder)
    return read(request, SeasonsPage(items=[_season(season) for season in seasons], next=None))


@router.get(f"{LADDER}/head", response_model=HeadOut, operation_id="ladder_head")
async def ladder_head(ladder: str, request: Request, _: Reader) -> Response:
    """The last event of a ladder's ledger, with the seal over all its events. Kept elsewhere, it shows later
    whether events were removed."""
    site = site_of(request)
    head = await site.work(present_head, site.service, ladder)
    return read(request, HeadOut.model_validate(head.document()))


@router.get(f"{LADDER}/learned", response_model=LearnedPage, operation_id="learned_of_ladder")
async def learned_of_ladder(ladder: str, request: Request, caller: Reader) -> Response:
    """The numbers that the rating system has learned of the ladder; none for a system that learns nothing of it."""
    site = site_of(request)
    numbers = await site.work(site.reading(caller).learned, ladder)
    return read(request, LearnedPage(items=[_learned(number) for number in numbers], next=None))


@router.get("/systems", response_model=SystemsPage, operation_id="list_systems")
async def list_systems(request: Request, _: Reader) -> Response:
    """The installed rating systems: the data they need, their parameters, presets and factors."""
    return read(request, await site_of(request).work(_systems))


@router.get("/policies", response_model=PoliciesPage, operation_id="list_policies")
async def list_policies(request: Request, _: Reader) -> Response:
    """The preset policies of the matchmaker, and the effect of each option."""
    return read(request, _policies())


def readable(caller: Caller) -> Collection[str] | None:
    """The ladders that a caller may read; None: all."""
    return caller.ladders


@cache
def _systems() -> bytes:
    items = [system_as_data(systems.find(name)) for name in systems.names()]
    return encoded(SystemsPage.model_validate({"items": items, "next": None}))


@cache
def _policies() -> bytes:
    return encoded(
        PoliciesPage.model_validate({"items": policies_as_data(), "options": options_as_data(), "next": None})
    )


def _rules(ladder: Ladder) -> RulesOut:
    return RulesOut.model_validate(rules_as_data(ladder.rules))


def _learned(number: Learned) -> LearnedOut:
    low, high = (None if isnan(bound) else bound for bound in (number.low, number.high))
    return LearnedOut.model_validate({**number._asdict(), "low": low, "high": high})


def _season(season: Season) -> SeasonOut:
    return SeasonOut(
        number=season.number,
        title=season.title,
        position=season.position,
        opened_at=moment(season.opened_at),
        closed_at=None if season.closed_at is None else moment(season.closed_at),
    )
