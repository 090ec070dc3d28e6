"""Game servers report finished matches, and get back what these did.

What is certainly good is answered by `http.express` before it gets here.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.errors import EvenmatchError
from evenmatch.http import reporting
from evenmatch.http.access import Reporter
from evenmatch.http.models.matches import BatchOutcome, BatchReport, MatchReport, Receipt
from evenmatch.http.replies import written
from evenmatch.http.site import site_of
from evenmatch.match import Appearance, Match, Team
from evenmatch.service.sheet import Sheet

router = APIRouter(prefix="/v1/ladders/{ladder:text}/matches", tags=["matches"])


@router.post("", response_model=Receipt, operation_id="report_match")
async def report_match(ladder: str, match: MatchReport, request: Request, _: Reporter) -> Response:
    """Report a finished match, and get back each player's change with its factors, percentile and division.

    Durable when it is answered. The same id with the same content changes nothing and gets the same answer; with other
    content it is a conflict.
    """
    sheet = Sheet.of([match_of(ladder, match)], [match.rated])
    return written(await reporting.report(site_of(request), ladder, sheet))


@router.post("/batch", response_model=BatchOutcome, operation_id="report_matches")
async def report_matches(ladder: str, batch: BatchReport, request: Request, _: Reporter) -> Response:
    """Report several finished matches, up to 1,000, in the order in which they ended; each stands for itself."""
    good: list[tuple[Match, bool]] = []
    refused: dict[int, tuple[str, EvenmatchError]] = {}
    for at, match in enumerate(batch.matches):
        try:
            good.append((match_of(ladder, match), match.rated))
        except EvenmatchError as error:
            refused[at] = match.id, error
    sheet = Sheet.of([match for match, _ in good], [rated for _, rated in good])
    return written(await reporting.report_all(site_of(request), ladder, sheet, refused))


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
