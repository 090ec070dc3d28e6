"""Endpoints to create, change and read ladders, their rules and seasons, and to list rating systems and policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated

from fastapi import APIRouter, Query, Request
from msgspec.json import encode
from starlette.responses import Response

from evenmatch import systems
from evenmatch.accounts.access import Caller
from evenmatch.corrections.effect import Effect
from evenmatch.corrections.ladder_heads import LadderHead, present_head
from evenmatch.http.access import Admin, Reader, audit_entry
from evenmatch.http.cursors import Cursor, Limit, read_cursor, split_page
from evenmatch.http.models.corrections import CorrectionEffect
from evenmatch.http.models.from_records import model_of, page_of
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.ladders import (
    DecayOut,
    InstalledSystem,
    LadderCreate,
    LadderDetails,
    LadderOut,
    LadderRules,
    PoliciesPage,
    RulesChange,
    RulesOut,
    SeasonCreate,
    SettingsChange,
    SettingsOut,
    StartingRatings,
    StartingRatingsSet,
)
from evenmatch.http.request_bodies import described, read_body
from evenmatch.http.responses import encoded, read, read_page, written
from evenmatch.http.routes.corrections import IN_LINE, accepted, outcome, respond
from evenmatch.http.site import Site, site_of
from evenmatch.jobs import tasks
from evenmatch.jobs.jobs import Job
from evenmatch.jobs.tasks import CorrectionTask, DueTask, PreviewTask, SeasonTask
from evenmatch.ladders.descriptions import (
    check_installed,
    choose,
    options_as_data,
    policies_as_data,
    rules_as_data,
)
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.ladders import ChangeRules, Ladder
from evenmatch.ladders.seasons import Season
from evenmatch.ladders.settings import Settings
from evenmatch.rating import rules
from evenmatch.systems.ladder_records import Learned
from evenmatch.systems.system import system_as_data

changes_router = APIRouter(prefix="/v1/ladders", tags=["ladders"])
BY_NAME = "/{ladder:text}"
SEASON = model_of(Season)
NOTHING = Effect("nothing would change", [], 0, 0, 0, 0)
SAME_RULES = {"told": "the ladder already has these rules", "there_already": True, "preview": False, "effect": None}

Ahead = Annotated[float, Query(ge=0, le=366, description="Days without matches from now on; 0: none.")]


@changes_router.post("", response_model=LadderOut, status_code=201, operation_id="create_ladder")
async def create_ladder(asked: LadderCreate, request: Request, caller: Admin) -> Response:
    """Create a ladder that is rated by an installed system."""
    site = site_of(request)
    check_installed(asked.system)

    def create() -> Ladder:
        ladder_rules = rules(asked.system, asked.preset, **asked.parameters)
        settings = Settings().changed(asked.settings.named())
        body = {"system": asked.system, "preset": ladder_rules.preset, "parameters": ladder_rules.values()}
        entry = audit_entry(request, caller, "ladder.created", asked.name, body=body)
        return site.service.noting(entry).create_ladder(asked.name, asked.system, ladder_rules, settings)

    created = await site.work(create)
    site.kernels.follow()
    return written(ladder_out(created), 201)


@changes_router.patch(BY_NAME, response_model=LadderOut, operation_id="change_settings")
async def change_settings(ladder: str, asked: SettingsChange, request: Request, caller: Admin) -> Response:
    """Change settings such as title, placement or divisions.

    Only other context columns change ratings. A job rates a large ladder again, and it shows the previous ratings until
    the job has ended.
    """
    site = site_of(request)

    def change() -> Ladder:
        before = site.service.ladder(ladder).settings
        if before.changed(asked.named()) != before:
            body = asked.model_dump(mode="json", exclude_unset=True)
            entry = audit_entry(request, caller, "settings.changed", ladder, body=body)
            site.service.noting(entry).change_settings(ladder, asked.named(), rebuild=False)
        return site.service.ladder(ladder)

    changed = await site.change(ladder, change)
    if "context" in asked.named() and changed.due is not None:
        await outcome(site, DueTask(ladder))
        changed = await site.work(site.service.ladder, ladder)
    return written(ladder_out(changed))


@changes_router.put(f"{BY_NAME}/rules", response_model=JobOut, status_code=202, operation_id="change_rules")
async def change_rules(ladder: str, asked: RulesChange, request: Request, caller: Admin) -> Response:
    """Start a job that changes the rating system or its parameters. Reads and reports continue meanwhile.

    If the new rules cannot rate some matches, the job fails and lists them, unless `skip_bad` leaves them unrated.
    """
    site = site_of(request)
    body = {**asked.model_dump(mode="json", by_alias=True, exclude_unset=True)}
    entry = audit_entry(request, caller, "rules.changed", ladder, body=body)

    def begin() -> Job:
        change = _rules_change(site, ladder, asked)
        if change is None:
            return site.jobs.begin(CorrectionTask.kind, ladder, lambda _: SAME_RULES)[0]
        return site.ladder_work.begin(CorrectionTask(ladder, change, asked.id, entry), alone=True)[0]

    return accepted(await site.change(ladder, begin))


@changes_router.post(
    f"{BY_NAME}/rules/preview",
    response_model=CorrectionEffect,
    responses=IN_LINE,
    operation_id="preview_rules",
)
async def preview_rules(ladder: str, asked: RulesChange, request: Request, _: Admin) -> Response:
    """Preview which ratings would change under other rules; nothing is changed.

    If a job does this, its `result` has the preview as `effect`.
    """
    site = site_of(request)
    change = await site.change(ladder, _rules_change, site, ladder, asked)
    if change is None:
        return written(effect_out(NOTHING))
    return await respond(site, PreviewTask(ladder, change, asked.id), CorrectionEffect, _effect_or_none)


def _effect_or_none(result: Mapping[str, object]) -> object:
    """Return the effect of a preview; an empty one if the ledger already has the id."""
    return result["effect"] or tasks.effect_document(NOTHING)


def _rules_change(site: Site, ladder: str, asked: RulesChange) -> ChangeRules | None:
    """Return the requested change; None if there is none. Requests cannot name the file of a rating system."""
    current = site.service.ladder(ladder)
    if asked.system is not None and asked.system not in (current.system, current.rules.system.name):
        check_installed(asked.system)
    return choose(
        *(site.service, current, asked.system, asked.preset, asked.parameters),
        start=asked.begin == "start",
        skip_bad=asked.skip_bad,
    )


@changes_router.post(f"{BY_NAME}/seasons", response_model=SEASON, responses=IN_LINE, operation_id="open_season")
async def open_season(ladder: str, asked: SeasonCreate, request: Request, caller: Admin) -> Response:
    """End the current season, store its final standings, and open the next season."""
    body = asked.model_dump(mode="json", exclude_unset=True)
    entry = audit_entry(request, caller, "season.opened", ladder, body=body)
    task = SeasonTask(ladder, asked.title, asked.reset, asked.factor, asked.id, entry)
    return await respond(site_of(request), task, SEASON)


@changes_router.post(
    f"{BY_NAME}/start-ratings",
    response_model=None,
    operation_id="start_ratings",
    openapi_extra=described(StartingRatingsSet, StartingRatings),
)
async def start_ratings(ladder: str, request: Request, caller: Admin) -> Response:
    """Import starting ratings for players who have not played on the ladder."""
    site, asked = site_of(request), await read_body(request, StartingRatings, lambda asked: asked)
    body = {"players": len(asked.ratings), "id": asked.id}
    entry = audit_entry(request, caller, "ratings.started", ladder, body=body)
    count = await site.change(ladder, site.service.noting(entry).start_ratings, ladder, asked.ratings, asked.id)
    return written(encode(StartingRatingsSet(count)))


@changes_router.post(f"{BY_NAME}/decay", response_model=DecayOut, operation_id="decay_ratings")
async def decay_ratings(ladder: str, request: Request, caller: Admin) -> Response:
    """Lower the ratings of inactive players by the ladder's rule, as the service does once a day.

    Each week counts once, however often this is called. It is a conflict unless the ladder has inactivity=rating.
    """
    site = site_of(request)
    service = site.service.noting(audit_entry(request, caller, "ratings.decayed", ladder))
    result = await site.change(ladder, DailyDecay(service).apply, ladder)
    if result is None:
        return written(DecayOut(players=0, position=None, until=None))
    return written(DecayOut.from_record(result))


@changes_router.get(
    f"{BY_NAME}/decay/preview",
    response_model=CorrectionEffect,
    operation_id="preview_decay",
    responses={409: {"description": "The ladder has no rule for inactive players."}},
)
async def preview_decay(ladder: str, request: Request, _: Admin, days: Ahead = 0) -> Response:
    """Preview which ratings would fall after some days without matches; nothing is changed."""
    site = site_of(request)
    return read(request, effect_out(await site.change(ladder, DailyDecay(site.service).preview, ladder, days)))


def effect_out(effect: Effect) -> CorrectionEffect:
    """Return the response model of an effect."""
    return CorrectionEffect.model_validate(tasks.effect_document(effect))


def ladder_out(ladder: Ladder) -> LadderOut:
    """Return the response model of a ladder."""
    settings = {**ladder.settings.plain(), "divisions": ladder.settings.standings.divisions}
    return LadderOut.from_record(
        ladder,
        system=ladder.rules.system.name,
        preset=ladder.rules.preset,
        parameters=ladder.rules.values(),
        settings=SettingsOut.model_validate(settings),
        events=ladder.position,
        rebuild_due_from=ladder.due,
    )


router = APIRouter(prefix="/v1", tags=["ladders"])
LADDER = "/ladders/{ladder:text}"


@router.get("/ladders", response_model=page_of(LadderOut), operation_id="list_ladders")
async def list_ladders(request: Request, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the ladders that the caller may read, by name."""
    site = site_of(request)
    after = None if cursor is None else str(read_cursor(cursor, str)[0])
    ladders = await site.work(site.reading(caller).ladders, after, limit + 1, readable(caller))
    page, following = split_page(ladders, limit, lambda ladder: (ladder.name,))
    return read_page(request, LadderOut, map(ladder_out, page), following)


