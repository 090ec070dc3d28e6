"""The expert that also reads players' own scores: how far above or below the rest of the match each one scored."""

from __future__ import annotations

import math

from evenmatch.history import Columns, Floats
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.experts.margins import SLOWEST
from evenmatch.systems.experts.mixing import calibrated_weight
from evenmatch.systems.experts.players import BY_EXPERT, DEVIATION, RATING
from evenmatch.systems.experts.players import SCORES as BY_SCORES
from evenmatch.systems.experts.records import Even
from evenmatch.systems.ladder_records import LadderRecords, Records

LARGEST_LEAD = 3.0  # typical score differences: a score farther from the others is cut to this


@kernel
def mean_score(h: Columns, low: int, high: int) -> tuple[float, float]:
    """The mean of the recorded scores of a match, and their number."""
    total, count = 0.0, 0.0
    for slot in range(low, high):
        if not math.isnan(h.score[slot]):
            total += h.score[slot]
            count += 1.0
    return (total / count if count > 0.0 else 0.0), count


@rarely
def learn_scores(
    h: Columns, low: int, high: int, state: Records, ladder: LadderRecords, pool: int, params: Even, scratch: Floats
) -> None:
    """Move one expert's means towards what the players' scores say, after it has learned from the result."""
    own, expert = ladder.records[ladder.own], params.scores
    middle, count = mean_score(h, low, high)
    if count < 2.0 or own.score_square <= 0.0:
        return
    typical = math.sqrt(own.score_square)
    skill = 0.0
    for slot in range(low, high):
        if not math.isnan(h.score[slot]):
            skill += state[h.player[slot]].mean[expert] / count
    reach = params.score_reach * math.sqrt(params.variance[expert])
    weight = calibrated_weight(ladder.records[pool], expert) * params.points[expert]
    for slot in range(low, high):
        if not math.isnan(h.score[slot]):
            record, row = state[h.player[slot]], slot - low
            above = min(max((h.score[slot] - middle) / typical, -LARGEST_LEAD), LARGEST_LEAD)
            variance = record.variance[expert]
            gain = variance / (variance + params.score_gain * params.variance[expert])
            moved = gain * (reach * above - (record.mean[expert] - skill))
            record.mean[expert] += moved
            record.variance[expert] = variance * (1.0 - gain)
            scratch[row, RATING] += weight * moved
            scratch[row, BY_SCORES] += weight * moved
            scratch[row, BY_EXPERT + expert] += weight * moved
            less = math.sqrt(variance) - math.sqrt(record.variance[expert])
            scratch[row, DEVIATION] -= params.points[expert] * less


@rarely
def watch_scores(h: Columns, low: int, high: int, ladder: LadderRecords) -> None:
    """Update the mean square of score differences with all players of a match."""
    own = ladder.records[ladder.own]
    middle, count = mean_score(h, low, high)
    if count < 2.0:
        return
    square = 0.0
    for slot in range(low, high):
        if not math.isnan(h.score[slot]):
            square += (h.score[slot] - middle) ** 2 / count
    own.scores += count
    rate = max(count / own.scores, 1.0 - (1.0 - SLOWEST) ** count)
    own.score_square += rate * (square - own.score_square)
