"""Recorded matches, with what each did and why; and the odds of teams that might play."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http.access import Reader
from evenmatch.http.cursors import read_cursor, write_cursor
from evenmatch.http.doing import Cursor, Limit
from evenmatch.http.models.base import Moment, Name, micros, moment
from evenmatch.http.models.matches import (
    AppearanceTold,
    LineUp,
    MatchesPage,
    MatchTold,
    Odds,
    PlayerOdds,
    TeamOdds,
    TeamTold,
)
from evenmatch.http.replies import read, written
from evenmatch.http.site import site_of
from evenmatch.service.lineups import Prospects
from evenmatch.service.recorded import Part, Recorded, Side, sentences_of
from evenmatch.service.stories import Movement, shown, shown_number

router = APIRouter(prefix="/v1/ladders/{ladder:text}", tags=["matches"])

Whose = Annotated[Name | None, Query(description="Of this player alone.")]
Since = Annotated[Moment | None, Query(description="Ended then or later.")]
Until = Annotated[Moment | None, Query(description="Ended before.")]


@router.get("/matches", response_model=MatchesPage, operation_id="list_matches")
async def list_matches(
    ladder: str,
    request: Request,
    _: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    player: Whose = None,
    since: Since = None,
    until: Until = None,
) -> Response:
    """Matches in the order of the ledger, the latest first, with what each did and why.

    With `since` or `until` a page may be short, even empty, and there are more: follow `next` until it is null.
    """
    site = site_of(request)
    find = partial(
        site.reading.matches,
        ladder,
        before=None if cursor is None else int(read_cursor(cursor, int)[0]),
        limit=limit,
        player=player,
        since=None if since is None else micros(since),
        until=None if until is None else micros(until),
    )
    system, found, further = await site.work(find)
    following = None if further is None else write_cursor(further)
    items = [_told(ladder, system, one) for one in found]
    return read(request, MatchesPage(ladder=ladder, items=items, next=following))


@router.get("/matches/{match_id:text}", response_model=MatchTold, operation_id="get_match")
async def get_match(ladder: str, match_id: str, request: Request, _: Reader) -> Response:
    """A recorded match: the odds before, each player's change with its factors, and why, as a person would tell it."""
    site = site_of(request)
    system, found = await site.work(site.reading.match, ladder, match_id)
    return read(request, _told(ladder, system, found))


@router.post("/odds", response_model=Odds, operation_id="get_odds")
async def get_odds(ladder: str, line_up: LineUp, request: Request, _: Reader) -> Response:
    """What is to be expected of teams that might play, as ratings are now. Who is unknown counts as a newcomer."""
    site = site_of(request)
    teams = [team.players for team in line_up.teams]
    return written(_odds(ladder, await site.work(site.reading.prospects, ladder, teams)))


def _told(ladder: str, system: str, match: Recorded) -> MatchTold:
    """A match as JSON knows it."""
    return MatchTold(
        match_id=match.match_id,
        ladder=ladder,
        position=match.position,
        played_at=moment(match.played_at),
        duration=match.duration,
        system=system,
        state=match.state,
        reason=match.reason,
        teams=[
            _team(side, match.reasons[at] if match.reasons else ("",) * len(side.parts))
            for at, side in enumerate(match.sides)
        ],
        sentences=match.sentences(),
    )


def _team(side: Side, reasons: tuple[str, ...]) -> TeamTold:
    label, place, score, expected = side.finish
    players = [_player(part, reason) for part, reason in zip(side.parts, reasons, strict=True)]
    odds = None if expected is None else shown_number(expected)
    return TeamTold(label=label, place=place, score=score, expected=odds, players=players)


def _player(part: Part, reason: str) -> AppearanceTold:
    appearance, line = part
    reported = AppearanceTold(
        player=appearance.player,
        score=appearance.score,
        seconds=appearance.seconds,
        quit=appearance.quit,
        performance=appearance.performance,
        keep=appearance.keep,
    )
    if line is None:
        return reported
    change = line.change
    moved = {
        **Movement.of(change.before, change.after)._asdict(),
        "percentile": line.percentile,
        "division": line.division,
        "factors": {name: shown(value) for name, value in change.factors.items()},
        "sentences": sentences_of(part, reason),
    }
    return reported.model_copy(update=moved)


def _odds(ladder: str, found: Prospects) -> Odds:
    teams = [
        TeamOdds(
            players=[PlayerOdds(player=one.player, rating=one.rating, newcomer=one.newcomer) for one in team],
            expected=found.odds.expected[at],
            win=list(found.odds.win[at]),
            draw=list(found.odds.draw[at]),
        )
        for at, team in enumerate(found.teams)
    ]
    return Odds(ladder=ladder, teams=teams)
