"""Fast JSON encoding of receipts, column by column, for thousands of player lines per second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from evenmatch.http.model_structs import struct_of
from evenmatch.http.models.matches import BatchOutcome, Outcome, PlayerChange, ReceiptOut
from evenmatch.service.queries.match_explanations import RATING_DECIMALS, shown_numbers
from evenmatch.service.recording.receipts import MatchReceipt, RatedBlock
from evenmatch.systems.system import Factor, FactorValue, System

encoded = msgspec.json.Encoder().encode  # NaN becomes null


# Like the models, with columns of numbers as they are shown; `factors` is a struct of the rating system's own.
ReceiptLine: Callable[..., PlayerChange] = struct_of(PlayerChange)
Rendered: Callable[..., ReceiptOut] = struct_of(ReceiptOut)
BatchLine: Callable[..., Outcome] = struct_of(Outcome)
Outcomes: Callable[..., BatchOutcome] = struct_of(BatchOutcome)

_LINES: WeakKeyDictionary[RatedBlock, list[PlayerChange]] = (
    WeakKeyDictionary()
)  # shared by the receipts of a block while they are encoded
_BUILDING = Lock()  # threads that encode receipts of the same block build its lines once


def rendered(receipt: MatchReceipt) -> ReceiptOut:
    """A receipt in the form that `encoded` encodes."""
    with _BUILDING:
        lines = _LINES.get(receipt.source)
        if lines is None:
            lines = _LINES[receipt.source] = _lines(receipt.source)
    teams = [lines[begin:end] for begin, end in pairwise(receipt.starts)]
    return Rendered(receipt.match_id, receipt.ladder, receipt.position, receipt.rated, teams, receipt.warnings)


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
            ReceiptLine,
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
    """The values of a factor that is no number: names, or whether it holds."""
    plain: list[int] = values.tolist()
    return [factor.labels[int(value)] for value in plain] if factor.labels else plain
