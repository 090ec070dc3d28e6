"""Record reported matches, from the fast path or the endpoints, and encode their receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http.fast_json import BatchLine, Outcomes, encoded, rendered
from evenmatch.http.models.matches import Outcome
from evenmatch.http.problems import problem_of
from evenmatch.http.site import Site
from evenmatch.recording.receipts import MatchReceipt
from evenmatch.recording.report_batch import ReportBatch

PLAYERS = 100_000  # in the matches of one batch: each has a line in the response
AT_ONCE = 500  # players whose lines are encoded in the event loop, within a few milliseconds


async def report(site: Site, ladder: str, reports: ReportBatch) -> bytes:
    """Record the only match of a batch and return its receipt as JSON. Raises the error that refused it."""
    (outcome,) = await site.reports.one(ladder, reports)
    if isinstance(outcome, EvenmatchError):
        raise outcome
    return await _rendered(site, ladder, len(reports.player), lambda: encoded(rendered(outcome)))


async def report_all(
    site: Site, ladder: str, reports: ReportBatch, refused: Mapping[int, tuple[str, EvenmatchError]] | None = None
) -> bytes:
    """Record the matches of a batch and return the outcome of each as JSON.

    refused  invalid matches by their index in the batch: id and error
    Raises UsageError if the batch has more matches or players than allowed.
    """
    count, players = len(reports) + len(refused or ()), len(reports.player)
    check_size(site, count, players)
    outcomes = await site.reports.one(ladder, reports) if len(reports) else []
    pairs: list[tuple[str, MatchReceipt | EvenmatchError]] = list(zip(reports.ids, outcomes, strict=True))
    for index, pair in sorted((refused or {}).items()):
        pairs.insert(index, pair)
    failed = sum(isinstance(outcome, EvenmatchError) for _, outcome in pairs)

    def render() -> bytes:
        lines = [msgspec.Raw(encoded(_line(*pair))) for pair in pairs]  # one by one, so that other threads get a turn
        return encoded(Outcomes(count - failed, failed, lines))

    return await _rendered(site, ladder, players, render)


def check_size(site: Site, matches: int, players: int) -> None:
    """Raise UsageError for a batch with more matches, or more players in them, than allowed."""
    limit = site.options.batch_limit
    if matches > limit:
        raise UsageError(f"{matches:,} matches in one batch; the limit EVENMATCH_BATCH_LIMIT is {limit:,}")
    if players > PLAYERS:
        raise UsageError(f"{players:,} players in the matches of one batch; the limit is {PLAYERS:,}")


async def _rendered(site: Site, ladder: str, players: int, render: Callable[[], bytes]) -> bytes:
    """The result of `render`, in a thread if there are many players."""
    return render() if players <= AT_ONCE else await site.convert(ladder, render)


def _line(match_id: str, outcome: MatchReceipt | EvenmatchError) -> Outcome:
    if isinstance(outcome, EvenmatchError):
        return BatchLine(match_id, problem=problem_of(outcome).model_dump(exclude_none=True))
    return BatchLine(match_id, receipt=rendered(outcome))
