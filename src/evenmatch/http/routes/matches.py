"""Endpoints to report finished matches, to read them with their reasons, and for the odds of a line-up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from evenmatch.http import report_recording
from evenmatch.http.access import Reader, Reporter, check_own
from evenmatch.http.cursors import Cursor, Limit, list_key, write_cursor
from evenmatch.http.models.base import Moment, Name, micros
from evenmatch.http.models.matches import (
    AppearanceOut,
    AssumptionsOut,
    LineUp,
    MatchesPage,
    MatchOut,
    OddsOut,
    PlayerOdds,
    PlayerResult,
    PlayerStakesOut,
    StakesRequest,
    TeamOdds,
    TeamOut,
)
from evenmatch.http.models.reports import BatchOutcome, BatchReport, MatchReport, Receipt
from evenmatch.http.request_bodies import described, read_body
from evenmatch.http.responses import encoded, read, written
from evenmatch.http.site import site_of
from evenmatch.options import options_of
from evenmatch.players.explanations import ShownRatingChange, shown, shown_number
from evenmatch.players.headlines import Explanation
from evenmatch.players.matches import MatchProfile, Part, TeamProfile
from evenmatch.players.odds import LineupMember, LineUpOdds, StakesQuery
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import OutcomeNumbers, PlayerStakes, Stakes

report_router = APIRouter(prefix="/v1/ladders/{ladder:text}/matches", tags=["matches"])


@report_router.post("", response_model=None, operation_id="report_match", openapi_extra=described(Receipt, MatchReport))
async def report_match(ladder: str, request: Request, _: Reporter) -> Response:
    """Report a finished match and return each player's rating change with factors, percentile and division.

    The match is durably stored before the response is sent. Repeating the report changes nothing and returns the same
    receipt. The same id with other content is a conflict.
    """
    site = site_of(request)
    reports = await read_body(request, MatchReport, partial(report_recording.one_match, site, ladder))
    return written(await report_recording.report(site, ladder, reports))


@report_router.post(
    "/batch", response_model=None, operation_id="report_matches", openapi_extra=described(BatchOutcome, BatchReport)
)
async def report_matches(ladder: str, request: Request, _: Reporter) -> Response:
    """Report up to 1,000 finished matches in the order in which they ended. Each is accepted or refused separately."""
    site = site_of(request)
    reports, invalid = await read_body(request, BatchReport, partial(report_recording.all_matches, site, ladder))
    return written(await report_recording.report_all(site, ladder, reports, invalid))


def player_stakes_out(stakes: PlayerStakes) -> PlayerStakesOut:
    """Return the response model of a player's stakes."""
    changes = {outcome: ShownRatingChange.of(stakes.before, after) for outcome, after in stakes.after._asdict().items()}
    return PlayerStakesOut(
        before=changes["win"].before,
        after=OutcomeNumbers(**{outcome: change.after for outcome, change in changes.items()}),
        change=OutcomeNumbers(**{outcome: change.change for outcome, change in changes.items()}),
    )


router = APIRouter(prefix="/v1/ladders/{ladder:text}", tags=["matches"])

Whose = Annotated[Name | None, Query(description="Only matches of this player.")]
Since = Annotated[Moment | None, Query(description="Only matches that ended at or after this time.")]
Until = Annotated[Moment | None, Query(description="Only matches that ended before this time.")]


@router.get("/matches", response_model=MatchesPage, operation_id="list_matches")
async def list_matches(
    ladder: str,
    request: Request,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    player: Whose = None,
    since: Since = None,
    until: Until = None,
) -> Response:
    """List matches, the last played first, with rating changes and reasons.

    With a player's token, `player` can only be that player.
    """
    site = site_of(request)
    if player is not None:
        check_own(site, caller, player)
    find = partial(
        site.reading(caller).matches,
        ladder,
        before=list_key(cursor),
        limit=limit,
        player=player,
        since=None if since is None else micros(since),
        until=None if until is None else micros(until),
    )

    def page() -> bytes:
        system, matches, further = find()
        following = None if further is None else write_cursor(*further)
        items = [_match(ladder, system, match) for match in matches]
        return encoded(MatchesPage(ladder=ladder, items=items, next=following))

    return read(request, await site.work(page))


@router.get("/matches/{match_id:text}", response_model=MatchOut, operation_id="get_match")
async def get_match(ladder: str, match_id: str, request: Request, caller: Reader) -> Response:
    """Return a recorded match: the odds before it, each player's change with factors, and reasons in sentences."""
    site = site_of(request)
    find = site.reading(caller).match
    return read(request, await site.work(lambda: encoded(_match(ladder, *find(ladder, match_id)))))