@router.get(LADDER, response_model=LadderDetails, operation_id="get_ladder")
async def get_ladder(ladder: str, request: Request, caller: Reader) -> Response:
    """Return a ladder: its rules with every parameter explained, settings, counts and current season."""
    site = site_of(request)
    details, season = await site.work(site.reading(caller).ladder, ladder)
    shown = LadderDetails.from_record(ladder_out(details), rules=_rules(details), present_season=season)
    return read(request, shown)


@router.get(f"{LADDER}/rules", response_model=LadderRules, operation_id="ladder_rules")
async def ladder_rules(ladder: str, request: Request, caller: Reader) -> Response:
    """Return the rules as players read them: what a match changes and why, who is listed, where divisions begin."""
    site = site_of(request)
    details, _current = await site.work(site.reading(caller).ladder, ladder)
    settings = ladder_out(details).settings
    rules = LadderRules(ladder=details.name, title=details.title, rules=_rules(details), settings=settings)
    return read(request, rules)


@router.get(f"{LADDER}/seasons", response_model=page_of(Season), operation_id="list_seasons")
async def list_seasons(ladder: str, request: Request, _: Reader) -> Response:
    """List all seasons of a ladder. `standings?season=` has the final standings of one."""
    site = site_of(request)
    seasons = await site.work(site.service.seasons, ladder)
    return read_page(request, Season, seasons)


