"""The mixture of the experts' log-odds x: P = σ(c · Σ a · x).

Online logistic regressions learn the weights a, which are never negative, and the factor c. Because negative weights
are cut off, the mixture alone would be overconfident; the factor calibrates it.
"""

from __future__ import annotations

import math

from evenmatch.history import Floats
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.experts.records import EXPERTS, LEAST_WEIGHT, MOST_WEIGHT, Even, Record
from evenmatch.systems.ladder_records import LadderRecords

FARTHEST = 20.0  # log-odds of an expert
FORGET = 3e-6  # variance that a match adds to each weight and to the factor
LEAST_FACTOR = 0.1  # of the mixed log-odds, however short a match is
LEAST_CALIBRATION, MOST_CALIBRATION = 0.5, 1.5
TRIANGLE = EXPERTS * (EXPERTS + 1) // 2


@kernel
def log_odds(chance: float) -> float:
    """log(p / (1 − p)), at most FARTHEST from 0."""
    if chance <= 1e-9:
        return -FARTHEST
    if chance >= 1.0 - 1e-9:
        return FARTHEST
    return math.log(chance / (1.0 - chance))


@kernel
def calibrated_weight(record: Record, expert: int) -> float:
    """The weight of an expert's log-odds in the odds."""
    return record.calibration * record.weight[expert]


@kernel
def scale_of(record: Record, params: Even) -> float:
    """The sum of the calibrated weights."""
    total = 0.0
    for expert in range(params.experts):
        total += record.weight[expert]
    return record.calibration * total


@kernel
def calibration_of(ladder: LadderRecords, pool: int) -> float:
    """The factor of the mixed log-odds for the match's context values."""
    shared = ladder.records[pool]
    factor = shared.calibration
    for column in range(len(ladder.values)):
        if shared.values[column] > 1.0:
            value = ladder.records[ladder.values[column]]
            factor += value.scale + shared.law[column] * longer(value, shared, column)
    return max(factor, LEAST_FACTOR)


@kernel
def longer(value: Record, shared: Record, column: int) -> float:
    """How much longer than usual a match with this context value is, as a logarithm; 0 if the value is no number."""
    return 0.0 if math.isnan(value.length) else value.length - shared.usual_length[column]


@kernel
def learn_calibration(ladder: LadderRecords, pool: int, gradient: float, curvature: float, times: float) -> None:
    """Learn the factor from the gradient and curvature of the log-likelihood of this many results."""
    record = ladder.records[pool]
    for column in range(len(ladder.values)):
        if record.values[column] > 1.0:
            value = ladder.records[ladder.values[column]]
            value.scale_variance /= 1.0 + curvature * value.scale_variance
            value.scale += value.scale_variance * gradient
            more = longer(value, record, column)
            record.law_variance[column] /= 1.0 + curvature * more * more * record.law_variance[column]
            record.law[column] += record.law_variance[column] * more * gradient
    variance = record.calibration_variance / (1.0 + curvature * record.calibration_variance)
    factor = record.calibration + variance * gradient
    record.calibration = min(max(factor, LEAST_CALIBRATION), MOST_CALIBRATION)
    record.calibration_variance = variance + FORGET * times


@kernel
def shrink_covariance(record: Record, x: Floats, row: int, column: int, information: float, params: Even) -> float:
    """Update the covariance S for `information` about the direction x, a row of scratch (Sherman and Morrison).

    Writes the old S x to the columns after x. Returns its factor in the new one, which has the same direction.
    """
    count = params.experts
    along = 0.0
    for i in range(count):
        total = 0.0
        for j in range(count):
            total += record.weight_covariance[i * EXPERTS + j] * x[row, column + j]
        x[row, column + EXPERTS + i] = total
        along += x[row, column + i] * total
    kept = 1.0 / (1.0 + information * along)
    for i in range(count):
        change = information * kept * x[row, column + EXPERTS + i]
        for j in range(count):
            record.weight_covariance[i * EXPERTS + j] -= change * x[row, column + EXPERTS + j]
    return kept


@kernel
def keep_positive(record: Record, times: float, params: Even) -> None:
    """Keep each weight from 0 up and their sum from LEAST_WEIGHT to MOST_WEIGHT, and add each match's variance."""
    total = 0.0
    for expert in range(params.experts):
        record.weight[expert] = max(record.weight[expert], 0.0)
        record.weight_covariance[expert * EXPERTS + expert] += FORGET * times
        total += record.weight[expert]
    if total > MOST_WEIGHT:
        for expert in range(params.experts):
            record.weight[expert] *= MOST_WEIGHT / total
    if total < LEAST_WEIGHT:
        for expert in range(params.experts):
            record.weight[expert] = LEAST_WEIGHT / params.experts


@rarely
def learn_weights(
    record: Record, scratch: Floats, row: int, column: int, chance: float, score: float, params: Even
) -> None:
    """Learn from one result. A row of scratch holds the experts' log-odds, followed by room for S x."""
    kept = shrink_covariance(record, scratch, row, column, chance * (1.0 - chance), params)
    for i in range(params.experts):
        record.weight[i] += kept * scratch[row, column + EXPERTS + i] * (score - chance)
    keep_positive(record, 1.0, params)


@rarely
def learn_weights_of_many(record: Record, work: Floats, times: float, params: Even) -> None:
    """Learn from the mean gradient and mean curvature over many pairs, counted as this many results.

    work  one row: the gradient, then the lower triangle of the curvature by rows, then room for two vectors
    The curvature is factored into L D Lᵀ, so that the covariance can be updated one direction at a time.
    """
    count = params.experts
    start, room = EXPERTS, EXPERTS + TRIANGLE
    for j in range(count):
        diagonal = start + j * (j + 1) // 2 + j
        pivot = work[0, diagonal]
        if pivot <= 1e-12:
            continue
        for i in range(count):
            below = work[0, start + i * (i + 1) // 2 + j] / pivot if i > j else 0.0
            work[0, room + i] = 1.0 if i == j else below
        for i in range(j + 1, count):
            for k in range(j + 1, i + 1):
                work[0, start + i * (i + 1) // 2 + k] -= pivot * work[0, room + i] * work[0, room + k]
        shrink_covariance(record, work, 0, room, times * pivot, params)
    for i in range(count):
        step = 0.0
        for j in range(count):
            step += record.weight_covariance[i * EXPERTS + j] * work[0, j]
        work[0, room + i] = step
    for i in range(count):
        record.weight[i] += times * work[0, room + i]
    keep_positive(record, times, params)
