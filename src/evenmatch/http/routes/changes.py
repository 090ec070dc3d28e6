"""Operators make ladders and change them."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.http.access import Admin
from evenmatch.http.doing import deed
from evenmatch.http.models.base import moment
from evenmatch.http.models.changes import (
    DivisionTold,
    LadderAsked,
    LadderTold,
    RulesAsked,
    SeasonAsked,
    SeasonOpened,
    SettingsAsked,
    SettingsTold,
    StartAsked,
    Started,
)
from evenmatch.http.models.corrections import Foreseen
from evenmatch.http.models.jobs import JobTold
from evenmatch.http.replies import written
from evenmatch.http.routes.corrections import NOTHING, foreseen
from evenmatch.http.routes.jobs import accepted, plain_rebuilt
from evenmatch.http.site import Site, site_of
from evenmatch.rating import rules
from evenmatch.service.choosing import check_installed, choose
from evenmatch.service.corrections import Preview
from evenmatch.service.ladders import ChangeRules, Ladder
from evenmatch.service.replaying import Progress
from evenmatch.service.settings import Settings

router = APIRouter(prefix="/v1/ladders", tags=["ladders"])
LADDER = "/{ladder:text}"


@router.post("", response_model=LadderTold, status_code=201, operation_id="create_ladder")
async def create_ladder(asked: LadderAsked, request: Request, caller: Admin) -> Response:
    """Make a ladder, rated by an installed system."""
    site = site_of(request)
    check_installed(asked.system)

    def make() -> Ladder:
        by = rules(asked.system, asked.preset, **asked.parameters)
        settings = Settings().changed(asked.settings.named())
        body = {"system": asked.system, "preset": by.preset, "parameters": by.values()}
        done = deed(request, caller, "ladder.created", asked.name, body=body)
        return site.service.noting(done).create_ladder(asked.name, asked.system, by, settings)

    made = await site.work(make)
    site.kernels.follow()
    return written(told(made), 201)


@router.patch(LADDER, response_model=LadderTold, operation_id="change_settings")
async def change_settings(ladder: str, asked: SettingsAsked, request: Request, caller: Admin) -> Response:
    """Change title, placement, divisions and the like; ratings stay."""
    site = site_of(request)

    def change() -> Ladder:
        before = site.service.ladder(ladder).settings
        if before.changed(asked.named()) != before:
            body = asked.model_dump(mode="json", exclude_unset=True)
            done = deed(request, caller, "settings.changed", ladder, body=body)
            site.service.noting(done).change_settings(ladder, asked.named())
        return site.service.ladder(ladder)

    return written(told(await site.work(change)))


@router.put(f"{LADDER}/rules", response_model=JobTold, status_code=202, operation_id="change_rules")
async def change_rules(ladder: str, asked: RulesAsked, request: Request, caller: Admin) -> Response:
    """Rate by another system or other parameters, as a job; read and report meanwhile as before.

    Fails as a whole, with the matches, where the new rules cannot rate some, unless `skip_bad` says to leave them out.
    """
    site = site_of(request)
    wish = await site.work(_wish, site, ladder, asked)
    body = {**asked.model_dump(mode="json", by_alias=True, exclude_unset=True)}
    service = site.service.noting(deed(request, caller, "rules.changed", ladder, body=body))

    def change(progress: Progress) -> Mapping[str, object]:
        if wish is None:
            return {"told": "all of it is so already; nothing is changed"}
        made = service.change_rules(
            *(ladder, wish.system, wish.rules),
            start=wish.start,
            skip_bad=wish.skip_bad,
            progress=progress,
            event_id=asked.id,
        )
        return plain_rebuilt(made)

    return await accepted(site, "rules", ladder, change, alone=True)


@router.post(f"{LADDER}/rules/preview", response_model=Foreseen, operation_id="preview_rules")
async def preview_rules(ladder: str, asked: RulesAsked, request: Request, _: Admin) -> Response:
    """Who would move by other rules; nothing is changed."""
    site = site_of(request)

    def look() -> Preview:
        wish = _wish(site, ladder, asked)
        return NOTHING if wish is None else site.service.preview(ladder, wish, event_id=asked.id)

    return written(foreseen(await site.work(look)))


def _wish(site: Site, ladder: str, asked: RulesAsked) -> ChangeRules | None:
    """The change that is asked for; a file that defines a system may stay, and is not to be named from afar."""
    there = site.service.ladder(ladder)
    if asked.system is not None and asked.system not in (there.system, there.rules.system.name):
        check_installed(asked.system)
    return choose(
        *(site.service, there, asked.system, asked.preset, asked.parameters),
        start=asked.begin == "start",
        skip_bad=asked.skip_bad,
    )


@router.post(f"{LADDER}/seasons", response_model=SeasonOpened, operation_id="open_season")
async def open_season(ladder: str, asked: SeasonAsked, request: Request, caller: Admin) -> Response:
    """End the present season, keep its standings, and open the next."""
    site = site_of(request)
    body = asked.model_dump(mode="json", exclude_unset=True)
    service = site.service.noting(deed(request, caller, "season.opened", ladder, body=body))

    def open_next() -> SeasonOpened:
        made = service.open_season(ladder, title=asked.title, reset=asked.reset, factor=asked.factor, event_id=asked.id)
        closed = None if made.closed_at is None else moment(made.closed_at)
        return SeasonOpened(
            number=made.number,
            title=made.title,
            position=made.position,
            opened_at=moment(made.opened_at),
            closed_at=closed,
        )

    return written(await site.work(open_next))


@router.post(f"{LADDER}/start-ratings", response_model=Started, operation_id="start_ratings")
async def start_ratings(ladder: str, asked: StartAsked, request: Request, caller: Admin) -> Response:
    """Begin players who have not played here at ratings from elsewhere."""
    site = site_of(request)
    done = deed(request, caller, "ratings.started", ladder, body={"players": len(asked.ratings), "id": asked.id})
    count = await site.work(site.service.noting(done).start_ratings, ladder, asked.ratings, asked.id)
    return written(Started(players=count))


def told(ladder: Ladder) -> LadderTold:
    """A ladder as JSON knows it."""
    settings = ladder.settings.plain()
    divisions = [DivisionTold(name=one.name, lowest=one.lowest) for one in ladder.settings.standings.divisions]
    values = {name: list(one) if isinstance(one, tuple) else one for name, one in ladder.rules.values().items()}
    return LadderTold(
        name=ladder.name,
        title=ladder.title,
        system=ladder.rules.system.name,
        preset=ladder.rules.preset,
        parameters=values,
        settings=SettingsTold.model_validate({**settings, "divisions": divisions}),
        events=ladder.position,
        matches=ladder.matches,
        players=ladder.players,
        season=ladder.season,
        rebuild_due_from=ladder.due,
    )
