"""Recording of match reports: from the body of a request to the ledger, and from the ledger to the receipt.

Thousands of matches arrive per second, so valid ones become plain lists at once, and receipts are encoded by column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.json import encode
from numpy.typing import NDArray

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http.models.base import micros, time_of
from evenmatch.http.models.reports import BatchOutcome, BatchReport, MatchReport, Outcome, PlayerChange, Receipt
from evenmatch.http.problems import problem_of
from evenmatch.http.request_bodies import refused
from evenmatch.http.site import Site
from evenmatch.match import Appearance, Match, Team, places_by_score
from evenmatch.match_context import TAKEN
from evenmatch.players.explanations import shown_numbers
from evenmatch.recording.receipts import MatchReceipt, RatedBlock
from evenmatch.recording.report_batch import ReportBatch
from evenmatch.systems.system import RATING_DECIMALS, Factor, FactorValue, System
from evenmatch.times import EPOCH, is_plausible

Refused = Mapping[int, tuple[str, EvenmatchError]]  # invalid matches by their index in the batch: id and error
PLAYERS = 100_000  # most players in the matches of one batch, since each has a line in the response
AT_ONCE = 500  # most players whose lines are encoded in the event loop, which takes a few milliseconds


async def report(site: Site, ladder: str, reports: ReportBatch) -> bytes:
    """Record the only match of a batch and return its receipt as JSON. Raises the error that refused it."""
    (outcome,) = await site.reports.one(ladder, reports)
    if isinstance(outcome, EvenmatchError):
        raise outcome
    return await _rendered(site, ladder, len(reports.player), lambda: encode(rendered(outcome)))


async def report_all(site: Site, ladder: str, reports: ReportBatch, invalid: Refused) -> bytes:
    """Record the matches of a batch and return the outcome of each as JSON."""
    outcomes = await site.reports.one(ladder, reports) if len(reports) else []
    pairs: list[tuple[str, MatchReceipt | EvenmatchError]] = list(zip(reports.ids, outcomes, strict=True))
    for index, pair in sorted(invalid.items()):
        pairs.insert(index, pair)
    failed = sum(isinstance(outcome, EvenmatchError) for _, outcome in pairs)

    def render() -> bytes:
        # Encoding line by line lets other threads run in between.
        lines: list[Any] = [msgspec.Raw(encode(_line(*pair))) for pair in pairs]
        return encode(BatchOutcome(len(pairs) - failed, failed, lines))

    return await _rendered(site, ladder, len(reports.player), render)


def one_match(site: Site, ladder: str, match: MatchReport) -> ReportBatch:
    """Return a reported match as a batch. Raises RequestValidationError for a bad time, InputError for a bad match."""
    _check_size(site, [match])
    times = times_of([match])
    return _columns([match], times) or ReportBatch.of([match_of(ladder, match, times[0])], [match.rated])


def all_matches(site: Site, ladder: str, batch: BatchReport) -> tuple[ReportBatch, Refused]:
    """Return the valid matches of a batch, and the refused ones. Raises RequestValidationError, UsageError."""
    matches = batch.matches
    _check_size(site, matches)
    times = times_of(matches, "matches")
    reports = _columns(matches, times)
    if reports is not None:
        return reports, {}
    valid: list[Match] = []
    invalid: dict[int, tuple[str, EvenmatchError]] = {}
    for index, (match, time) in enumerate(zip(matches, times, strict=True)):
        try:
            valid.append(match_of(ladder, match, time))
        except EvenmatchError as error:
            invalid[index] = match.id, error
    return ReportBatch.of(valid, [match.rated for index, match in enumerate(matches) if index not in invalid]), invalid


def match_of(ladder: str, report: MatchReport, time: int) -> Match:
    """Return a reported match. time: when it ended, in microseconds. Raises InputError if the match is not valid."""
    teams = tuple(
        Team(tuple(Appearance(**msgspec.structs.asdict(entry)) for entry in team.players), team.place, team.score)
        for team in report.teams
    )
    return Match(report.id, EPOCH + timedelta(microseconds=time), teams, ladder, report.duration, report.context)


def times_of(matches: Sequence[MatchReport], *place: str) -> list[int]:
    """Return when the matches ended, in microseconds. place: path of their list in the body.

    Raises RequestValidationError.
    """
    times = []
    for index, match in enumerate(matches):
        try:
            times.append(_microseconds(match.played_at))
        except ValueError as error:
            at: tuple[str | int, ...] = (*place, index, "played_at") if place else ("played_at",)
            raise refused(at, str(error), match.played_at) from None
    return times


@lru_cache(4096)  # many matches of a batch end at the same time
def _microseconds(text: str) -> int:
    return micros(time_of(text))


def _columns(matches: Sequence[MatchReport], times: list[int]) -> ReportBatch | None:
    """Return the matches as columns if all are certainly valid; None leaves it to `Match` to find the fault."""
    places = [_places(match) for match in matches]
    is_valid = all(map(is_plausible, times)) and not any(
        len(places[index]) < len(match.teams)
        or _has_duplicates(match)
        or not match.context.keys().isdisjoint(TAKEN)
        or not all(map(str.isprintable, match.context.values()))
        for index, match in enumerate(matches)
    )
    return ReportBatch.of_fields(matches, times, places, [match.rated for match in matches]) if is_valid else None


def _places(match: MatchReport) -> Sequence[int]:
    """The reported places, or places by score; fewer than there are teams if some team has neither."""
    places = [team.place for team in match.teams if team.place is not None]
    if places:
        return places
    scores = [team.score for team in match.teams if team.score is not None]
    return places_by_score(scores) if len(scores) == len(match.teams) else ()


def _has_duplicates(match: MatchReport) -> bool:
    """Whether a player is in the match more than once."""
    names = [appearance.player for team in match.teams for appearance in team.players]
    return len(set(names)) < len(names)


def _check_size(site: Site, matches: Sequence[MatchReport]) -> None:
    """Raise UsageError for a batch with more matches, or more players in them, than allowed."""
    limit, players = site.options.batch_limit, sum(len(team.players) for match in matches for team in match.teams)
    if len(matches) > limit:
        raise UsageError(f"{len(matches):,} matches in one batch; the limit EVENMATCH_BATCH_LIMIT is {limit:,}")
    if players > PLAYERS:
        raise UsageError(f"{players:,} players in the matches of one batch; the limit is {PLAYERS:,}")


async def _rendered(site: Site, ladder: str, players: int, render: Callable[[], bytes]) -> bytes:
    """Return the result of `render`, called in a thread if there are many players."""
    return render() if players <= AT_ONCE else await site.convert(ladder, render)


def _line(match_id: str, outcome: MatchReceipt | EvenmatchError) -> Outcome:
    if isinstance(outcome, EvenmatchError):
        return Outcome(match_id, problem=problem_of(outcome))
    return Outcome(match_id, receipt=rendered(outcome))


_LINES: WeakKeyDictionary[RatedBlock, list[PlayerChange]] = (
    WeakKeyDictionary()
)  # shared by the receipts of a block while they are encoded
_BUILDING = Lock()  # several threads may encode receipts of the same block


def rendered(receipt: MatchReceipt) -> Receipt:
    """Return a receipt as a struct."""
    with _BUILDING:
        lines = _LINES.get(receipt.source)
        if lines is None:
            lines = _LINES[receipt.source] = _lines(receipt.source)
    teams = [lines[begin:end] for begin, end in pairwise(receipt.starts)]
    return Receipt(receipt.match_id, receipt.ladder, receipt.position, receipt.rated, teams, receipt.warnings)


def _lines(source: RatedBlock) -> list[PlayerChange]:
    records, system = source.records, source.system
    named = [(factor, records["factors"][factor.name]) for factor in system.factors]
    numbers = [records["expected"], source.result, *(values for factor, values in named if _is_number(factor))]
    shown = iter(shown_numbers(np.concatenate(numbers)).reshape(len(numbers), -1).tolist())  # at once: it is slow
    expected, result = next(shown), next(shown)
    factors = [next(shown) if _is_number(factor) else _labels(factor, values) for factor, values in named]
    before, after = (np.round(records[name], RATING_DECIMALS) for name in ("before", "after"))
    return list(
        map(
            PlayerChange,
            source.player,
            source.team.tolist(),
            before.tolist(),
            after.tolist(),
            np.round(after - before, RATING_DECIMALS).tolist(),
            expected,
            result,
            map(_factors_of(system), *factors) if factors else [Struct()] * len(records),
            source.percentile,
            source.division,
        )
    )


@cache
def _factors_of(system: System) -> Callable[..., Struct]:
    """A Struct class with one field for each factor of a rating system."""
    return msgspec.defstruct("Factors", [(factor.name, FactorValue) for factor in system.factors], gc=False)


def _is_number(factor: Factor) -> bool:
    return not (factor.labels or factor.flag)


def _labels(factor: Factor, values: NDArray[Any]) -> Sequence[FactorValue]:
    """Return the values of a factor that is not a number: labels or flags."""
    plain: list[int] = values.tolist()
    return [factor.labels[int(value)] for value in plain] if factor.labels else plain
