"""The records that `even` keeps for players and ladders, and its parameters in the form that kernels read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.systems.compiled import LINE
from evenmatch.systems.maths import LOG_10

CONTEXTS = 5  # columns at most, the ladder included
EXPERTS = 5  # at most; a record has room for all of them
SLOPE = 1.6  # log-odds per deviation of a performance difference: the logistic curve closest to the normal curve
DRAW = 0.2  # performance differences up to this size are draws
POINTS = 400.0 / LOG_10  # per unit of log-odds: a lead of 400 points are odds of 10 to 1
LEARNING = 25  # matches: players with fewer teach the newcomers' mean
FADE = 0.05  # a match leaves at least this share of a variance
LEAST_WEIGHT, MOST_WEIGHT = 0.2, 1.3  # of all experts together
FARTHEST = 3.0  # deviations: a number known about a newcomer that is farther from the mean is cut to this
WIDEST = 4.0  # variances grow up to this many times a newcomer's

STATE = np.dtype(
    [
        ("rating", "f8"),
        ("deviation", "f8"),
        ("scale", "f8"),  # sum of the experts' calibrated weights when the rating was computed
        ("games", "i8"),
        ("last_played", "i8"),
        ("by_margins", "f8"),  # how the odds would change if margins counted more
        ("mean", "f8", EXPERTS),
        ("variance", "f8", EXPERTS),
    ],
    align=True,
)
# The pool's record uses the fields up to `calibration_variance`; a ladder's own record uses the rest, and also the
# first ones where ladders are not pooled.
LADDER = np.dtype(
    [
        ("side", "f8", EXPERTS),  # first-side advantage, and its variance
        ("side_variance", "f8", EXPERTS),
        ("body", "f8", EXPERTS),  # value of extra players, per unit of the log size ratio
        ("body_variance", "f8", EXPERTS),
        ("leavers", "f8", EXPERTS),  # value of extra players after others left, known only after the match
        ("leavers_variance", "f8", EXPERTS),
        ("experience", "f8", EXPERTS),  # value of twice as many matches played, in the odds only
        ("experience_variance", "f8", EXPERTS),
        ("entry", "f8", EXPERTS),  # mean of newcomers
        ("entry_variance", "f8", EXPERTS),
        ("entry_slope", "f8", EXPERTS),  # what a number known about newcomers adds, per deviation of these numbers
        ("entry_slope_variance", "f8", EXPERTS),
        ("numbers", "f8"),  # how many newcomers had a number,
        ("number_mean", "f8"),  # their mean,
        ("number_square", "f8"),  # and the sum of the squared differences from it
        ("gain", "f8", EXPERTS * CONTEXTS),  # how much players' offsets under values of a column count
        ("gain_variance", "f8", EXPERTS * CONTEXTS),
        ("values", "f8", CONTEXTS),  # how many values of a context column have been seen
        ("law", "f8", CONTEXTS),  # what one more of a match's log length adds to the calibration, and its variance
        ("law_variance", "f8", CONTEXTS),
        ("usual_length", "f8", CONTEXTS),  # running mean of the log length
        ("lengths", "f8", CONTEXTS),  # how many matches had one
        ("weight", "f8", EXPERTS),  # of the experts' log-odds in the mixture
        ("weight_covariance", "f8", EXPERTS * EXPERTS),
        ("calibration", "f8"),  # factor of the mixed log-odds, and its variance
        ("calibration_variance", "f8"),
        ("own_side", "f8", EXPERTS),  # first-side advantage of this ladder beyond that of the pool
        ("own_side_variance", "f8", EXPERTS),
        ("margin_square", "f8", EXPERTS),  # running means over matches with a margin d: of d²,
        ("margin_lead", "f8", EXPERTS),  # of d times the predicted lead,
        ("lead_variance", "f8", EXPERTS),  # of the variance of the lead
        ("margins", "f8"),  # how many matches
        ("margin_size", "f8"),  # running means over decided matches with a margin: of |d|,
        ("margin_size_square", "f8"),  # of d²,
        ("winner_odds", "f8"),  # of the mixed log-odds of the winner,
        ("winner_odds_square", "f8"),  # of their square,
        ("size_times_odds", "f8"),  # of |d| times them
        ("decided", "f8"),  # how many matches
        ("margin_worth", "f8"),  # how much margins count, from 0 to 1
        ("margin_trust", "f8"),  # by how well they predicted, from 0; above 1 a reserve; and its variance
        ("margin_trust_variance", "f8"),
        ("score_square", "f8"),  # mean square of players' scores around the mean of their match
        ("scores", "f8"),  # how many of them
        ("draws", "f8"),  # draws seen, and draws predicted
        ("predicted_draws", "f8"),
        ("matches", "f8"),
        ("seen", "f8"),  # matches with this value of a context column
        ("length", "f8"),  # log of a value that is a number; NaN
        ("scale", "f8"),  # what this value adds to the calibration, and its variance
        ("scale_variance", "f8"),
    ],
    align=True,
)

BELIEF = np.dtype([("mean", "f8"), ("variance", "f8")])
ROOM = 2 * LINE // BELIEF.itemsize  # experts that fit into two cache lines
# Of a player under a context value. The four experts of most ladders fill the first line, so a match reads one line per
# player and column.
PLAYER_OFFSET = np.dtype([("by_expert", BELIEF, ROOM)])

Record = Any  # one record, whose fields kernels read and write


class Expert(NamedTuple):
    """One filter. The noise of a difference of performances is 1; all variances are in these units.

    variance  of a newcomer;  step: variance that a match adds;  drift: variance that a day adds
    pull      after t days without a match, 1/(1 + pull · t) of the mean is left
    share     α: a team of n counts as n^−α times the sum of its means
    margin    λ: the share of the learning that comes from the margin, once margins are known
    shared    ρ: the share of team-mates' errors that is common to them
    settled   variance of a player with many matches, for the scale of the shown rating
    """

    variance: float
    step: float
    drift: float
    pull: float
    share: float
    margin: float
    shared: float
    settled: float


# ../shared/even.md has the recipe: four views of the same matches, and one that reads players' scores.
STEADY = Expert(0.64, 0.02**2, 0.003**2, 0.0, 0.5, 0.66, 0.4, 0.03)
QUICK = Expert(0.1, 0.08**2, 0.015**2, 0.002, 0.5, 0.97, 0.4, 0.05)
WIDE = Expert(1.0, 0.04**2, 0.008**2, 0.0, 0.5, 0.93, 0.4, 0.06)
RESULTS = Expert(1.5, 0.02**2, 0.005**2, 0.002, 1.0, 0.0, 1.0, 0.05)
SCORES = Expert(0.3, 0.03**2, 0.008**2, 0.0, 0.4, 0.85, 0.4, 0.03)
PLAIN = Expert(0.4, 0.04**2, 0.008**2, 0.0, 0.5, 0.75, 0.4, 0.04)

SIDE_VARIANCE = 0.003
BODY, BODY_VARIANCE = 1.5, 1.0
EXPERIENCE_VARIANCE = 0.002
ENTRY_VARIANCE = 0.05
SLOPE_VARIANCE = 0.02  # prior mean 0
OFFSET = 0.15  # variance of a player under a value of a context column, in newcomers' variances
GAIN, GAIN_VARIANCE, MOST_GAIN = 0.6, 0.2, 2.0
WEIGHT_VARIANCE = 0.1
CALIBRATION_VARIANCE = 0.005
SCALE_VARIANCE = 0.003
LAW_VARIANCE = 0.1  # prior mean 0
TRUST, TRUST_VARIANCE = 1.2, 0.1  # prior trust in margins
SEEN_DRAWS = 2.0  # prior number of draws, both seen and predicted


class Even(NamedTuple):
    """Parameters as the kernels read them; `drift` and `pull` are per microsecond.

    The arrays have a number per expert. (In tuples, kernels would find it by an indirect jump.)

    experts      how many are in use
    points       points of the shown rating per unit of an expert's mean, at a weight of 1
    scores       index of the expert that reads players' scores; −1: none does
    score_gain   how slowly that expert follows scores, in newcomers' variances;  score_reach: how far it follows them
    pooled       ladders of one table share what they learn
    never_down   a win never lowers a rating, however small its margin
    rivals       the most rivals that a team in a large contest is compared with
    """

    start: float
    experts: int
    variance: Floats
    step: Floats
    drift: Floats
    pull: Floats
    share: Floats
    margin: Floats
    shared: Floats
    points: Floats
    scores: int
    score_gain: float
    score_reach: float
    pooled: bool
    never_down: bool
    rivals: int


def new_offset(params: Even) -> tuple[object, ...]:
    """The record of a player under a context value before the first match under it."""
    unused = [(0.0, 0.0)] * (ROOM - EXPERTS)
    return ([*((0.0, OFFSET * variance) for variance in params.variance), *unused],)


def new_ladder(experts: int) -> tuple[object, ...]:
    """The record of a ladder before its first match, for this many experts."""
    none = (0.0,) * EXPERTS

    def each(value: float) -> tuple[float, ...]:
        return tuple(value if index < experts else 0.0 for index in range(EXPERTS))

    weights = tuple(
        WEIGHT_VARIANCE if row == column and row < experts else 0.0
        for row in range(EXPERTS)
        for column in range(EXPERTS)
    )
    learned = (
        none,
        each(SIDE_VARIANCE),
        each(BODY),
        each(BODY_VARIANCE),
        each(BODY),
        each(BODY_VARIANCE),
        none,
        each(EXPERIENCE_VARIANCE),
        none,
        each(ENTRY_VARIANCE),
        none,
        each(SLOPE_VARIANCE),
        0.0,
        0.0,
        0.0,
        (GAIN,) * (EXPERTS * CONTEXTS),
        (GAIN_VARIANCE,) * (EXPERTS * CONTEXTS),
        (0.0,) * CONTEXTS,
        (0.0,) * CONTEXTS,
        (LAW_VARIANCE,) * CONTEXTS,
        (0.0,) * CONTEXTS,
        (0.0,) * CONTEXTS,
    )
    own = (none, each(SIDE_VARIANCE), none, none, none)
    mixture = (each(1.0 / experts), weights, 1.0, CALIBRATION_VARIANCE)
    worth = (1.0, TRUST, TRUST_VARIANCE)
    value = (SEEN_DRAWS, SEEN_DRAWS, 0.0, 0.0, math.nan, 0.0, SCALE_VARIANCE)
    return (*learned, *mixture, *own, *(0.0,) * 7, *worth, 0.0, 0.0, *value)


def points_per_mean(expert: Expert) -> float:
    """Points of the shown rating per unit of a mean, from the log-odds between two settled players."""
    return POINTS * SLOPE / math.sqrt(1.0 + 2.0 * expert.settled)
