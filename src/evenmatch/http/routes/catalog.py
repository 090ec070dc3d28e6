"""Ladders, their rules and seasons, and what there is to make them of."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch import systems
from evenmatch.http.access import Reader
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit
from evenmatch.http.models.base import moment
from evenmatch.http.models.catalog import (
    LadderDetails,
    LadderRules,
    LaddersPage,
    PoliciesPage,
    RulesTold,
    SeasonsPage,
    SeasonTold,
    SystemsPage,
)
from evenmatch.http.replies import encoded, read
from evenmatch.http.routes.changes import told
from evenmatch.http.site import site_of
from evenmatch.service.callers.access import Caller
from evenmatch.service.describing import options_told, policies_told, rules_told, system_told
from evenmatch.service.ladders import Ladder
from evenmatch.service.seasons import Season

router = APIRouter(prefix="/v1", tags=["ladders"])
LADDER = "/ladders/{ladder:text}"


@router.get("/ladders", response_model=LaddersPage, operation_id="list_ladders")
async def list_ladders(request: Request, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The ladders that the caller may read, by name."""
    site = site_of(request)
    after = None if cursor is None else str(read_cursor(cursor, str)[0])
    found = await site.work(site.reading.ladders, after, limit + 1, readable(caller))
    items = [told(one) for one in found[:limit]]
    further = write_cursor(items[-1].name) if len(found) > limit else None
    return read(request, LaddersPage(items=items, next=further))


@router.get(LADDER, response_model=LadderDetails, operation_id="get_ladder")
async def get_ladder(ladder: str, request: Request, _: Reader) -> Response:
    """A ladder: its rules with every parameter in the system's own words, its settings, its numbers, its season."""
    site = site_of(request)
    found, season = await site.work(site.reading.ladder, ladder)
    plain = told(found).model_dump()
    return read(request, LadderDetails(**plain, rules=_rules(found), present_season=_season(season)))


@router.get(f"{LADDER}/rules", response_model=LadderRules, operation_id="ladder_rules")
async def ladder_rules(ladder: str, request: Request, _: Reader) -> Response:
    """The rules as players read them: what a match changes and why, who is listed, where divisions begin."""
    site = site_of(request)
    found, _season = await site.work(site.reading.ladder, ladder)
    plain = told(found)
    rules = LadderRules(ladder=found.name, title=found.title, rules=_rules(found), settings=plain.settings)
    return read(request, rules)


@router.get(f"{LADDER}/seasons", response_model=SeasonsPage, operation_id="list_seasons")
async def list_seasons(ladder: str, request: Request, _: Reader) -> Response:
    """All seasons of a ladder; the standings with which one ended are `standings?season=`."""
    site = site_of(request)
    found = await site.work(site.service.seasons, ladder)
    return read(request, SeasonsPage(items=[_season(one) for one in found], next=None))


@router.get("/systems", response_model=SystemsPage, operation_id="list_systems")
async def list_systems(request: Request, _: Reader) -> Response:
    """The rating systems that a ladder can have: what they need, their parameters and presets, their factors."""
    return read(request, await site_of(request).work(_systems))


@router.get("/policies", response_model=PoliciesPage, operation_id="list_policies")
async def list_policies(request: Request, _: Reader) -> Response:
    """The matchmaker's policies that a queue can have, and what each of their options does."""
    return read(request, _policies())


def readable(caller: Caller) -> Collection[str] | None:
    """The ladders of which a caller may read; None: of all."""
    return caller.ladders


@cache
def _systems() -> bytes:
    listed = [system_told(systems.find(name)) for name in systems.names()]
    return encoded(SystemsPage.model_validate({"items": listed, "next": None}))


@cache
def _policies() -> bytes:
    return encoded(PoliciesPage.model_validate({"items": policies_told(), "options": options_told(), "next": None}))


def _rules(ladder: Ladder) -> RulesTold:
    return RulesTold.model_validate(rules_told(ladder.rules))


def _season(season: Season) -> SeasonTold:
    return SeasonTold(
        number=season.number,
        title=season.title,
        position=season.position,
        opened_at=moment(season.opened_at),
        closed_at=None if season.closed_at is None else moment(season.closed_at),
    )
