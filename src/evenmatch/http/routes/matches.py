"""Game servers report finished matches, and get back what these did."""

from __future__ import annotations

import math

from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.responses import Response

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http.access import Reporter
from evenmatch.http.models.matches import BatchOutcome, BatchReport, MatchReport, Receipt
from evenmatch.http.problems import problem_of
from evenmatch.http.replies import JSON
from evenmatch.http.site import Report, Site, site_of
from evenmatch.match import Appearance, Match, Team
from evenmatch.service import receipts

router = APIRouter(prefix="/v1/ladders/{ladder:text}/matches", tags=["matches"])


@router.post("", response_model=Receipt, operation_id="report_match")
async def report_match(ladder: str, match: MatchReport, request: Request, _: Reporter) -> Response:
    """Report a finished match, and get back each player's change with its factors, percentile and division.

    Durable when it is answered. The same id with the same content changes nothing and gets the same answer; with other
    content it is a conflict.
    """
    site = site_of(request)
    report = Report(match_of(ladder, match), match.rated)
    receipt = await site.reports.one(ladder, report)
    return Response(to_json(told(receipt)), media_type=JSON)


@router.post("/batch", response_model=BatchOutcome, operation_id="report_matches")
async def report_matches(ladder: str, batch: BatchReport, request: Request, _: Reporter) -> Response:
    """Report several finished matches, up to 1,000, in the order in which they ended; each stands for itself."""
    site = site_of(request)
    limit = site.options.batch_limit
    if len(batch.matches) > limit:
        raise UsageError(f"{len(batch.matches):,} matches in one batch; accepted are at most {limit:,}")
    body = await _report_all(site, ladder, batch)
    return Response(body, media_type=JSON)


async def _report_all(site: Site, ladder: str, batch: BatchReport) -> bytes:
    outcomes: list[dict[str, object]] = [{} for _ in batch.matches]
    good: list[tuple[int, Report]] = []
    for at, match in enumerate(batch.matches):
        try:
            good.append((at, Report(match_of(ladder, match), match.rated)))
        except EvenmatchError as error:
            outcomes[at] = _refused(match.id, error)
    futures = site.reports.submit(ladder, [report for _, report in good])
    for (at, report), future in zip(good, futures, strict=True):
        try:
            outcomes[at] = {"match_id": report.match.id, "receipt": told(await future)}
        except EvenmatchError as error:
            outcomes[at] = _refused(report.match.id, error)
    refused = sum("problem" in one for one in outcomes)
    return to_json({"recorded": len(outcomes) - refused, "refused": refused, "outcomes": outcomes})


def _refused(match_id: str, error: EvenmatchError) -> dict[str, object]:
    return {"match_id": match_id, "problem": problem_of(error).model_dump(exclude_none=True)}


def match_of(ladder: str, report: MatchReport) -> Match:
    """A report as a match. Raises InputError where it is none."""
    teams = tuple(
        Team(
            tuple(
                Appearance(one.player, one.score, one.seconds, one.quit, one.performance, one.keep)
                for one in team.players
            ),
            team.place,
            team.score,
        )
        for team in report.teams
    )
    return Match(report.id, report.played_at, teams, ladder, report.duration)


def told(receipt: receipts.Receipt) -> dict[str, object]:
    """A receipt as JSON knows it."""
    return {
        "match_id": receipt.match_id,
        "ladder": receipt.ladder,
        "position": receipt.position,
        "rated": receipt.rated,
        "teams": [[_line(line) for line in team] for team in receipt.teams],
    }


def _line(line: receipts.Line) -> dict[str, object]:
    change = line.change
    return {
        "player": change.player,
        "team": change.team,
        "before": change.before,
        "after": change.after,
        "change": change.after - change.before,
        "expected": change.expected,
        "result": change.result,
        "factors": {name: known(value) for name, value in change.factors.items()},
        "percentile": line.percentile,
        "division": line.division,
    }


def known(value: float | bool | str) -> float | bool | str | None:
    """A factor as JSON knows it: what is no number there is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
