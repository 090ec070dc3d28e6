"""Comparison of the waits that parties were told when they joined with those that followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.calibration import Measure, measure, resample, weigh
from evenmatch.ledger.tables.formed_matches import FormedMatch

BLOCKS = 100  # groups of consecutive matches that are resampled
FEW = 10  # with fewer groups no interval is given
RESAMPLES = 500


@dataclass(frozen=True)
class WaitAccuracy:
    """Estimates of waits in the matches of a queue, with 95 % intervals.

    parties  that were told an estimate when they joined
    within_estimate  the share of them that waited less than the estimate: half, if it is calibrated
    within_upper     the share of them that waited less than the upper figure: nine of ten
    """

    parties: int
    within_estimate: Measure
    within_upper: Measure


def measure_waits(formed: Sequence[FormedMatch]) -> WaitAccuracy:
    """Compare the waits of matches, oldest first, with what their parties were told."""
    rows = np.array(
        [
            (index, 1.0, waited < quantiles[0], waited < quantiles[1])
            for index, match in enumerate(formed)
            for waited, quantiles in zip(match.forecast["waits"], match.forecast.get("estimates", ()), strict=False)
            if quantiles is not None
        ],
        np.float64,
    ).reshape(-1, 4)
    if not len(rows):
        unknown = Measure(np.nan, np.nan, np.nan)
        return WaitAccuracy(0, unknown, unknown)
    matches, place = np.unique(rows[:, 0], return_inverse=True)
    blocks = min(BLOCKS, len(matches))
    block = place * blocks // len(matches)
    values = np.stack([np.bincount(block, column, blocks) for column in rows[:, 1:].T], axis=1)
    total, resampled = values.sum(axis=0), weigh(resample(blocks, RESAMPLES if blocks >= FEW else 0, 1), values)

    def share(column: int) -> Measure:
        return measure(float(total[column] / total[0]), resampled[:, column] / resampled[:, 0])

    return WaitAccuracy(int(total[0]), share(1), share(2))
