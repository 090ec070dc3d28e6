"""Receipts as they go over the wire, made by column: thousands of lines a second are told to game servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType
from numpy.typing import NDArray

from evenmatch.service.receipts import Receipt, Told
from evenmatch.service.stories import RATING_DECIMALS, shown_numbers
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
    factors = [_factor(factor, records["factors"][factor.name]) for factor in system.factors]
    before, after = (np.round(records[name], RATING_DECIMALS) for name in ("before", "after"))
    return list(
        map(
            Line,
            source.player,
            source.team.tolist(),
            before.tolist(),
            after.tolist(),
            np.round(after - before, RATING_DECIMALS).tolist(),
            shown_numbers(records["expected"]).tolist(),
            shown_numbers(source.result).tolist(),
            map(_factors_of(system), *factors) if factors else [Struct()] * len(records),
            source.percentile,
            source.division,
        )
    )


@cache
def _factors_of(system: System) -> Callable[..., Struct]:
    """The factors of one player, by name."""
    return msgspec.defstruct("Factors", [(factor.name, FactorValue) for factor in system.factors], gc=False)


def _factor(factor: Factor, values: NDArray[Any]) -> Sequence[FactorValue]:
    if factor.labels:
        return [factor.labels[int(value)] for value in values.tolist()]
    listed: list[FactorValue] = (values if factor.flag else shown_numbers(values)).tolist()
    return listed
