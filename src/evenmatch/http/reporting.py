"""Reports of finished matches, however they were read: recorded together, answered with their receipts."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http.problems import problem_of
from evenmatch.http.rendering import Outcome, Outcomes, encoded, rendered
from evenmatch.http.site import Site
from evenmatch.service.receipts import Receipt
from evenmatch.service.sheet import Sheet


async def report(site: Site, ladder: str, sheet: Sheet) -> bytes:
    """Record the one match of a sheet: its receipt. Raises the error by which it was refused."""
    (outcome,) = await site.reports.one(ladder, sheet)
    if isinstance(outcome, EvenmatchError):
        raise outcome
    return encoded(rendered(outcome))


async def report_all(
    site: Site, ladder: str, sheet: Sheet, refused: Mapping[int, tuple[str, EvenmatchError]] | None = None
) -> bytes:
    """Record the matches of a sheet: what became of each.

    refused  those that are none, by their place in the batch: id, and why
    Raises UsageError for more than a batch may have.
    """
    limit = site.options.batch_limit
    count = len(sheet) + len(refused or ())
    if count > limit:
        raise UsageError(f"{count:,} matches in one batch; accepted are at most {limit:,}")
    outcomes = await site.reports.one(ladder, sheet) if len(sheet) else []
    listed: list[tuple[str, Receipt | EvenmatchError]] = list(zip(sheet.ids, outcomes, strict=True))
    for at, one in sorted((refused or {}).items()):
        listed.insert(at, one)
    wrong = sum(isinstance(outcome, EvenmatchError) for _, outcome in listed)
    return encoded(Outcomes(count - wrong, wrong, [_told(*one) for one in listed]))


def _told(match_id: str, outcome: Receipt | EvenmatchError) -> Outcome:
    if isinstance(outcome, EvenmatchError):
        return Outcome(match_id, problem=problem_of(outcome).model_dump(exclude_none=True))
    return Outcome(match_id, receipt=rendered(outcome))
