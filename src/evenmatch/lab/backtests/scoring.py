"""Tables of a backtest, computed from the sums of its variants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.calibration import Measure, measure, reliability, resample, weigh
from evenmatch.history import Floats
from evenmatch.lab.backtests.evaluation import LOG_LOSS, MATCHES, Metrics, metrics
from evenmatch.lab.backtests.match_cells import MatchCells
from evenmatch.systems.system import Rules

RESAMPLES = 500
FEW = 10  # with fewer blocks no interval is given: bootstrap intervals would be too narrow
METRICS = ("log_loss", "three_way_log_loss", "brier", "accuracy", "calibration_slope")
TEXT = pa.large_string()
NAMED = {"system": TEXT, "variant": TEXT}
MEASURED = {f"{name}{end}": pa.float64() for name in METRICS for end in ("", "_low", "_high")}
FIRST = ("log_loss", "log_loss_low", "log_loss_high", "brier", "accuracy", "calibration_slope")
SCORES = pa.schema(
    {
        **NAMED,
        "matches": pa.int64(),
        **{name: pa.float64() for name in (*FIRST, "seconds")},
        "parameters": TEXT,
        **{name: kind for name, kind in MEASURED.items() if name not in FIRST},
    }
)
SEGMENTS = pa.schema({**NAMED, "by": TEXT, "group": TEXT, "matches": pa.int64(), **MEASURED})
RELIABILITY = pa.schema({**NAMED, **dict.fromkeys(("predicted", "observed", "low", "high", "matches"), pa.float64())})
DIFFERENCES = pa.schema({**NAMED, **dict.fromkeys(("difference", "low", "high"), pa.float64())})
TRIALS = pa.schema(
    {"system": TEXT, "trial": pa.int64(), "log_loss": pa.float64(), "parameters": TEXT, "seconds": pa.float64()}
)


class Variant(NamedTuple):
    """A system with default, preset, given or tuned parameters."""

    system: str
    variant: str
    rules: Rules


Row = dict[str, object]


@dataclass(frozen=True, eq=False)
class ScoredVariant:
    """Scored predictions of a variant: sums over cells (C, 7) and its rows of the result tables."""

    variant: Variant
    sums: Floats
    score: Row
    segments: list[Row]
    points: list[Row]

    @property
    def out_of_range(self) -> bool:
        """Whether a rating became infinite or NaN."""
        return not np.isfinite(self.sums).all()


class Resamples(NamedTuple):
    """How often each resample contains each block, float64 (R, blocks).

    every  warm-up and later blocks, resampled separately;  late: later blocks only
    """

    every: Floats
    late: Floats

    @classmethod
    def of(cls, cells: MatchCells, seed: int) -> Resamples:
        """Draw the resamples of the blocks of these cells."""
        early = resample(cells.warm_up_blocks, RESAMPLES, seed) if cells.warm_up_blocks else np.zeros((RESAMPLES, 0))
        late = resample(cells.blocks - cells.warm_up_blocks, RESAMPLES, seed + 1)
        return cls(np.concatenate((early, late), 1), np.concatenate((np.zeros_like(early), late), 1))


def judged(
    variant: Variant, sums: Floats, bins: Floats, seconds: float, cells: MatchCells, drawn: Resamples
) -> ScoredVariant:
    """Compute the result rows of a variant; its bins, which are large, are not stored."""
    name = _name(variant)
    found = _metrics(sums, bins, cells, ~cells.warm_up, drawn.late)
    score = {**name, **_row(found), "seconds": seconds, "parameters": json.dumps(variant.rules.values())}
    segments = []
    for by, group, chosen, late in _segments(cells):
        found = _metrics(sums, bins, cells, chosen, drawn.late if late else drawn.every)
        segments.append({**name, "by": by, "group": group, **_row(found)})
    points = reliability(cells.by_block(bins, ~cells.warm_up), drawn.late)
    return ScoredVariant(variant, sums, score, segments, [{**name, **vars(point)} for point in points])


def against(
    every: Sequence[ScoredVariant], base: ScoredVariant | None, cells: MatchCells, drawn: Resamples
) -> pa.Table:
    """Table of each variant's log loss minus that of `base`, on the same matches and resamples; empty without base."""
    if base is None:
        return DIFFERENCES.empty_table()
    rows = []
    base_sums = cells.by_block(base.sums, ~cells.warm_up)
    matches = base_sums[:, MATCHES]
    for result in every:
        difference = cells.by_block(result.sums, ~cells.warm_up)[:, LOG_LOSS] - base_sums[:, LOG_LOSS]
        with np.errstate(invalid="ignore", divide="ignore"):
            resampled = weigh(drawn.late, np.stack((difference, matches), 1))
            difference_measure = measure(difference.sum() / matches.sum(), resampled[:, 0] / resampled[:, 1])
        rows.append(
            {
                **_name(result.variant),
                "difference": difference_measure.value,
                "low": difference_measure.low,
                "high": difference_measure.high,
            }
        )
    return pa.Table.from_pylist(rows, schema=DIFFERENCES)


def mean_log_loss(one: ScoredVariant, cells: MatchCells) -> float:
    """Mean log loss over the matches after the warm-up."""
    sums = one.sums[~cells.warm_up].sum(0)
    return float(sums[LOG_LOSS] / sums[MATCHES])


def _segments(cells: MatchCells) -> Iterator[tuple[str, str, NDArray[np.bool_], bool]]:
    """Yield (by, group, chosen cells, whether all of them are after the warm-up) of each segment."""
    late = ~cells.warm_up
    yield "all", "all", np.ones(len(cells), np.bool_), False
    yield "warm-up", "after", late, True
    for by, index, labels in (
        ("ladder", cells.ladder, cells.ladders),
        ("experience", cells.experience, cells.experiences),
        ("period", cells.period, cells.periods),
    ):
        for number, label in enumerate(labels):
            chosen = late & (index == number)
            if chosen.any():
                yield by, label, chosen, True


def _metrics(sums: Floats, bins: Floats, cells: MatchCells, chosen: NDArray[np.bool_], drawn: Floats) -> Metrics:
    sums, bins = cells.by_block(sums, chosen), cells.by_block(bins, chosen)
    filled = sums[:, MATCHES] > 0.0
    resamples = drawn[:, filled] if filled.sum() >= FEW else np.zeros((0, int(filled.sum())))
    return metrics(sums[filled], bins[filled], resamples)


def _name(variant: Variant) -> Row:
    return {"system": variant.system, "variant": variant.variant}


def _row(found: Metrics) -> Row:
    row: Row = {"matches": found.matches}
    for name in METRICS:
        metric: Measure = getattr(found, name)
        for end, value in (("", metric.value), ("_low", metric.low), ("_high", metric.high)):
            row[name + end] = None if np.isnan(value) else value
    return row
