"""Record reported matches, from the fast path or the endpoints, and encode their receipts."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http.models.matches import Outcome
from evenmatch.http.problems import problem_of
from evenmatch.http.receipt_json import BatchLine, Outcomes, encoded, rendered
from evenmatch.http.site import Site
from evenmatch.service.recording.receipts import MatchReceipt
from evenmatch.service.recording.report_batch import ReportBatch


async def report(site: Site, ladder: str, reports: ReportBatch) -> bytes:
    """Record the only match of a batch and return its receipt as JSON. Raises the error that refused it."""
    (outcome,) = await site.reports.one(ladder, reports)
    if isinstance(outcome, EvenmatchError):
        raise outcome
    return encoded(rendered(outcome))


async def report_all(
    site: Site, ladder: str, reports: ReportBatch, refused: Mapping[int, tuple[str, EvenmatchError]] | None = None
) -> bytes:
    """Record the matches of a batch and return the outcome of each as JSON.

    refused  invalid matches by their index in the batch: id and error
    Raises UsageError if the batch has more matches than allowed.
    """
    limit = site.options.batch_limit
    count = len(reports) + len(refused or ())
    if count > limit:
        raise UsageError(f"{count:,} matches in one batch; the limit is {limit:,}")
    outcomes = await site.reports.one(ladder, reports) if len(reports) else []
    pairs: list[tuple[str, MatchReceipt | EvenmatchError]] = list(zip(reports.ids, outcomes, strict=True))
    for index, pair in sorted((refused or {}).items()):
        pairs.insert(index, pair)
    failed = sum(isinstance(outcome, EvenmatchError) for _, outcome in pairs)
    return encoded(Outcomes(count - failed, failed, [_line(*pair) for pair in pairs]))


def _line(match_id: str, outcome: MatchReceipt | EvenmatchError) -> Outcome:
    if isinstance(outcome, EvenmatchError):
        return BatchLine(match_id, problem=problem_of(outcome).model_dump(exclude_none=True))
    return BatchLine(match_id, receipt=rendered(outcome))
