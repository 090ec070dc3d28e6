"""Endpoints to create and change ladders."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http.access import Admin
from evenmatch.http.audit_entries import audit_entry
from evenmatch.http.models.base import moment
from evenmatch.http.models.corrections import CorrectionEffect
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.ladder_changes import (
    DecayOut,
    DivisionOut,
    LadderCreate,
    LadderOut,
    RulesChange,
    SeasonCreate,
    SeasonOpened,
    SettingsChange,
    SettingsOut,
    StartingRatings,
    StartingRatingsSet,
)
from evenmatch.http.request_bodies import body_schema, read_body
from evenmatch.http.responses import read, written
from evenmatch.http.site import Site, site_of
from evenmatch.http.task_outcomes import IN_LINE, accepted, alive, respond
from evenmatch.rating import rules
from evenmatch.service.daily_decay import DailyDecay
from evenmatch.service.jobs import Job
from evenmatch.service.ladders import ChangeRules, Ladder
from evenmatch.service.replay.effect import Effect
from evenmatch.service.rule_overrides import check_installed, choose
from evenmatch.service.settings import Settings
from evenmatch.service.work import results
from evenmatch.service.work.tasks import CorrectionTask, PreviewTask, SeasonTask

router = APIRouter(prefix="/v1/ladders", tags=["ladders"])
LADDER = "/{ladder:text}"
NOTHING = Effect("nothing would change", [], 0, 0, 0, 0)
SAME_RULES = {"told": "the ladder already has these rules", "there_already": True, "preview": False, "effect": None}

Ahead = Annotated[float, Query(ge=0, le=366, description="Days from now; 0: what falls now.")]


@router.post("", response_model=LadderOut, status_code=201, operation_id="create_ladder")
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


@router.patch(LADDER, response_model=LadderOut, operation_id="change_settings")
async def change_settings(ladder: str, asked: SettingsChange, request: Request, caller: Admin) -> Response:
    """Change settings such as title, placement or divisions; ratings stay unchanged."""
    site = site_of(request)

    def change() -> Ladder:
        before = site.service.ladder(ladder).settings
        if before.changed(asked.named()) != before:
            body = asked.model_dump(mode="json", exclude_unset=True)
            entry = audit_entry(request, caller, "settings.changed", ladder, body=body)
            site.service.noting(entry).change_settings(ladder, asked.named())
        return site.service.ladder(ladder)

    return written(ladder_out(await site.change(ladder, change)))


@router.put(f"{LADDER}/rules", response_model=JobOut, status_code=202, operation_id="change_rules")
async def change_rules(ladder: str, asked: RulesChange, request: Request, caller: Admin) -> Response:
    """Rate by another system or other parameters, as a job; reads and reports work as before meanwhile.

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

    return accepted(await alive(site, lambda: site.change(ladder, begin)))


@router.post(
    f"{LADDER}/rules/preview", response_model=CorrectionEffect, responses=IN_LINE, operation_id="preview_rules"
)
async def preview_rules(ladder: str, asked: RulesChange, request: Request, _: Admin) -> Response:
    """Preview whose rating would change under other rules; nothing is changed.

    The `result` of a job has the preview as `effect`.
    """
    site = site_of(request)
    change = await site.change(ladder, _rules_change, site, ladder, asked)
    if change is None:
        return written(effect_out(NOTHING))
    return await respond(site, PreviewTask(ladder, change, asked.id), CorrectionEffect, lambda result: result["effect"])


def _rules_change(site: Site, ladder: str, asked: RulesChange) -> ChangeRules | None:
    """The requested change; None: no change. A ladder may keep a system from a file, but requests cannot name files."""
    current = site.service.ladder(ladder)
    if asked.system is not None and asked.system not in (current.system, current.rules.system.name):
        check_installed(asked.system)
    return choose(
        *(site.service, current, asked.system, asked.preset, asked.parameters),
        start=asked.begin == "start",
        skip_bad=asked.skip_bad,
    )


@router.post(f"{LADDER}/seasons", response_model=SeasonOpened, responses=IN_LINE, operation_id="open_season")
async def open_season(ladder: str, asked: SeasonCreate, request: Request, caller: Admin) -> Response:
    """End the current season, store its final standings, and open the next season."""
    body = asked.model_dump(mode="json", exclude_unset=True)
    entry = audit_entry(request, caller, "season.opened", ladder, body=body)
    task = SeasonTask(ladder, asked.title, asked.reset, asked.factor, asked.id, entry)
    return await respond(site_of(request), task, SeasonOpened)


@router.post(
    f"{LADDER}/start-ratings",
    response_model=StartingRatingsSet,
    operation_id="start_ratings",
    openapi_extra=body_schema(StartingRatings),
)
async def start_ratings(ladder: str, request: Request, caller: Admin) -> Response:
    """Set starting ratings from elsewhere, for players who have not played on the ladder."""
    site, asked = site_of(request), await read_body(request, StartingRatings, lambda asked: asked)
    body = {"players": len(asked.ratings), "id": asked.id}
    entry = audit_entry(request, caller, "ratings.started", ladder, body=body)
    count = await site.change(ladder, site.service.noting(entry).start_ratings, ladder, asked.ratings, asked.id)
    return written(StartingRatingsSet(players=count))


@router.post(f"{LADDER}/decay", response_model=DecayOut, operation_id="decay_ratings")
async def decay_ratings(ladder: str, request: Request, caller: Admin) -> Response:
    """Lower the ratings of inactive players by the ladder's rule, as the service does by itself once a day.

    Each week counts once, however often this is called. A conflict unless the ladder has inactivity=rating.
    """
    site = site_of(request)
    service = site.service.noting(audit_entry(request, caller, "ratings.decayed", ladder))
    result = await site.change(ladder, DailyDecay(service).apply, ladder)
    if result is None:
        return written(DecayOut(players=0, position=None, until=None))
    return written(DecayOut(players=result.players, position=result.position, until=moment(result.until)))


@router.get(f"{LADDER}/decay/preview", response_model=CorrectionEffect, operation_id="preview_decay")
async def preview_decay(ladder: str, request: Request, _: Admin, days: Ahead = 0) -> Response:
    """Preview the ratings that would fall by inactivity after some days without matches; nothing is changed."""
    site = site_of(request)
    return read(request, effect_out(await site.change(ladder, DailyDecay(site.service).preview, ladder, days)))


def effect_out(effect: Effect) -> CorrectionEffect:
    """The response model of an effect."""
    return CorrectionEffect.model_validate(results.effect_document(effect))


def ladder_out(ladder: Ladder) -> LadderOut:
    """The response model of a ladder."""
    settings = ladder.settings.plain()
    divisions = [
        DivisionOut(name=division.name, lowest=division.lowest) for division in ladder.settings.standings.divisions
    ]
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in ladder.rules.values().items()}
    return LadderOut(
        name=ladder.name,
        title=ladder.title,
        system=ladder.rules.system.name,
        preset=ladder.rules.preset,
        parameters=values,
        settings=SettingsOut.model_validate({**settings, "divisions": divisions}),
        events=ladder.position,
        matches=ladder.matches,
        players=ladder.players,
        season=ladder.season,
        rebuild_due_from=ladder.due,
    )