@router.get(f"{LADDER}/head", response_model=model_of(LadderHead), operation_id="ladder_head")
async def ladder_head(ladder: str, request: Request, _: Reader) -> Response:
    """Return the last event of a ladder's ledger, with the seal over all its events.

    Store it elsewhere to find out later whether events were removed.
    """
    site = site_of(request)
    return read(request, (await site.work(present_head, site.service, ladder)).document())


@router.get(f"{LADDER}/learned", response_model=page_of(Learned), operation_id="learned_of_ladder")
async def learned_of_ladder(ladder: str, request: Request, caller: Reader) -> Response:
    """List the numbers that the rating system has learned about the ladder, if it learns any."""
    site = site_of(request)
    numbers = await site.work(site.reading(caller).learned, ladder)
    return read_page(request, Learned, numbers)


@router.get("/systems", response_model=page_of(InstalledSystem), operation_id="list_systems")
async def list_systems(request: Request, _: Reader) -> Response:
    """List the installed rating systems: the data they need, their parameters, presets and factors."""
    return read(request, await site_of(request).work(_systems))


@router.get("/policies", response_model=PoliciesPage, operation_id="list_policies")
async def list_policies(request: Request, _: Reader) -> Response:
    """List the preset policies of the matchmaker, and the effect of each option."""
    return read(request, _policies())


def readable(caller: Caller) -> Collection[str] | None:
    """Return the ladders that a caller may read; None: all."""
    return caller.ladders


@cache
def _systems() -> bytes:
    items = [system_as_data(systems.find(name)) for name in systems.names()]
    return encoded(page_of(InstalledSystem).model_validate({"items": items}))


@cache
def _policies() -> bytes:
    return encoded(PoliciesPage.model_validate({"items": policies_as_data(), "options": options_as_data()}))


def _rules(ladder: Ladder) -> RulesOut:
    return RulesOut.model_validate(rules_as_data(ladder.rules))
