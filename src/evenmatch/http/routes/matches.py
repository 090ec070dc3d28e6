"""Endpoints to report finished matches.

`http.middleware.fast_path` answers reports that are certainly valid before they reach these endpoints.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from evenmatch.errors import EvenmatchError
from evenmatch.http import report_recording
from evenmatch.http.access import Reporter
from evenmatch.http.models.matches import BatchOutcome, BatchReport, MatchReport, ReceiptOut
from evenmatch.http.request_bodies import body_schema, read_body
from evenmatch.http.responses import written
from evenmatch.http.site import site_of
from evenmatch.match import Appearance, Match, Team
from evenmatch.service.recording.report_batch import ReportBatch

router = APIRouter(prefix="/v1/ladders/{ladder:text}/matches", tags=["matches"])


@router.post("", response_model=ReceiptOut, operation_id="report_match", openapi_extra=body_schema(MatchReport))
async def report_match(ladder: str, request: Request, _: Reporter) -> Response:
    """Report a finished match; returns each player's rating change with factors, percentile and division.

    The match is durably stored before the response is sent. Repeating the report changes nothing and returns the same
    receipt; the same id with other content is a conflict.
    """
    site = site_of(request)
    reports = await read_body(
        request,
        MatchReport,
        lambda match: ReportBatch.of([match_of(ladder, match)], [match.rated]),
        lambda match: report_recording.check_size(site, 1, _players([match])),
    )
    return written(await report_recording.report(site, ladder, reports))


@router.post(
    "/batch", response_model=BatchOutcome, operation_id="report_matches", openapi_extra=body_schema(BatchReport)
)
async def report_matches(ladder: str, request: Request, _: Reporter) -> Response:
    """Report several finished matches, up to 1,000, in the order in which they ended; each is accepted separately."""
    site = site_of(request)
    reports, refused = await read_body(
        request,
        BatchReport,
        lambda batch: _sorted_out(ladder, batch),
        lambda batch: report_recording.check_size(site, len(batch.matches), _players(batch.matches)),
    )
    return written(await report_recording.report_all(site, ladder, reports, refused))


def _players(matches: Sequence[MatchReport]) -> int:
    return sum(len(team.players) for match in matches for team in match.teams)


def _sorted_out(ladder: str, batch: BatchReport) -> tuple[ReportBatch, dict[int, tuple[str, EvenmatchError]]]:
    """The valid matches of a batch, and id and error of the others by index."""
    valid: list[tuple[Match, bool]] = []
    refused: dict[int, tuple[str, EvenmatchError]] = {}
    for index, match in enumerate(batch.matches):
        try:
            valid.append((match_of(ladder, match), match.rated))
        except EvenmatchError as error:
            refused[index] = match.id, error
    return ReportBatch.of([match for match, _ in valid], [rated for _, rated in valid]), refused


def match_of(ladder: str, report: MatchReport) -> Match:
    """Convert a report to a match. Raises InputError if it is not valid."""
    teams = tuple(
        Team(
            tuple(
                Appearance(entry.player, entry.score, entry.seconds, entry.quit, entry.performance, entry.keep)
                for entry in team.players
            ),
            team.place,
            team.score,
        )
        for team in report.teams
    )
    return Match(report.id, report.played_at, teams, ladder, report.duration)
