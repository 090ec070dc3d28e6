"""Receipts as they go over the wire, made by column: thousands of lines a second are told to game servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Struct, UnsetType

from evenmatch.service.receipts import Receipt, Told
from evenmatch.systems.system import Factor, FactorValue, System

encoded = msgspec.json.Encoder().encode  # a number that is none becomes null


class Line(Struct, frozen=True, gc=False):
    """What a match did to one player; see models.matches.PlayerChange."""

    player: str
    team: int
    before: float
    after: float
    change: float
    expected: float
    result: float
    factors: Struct
    percentile: int | None
    division: str | None


class Rendered(Struct, frozen=True):
    """What recording a match did; see models.matches.Receipt."""

    match_id: str
    ladder: str
    position: int
    rated: bool
    teams: list[list[Line]]


class Outcome(Struct, frozen=True):
    """What became of one match of a batch; see models.matches.Outcome."""

    match_id: str
    receipt: Rendered | UnsetType = UNSET
    problem: dict[str, object] | UnsetType = UNSET


class Outcomes(Struct, frozen=True):
    """What became of a batch; see models.matches.BatchOutcome."""

    recorded: int
    refused: int
    outcomes: list[Outcome]


_LINES: WeakKeyDictionary[Told, list[Line]] = WeakKeyDictionary()  # of what is being answered


def rendered(receipt: Receipt) -> Rendered:
    """A receipt as `encoded` takes it."""
    lines = _LINES.get(receipt.source)
    if lines is None:
        lines = _LINES[receipt.source] = _lines(receipt.source)
    teams = [lines[a:b] for a, b in pairwise(receipt.starts)]
    return Rendered(receipt.match_id, receipt.ladder, receipt.position, receipt.rated, teams)


def _lines(source: Told) -> list[Line]:
    """Every line."""
    records, system = source.records, source.rules.system
    factors = [_factor(factor, records["factors"][factor.name].tolist()) for factor in system.factors]
    return list(
        map(
            Line,
            source.player,
            source.team.tolist(),
            records["before"].tolist(),
            records["after"].tolist(),
            (records["after"] - records["before"]).tolist(),
            records["expected"].tolist(),
            source.result.tolist(),
            map(_factors_of(system), *factors) if factors else [Struct()] * len(records),
            source.percentile,
            source.division,
        )
    )


@cache
def _factors_of(system: System) -> Callable[..., Struct]:
    """The factors of one player, by name."""
    return msgspec.defstruct("Factors", [(factor.name, FactorValue) for factor in system.factors], gc=False)


def _factor(factor: Factor, values: list[float]) -> Sequence[FactorValue]:
    return [factor.labels[int(value)] for value in values] if factor.labels else values