@router.get("/matches/{match_id:text}/results/{player:text}", response_model=PlayerResult, operation_id="get_result")
async def get_result(ladder: str, match_id: str, player: str, request: Request, caller: Reader) -> Response:
    """Return a match as one of its players sees it right after it, for a result screen in the game.

    The site shows the same at /ladders/{ladder}/matches/{match_id}/results/{player}. A player's token reads only that
    player.
    """
    site = site_of(request)
    check_own(site, caller, player)
    await site.views.view(ladder)
    result = await site.work(site.reading(caller).result, ladder, match_id, player)
    return read(request, PlayerResult.from_record(result, ladder=ladder))


@router.post("/odds", response_model=OddsOut, operation_id="get_odds")
async def get_odds(ladder: str, line_up: LineUp, request: Request, caller: Reader) -> Response:
    """Return the odds of a line-up with current ratings. Unknown players count as newcomers.

    With `stakes`, also what each player would gain or lose by a win, a draw, a loss and by quitting; the receipt shows
    the same numbers if the match goes as assumed. With `context`, the numbers are those for this map or mode, if the
    ladder declares the column and its system learns from it. If the ladder hides its ratings, this needs the scope
    `ratings`.
    """
    site = site_of(request)
    teams = [team.players for team in line_up.teams]
    query = None if line_up.stakes is None else _stakes_query(line_up.stakes)
    find, known = site.reading(caller).prospects, (line_up.context, line_up.entry)
    return written(await site.odds(caller, lambda: encoded(_odds(ladder, find(ladder, teams, query, *known)))))


def _match(ladder: str, system: str, match: MatchProfile) -> MatchOut:
    return MatchOut.from_record(
        match,
        ladder=ladder,
        system=system,
        teams=[
            _team(side, told or (None,) * len(side.parts))
            for side, told in zip(match.sides, match.explanations or ((),) * len(match.sides), strict=True)
        ],
        sentences=match.sentences(),
    )


def _team(side: TeamProfile, explanations: Sequence[Explanation | None]) -> TeamOut:
    label, place, score, expected = side.finish
    players = [_player(part, explanation) for part, explanation in zip(side.parts, explanations, strict=True)]
    odds = None if expected is None else shown_number(expected)
    factors = {} if explanations[0] is None else explanations[0].factors_of_team
    shared = {name: shown(value) for name, value in factors.items()}
    return TeamOut(label=label, place=place, score=score, expected=odds, factors=shared, players=players)


def _player(part: Part, explanation: Explanation | None) -> AppearanceOut:
    appearance, line = part
    if line is None:
        return AppearanceOut.from_record(appearance)
    moved: dict[str, object] = {"percentile": line.percentile, "division": line.division}
    if line.change is not None and explanation is not None:
        moved |= {
            **ShownRatingChange.of(line.change.before, line.change.after)._asdict(),
            "headline": explanation.headline,
            "otherwise": explanation.otherwise,
            "factors": {name: shown(value) for name, value in explanation.factors_of_player.items()},
        }
    return AppearanceOut.from_record(appearance, **moved)


def _stakes_query(asked: StakesRequest) -> StakesQuery:
    values = {name: getattr(asked, name) for name in options_of(StakeAssumptions)}
    return StakesQuery(StakeAssumptions.read(values), asked.players)


def _odds(ladder: str, prospects: LineUpOdds) -> OddsOut:
    stakes = {} if prospects.stakes is None else {entry.player: entry for entry in prospects.stakes.players}
    teams = [
        TeamOdds(
            players=[_member(entry, stakes.get(entry.player)) for entry in team],
            expected=prospects.odds.expected[index],
            win=list(prospects.odds.win[index]),
            draw=list(prospects.odds.draw[index]),
        )
        for index, team in enumerate(prospects.teams)
    ]
    assumptions = None if prospects.stakes is None else _assumptions(prospects.stakes)
    return OddsOut(ladder=ladder, teams=teams, assumptions=assumptions)


def _member(entry: LineupMember, stakes: PlayerStakes | None) -> PlayerOdds:
    at_stake = None if stakes is None else player_stakes_out(stakes)
    return PlayerOdds.from_record(entry, stakes=at_stake)


def _assumptions(stakes: Stakes) -> AssumptionsOut:
    values = {name: getattr(stakes.assumptions, name) for name in options_of(StakeAssumptions)}
    return AssumptionsOut(sentences=list(stakes.sentences), **values)
