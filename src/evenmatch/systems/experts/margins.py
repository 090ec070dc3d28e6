"""The margin of a match with scores, and the scale that turns it into a difference of performances."""

from __future__ import annotations

import math

from evenmatch.history import Columns
from evenmatch.systems.compiled import kernel
from evenmatch.systems.ladder_records import LadderRecords

POWER = 0.9  # of the difference of the roots of the scores
SLOWEST = 0.0005  # the smallest share of a match in the running means
ENOUGH, HALF = 3.0, 5.0  # matches with a margin before margins count, and until they count half
TELLING = 0.1  # correlation of margins with the winner's odds at which margins count in full
TRUSTED = 50.0  # prior matches with that correlation
ALIKE = 0.01  # share of the mean square: margins with no larger variance count as all equal
OUTLIER = 4.0  # deviations: a margin farther from the prediction is cut to this


@kernel
def signed_root(score: float) -> float:
    """The square root, with the sign of the score."""
    return math.sqrt(score) if score >= 0.0 else -math.sqrt(-score)


@kernel
def margin_of(h: Columns, first: int, lead: int) -> float:
    """The margin of the first team, with the sign of the result; NaN without scores.

    lead  the place of the second team minus that of the first
    """
    a, b = h.team_score[first], h.team_score[first + 1]
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if lead == 0:
        return 0.0
    size = abs(signed_root(a) - signed_root(b)) ** POWER
    return size if lead > 0 else -size


@kernel
def watch_worth(ladder: LadderRecords, size: float, odds: float) -> None:
    """Update how much margins count, from 0 to 1, after a decided match: its margin and the winner's log-odds.

    If favourites win by no more than others do, the size of a margin says nothing about skill: scores are all equal
    or random.
    """
    own = ladder.records[ladder.own]
    rate = max(1.0 / (own.decided + 1.0), SLOWEST)
    own.margin_size += rate * (size - own.margin_size)
    own.margin_size_square += rate * (size * size - own.margin_size_square)
    own.winner_odds += rate * (odds - own.winner_odds)
    own.winner_odds_square += rate * (odds * odds - own.winner_odds_square)
    own.size_times_odds += rate * (size * odds - own.size_times_odds)
    own.decided += 1.0
    size_variance = own.margin_size_square - own.margin_size * own.margin_size
    odds_variance = own.winner_odds_square - own.winner_odds * own.winner_odds
    correlation = 0.0
    if size_variance > ALIKE * own.margin_size_square and odds_variance > 0.0:
        product = own.size_times_odds - own.margin_size * own.winner_odds
        correlation = product / math.sqrt(size_variance * odds_variance)
    matches = min(own.decided, 1.0 / SLOWEST)
    correlation = (matches * correlation + TRUSTED * TELLING) / (matches + TRUSTED)
    own.margin_worth = min(max(correlation / TELLING, 0.0), 1.0)


@kernel
def margin_scale(ladder: LadderRecords, expert: int) -> float:
    """κ, the most likely difference of performances per unit of margin, from the matches so far; 0: unknown."""
    own = ladder.records[ladder.own]
    square = own.margin_square[expert]
    if own.margins < ENOUGH or square <= 0.0:
        return 0.0
    lead = own.margin_lead[expert]
    return (lead + math.sqrt(lead * lead + 4.0 * square * own.lead_variance[expert])) / (2.0 * square)


@kernel
def watch_margin(ladder: LadderRecords, expert: int, margin: float, lead: float, variance: float) -> None:
    """Update the running means behind the scale."""
    own = ladder.records[ladder.own]
    rate = max(1.0 / (own.margins + 1.0), SLOWEST)
    own.margin_square[expert] += rate * (margin * margin - own.margin_square[expert])
    own.margin_lead[expert] += rate * (margin * lead - own.margin_lead[expert])
    own.lead_variance[expert] += rate * (variance - own.lead_variance[expert])
