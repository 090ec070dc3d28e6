"""Reports of finished matches, however they were read: recorded together, answered with their receipts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http.problems import problem_of
from evenmatch.http.site import Report, Site
from evenmatch.service.receipts import Lines, Receipt

encoded = msgspec.json.Encoder().encode  # a number that is none becomes null


async def report(site: Site, ladder: str, match: Report) -> bytes:
    """Record a match: its receipt. Raises the error by which it was refused."""
    return encoded(told(await site.reports.one(ladder, match)))


async def report_all(site: Site, ladder: str, listed: Sequence[tuple[str, Report | EvenmatchError]]) -> bytes:
    """Record those of these matches that are not refused yet: what became of each, by id.

    Raises UsageError for more of them than a batch may have.
    """
    limit = site.options.batch_limit
    if len(listed) > limit:
        raise UsageError(f"{len(listed):,} matches in one batch; accepted are at most {limit:,}")
    good = [one for _, one in listed if isinstance(one, Report)]
    futures = iter(site.reports.submit(ladder, good))
    outcomes = []
    refused = 0
    for match_id, one in listed:
        try:
            if isinstance(one, EvenmatchError):
                raise one
            outcomes.append({"match_id": match_id, "receipt": told(await next(futures))})
        except EvenmatchError as error:
            refused += 1
            outcomes.append({"match_id": match_id, "problem": problem_of(error).model_dump(exclude_none=True)})
    return encoded({"recorded": len(outcomes) - refused, "refused": refused, "outcomes": outcomes})


def told(receipt: Receipt) -> dict[str, object]:
    """A receipt as `encoded` takes it."""
    return {
        "match_id": receipt.match_id,
        "ladder": receipt.ladder,
        "position": receipt.position,
        "rated": receipt.rated,
        "teams": [_team(receipt.lines, a, b) for a, b in pairwise(receipt.starts)],
    }


def _team(lines: Lines, first: int, end: int) -> list[dict[str, object]]:
    return [
        {
            "player": player,
            "team": team,
            "before": before,
            "after": after,
            "change": after - before,
            "expected": expected,
            "result": result,
            "factors": factors,
            "percentile": percentile,
            "division": division,
        }
        for player, team, before, after, expected, result, factors, percentile, division in zip(
            *(column[first:end] for column in lines), strict=True
        )
    ]
