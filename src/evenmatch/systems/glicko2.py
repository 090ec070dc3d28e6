"""Glicko-2: Glicko with a volatility, which makes the deviation grow faster for players of changing strength.

Definition: docs/systems/glicko2.md, after Glickman 2013 ("Example of the Glicko-2 system"), match by match in
continuous time: the deviation grows only with the time since the player's last match.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.systems.growing_deviation import (
    COMPARED_AS,
    above_newcomers,
    average,
    compared_rating,
    glicko_expected,
    glicko_surprise,
    grow,
    idle_time,
    period_surprise,
    write_averages,
)
from evenmatch.systems.maths import DAY
from evenmatch.systems.system import (
    Change,
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Records,
    System,
    as_shown,
    choice,
    fields,
    in_time,
    kernel,
    number,
    rarely,
    uncertain_note,
)

UNIT = 173.7178  # points in one unit of log-odds, 400 / ln 10, as the paper rounds it
CLOSE = 1e-6  # in ln σ²: precision of the search for the volatility
LEAST_INFORMATION = 1e-20  # a match with less information leaves the volatility unchanged


@dataclass(frozen=True)
class Glicko2Parameters(Parameters):
    """Ratings and deviations in points, volatility in Glicko-2's own unit of 173.7178 points."""

    start: float = number(1500.0, -1e6, 1e6, "rating of a newcomer")
    deviation: float = number(
        350.0, 1, 10_000, "deviation of a newcomer, which no deviation exceeds", search=(10, 1000)
    )
    volatility: float = number(0.06, 1e-6, 10, "volatility of a newcomer", search=(0.0001, 1))
    tau: float = number(0.5, 0.01, 10, "how freely volatility changes", search=(0.1, 2))
    min_deviation: float = number(30.0, 0, 10_000, "no deviation falls below it", search=(1, 300))
    period_days: float = number(1.0, 1e-6, 10_000, "days in a rating period")
    advantage: float = number(0.0, -1e5, 1e5, "points added to the team that is listed first", search=(-100, 200))
    compared_as: str = choice(
        "player",
        COMPARED_AS,
        "what is compared with the rival teams: the player's own rating, or the mean rating of their team",
        search=True,
    )

    def conflict(self) -> str:
        """The least deviation must not exceed a newcomer's."""
        return above_newcomers(self.min_deviation, self.deviation)


class Glicko2(NamedTuple):
    """Parameters in the form that kernels read.

    most, least  variances in points squared
    growth       points squared that σ² of 1 adds in a microsecond
    """

    most: float
    least: float
    growth: float
    tau: float
    advantage: float
    by_team: bool


def _compile(p: Glicko2Parameters) -> Glicko2:
    growth = UNIT**2 / (p.period_days * DAY)
    return Glicko2(p.deviation**2, p.min_deviation**2, growth, p.tau, p.advantage, p.compared_as == "team")


STATE = np.dtype(
    [("rating", "f8"), ("deviation", "f8"), ("volatility", "f8"), ("games", "i8"), ("last_played", "i8")], align=True
)
FACTORS = (
    Factor("deviation_before", "deviation before the match, grown since the player's last one"),
    Factor("deviation_after", "deviation after it"),
    Factor("volatility_before", "volatility before the match: how much the player's strength seems to change"),
    Factor("volatility_after", "volatility after it"),
    Factor("surprise", "sum over the rivals of result minus expected score; uncertain rivals count less"),
    Factor("gain", "points per unit of surprise"),
)


@kernel
def variance_at(state: Records, player: int, now: int, params: Glicko2) -> float:
    """The variance at this time: grown by the volatility since the last match, at most a newcomer's."""
    record = state[player]
    growth = params.growth * idle_time(state, player, now) * record.volatility * record.volatility
    return min(record.deviation * record.deviation + growth, params.most)


@rarely
def age(state: Records, now: int, params: Glicko2) -> None:
    """Advance the deviations to this time."""
    grow(state, now, params, variance_at)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Glicko2) -> tuple[float, float]:
    """Glicko's expected score between the teams' average members. Draws count half and are not predicted."""
    own, own_variance = average(a, now, state, params, variance_at)
    other, other_variance = average(b, now, state, params, variance_at)
    lead = own - other + (params.advantage if home else 0.0)
    return glicko_expected(lead, own_variance + other_variance, UNIT), 0.0


@kernel
def slope(x: float, start: float, variance: float, v: float, square: float, tau: float) -> float:
    """The paper's f(x), whose root is ln of the new σ²; `square` is Δ²."""
    e = math.exp(x)
    total = variance + v + e
    return e * (square - total) / (2.0 * total * total) - (x - start) / (tau * tau)


@kernel
def new_volatility(volatility: float, variance: float, v: float, delta: float, tau: float) -> float:
    """Step 5 of the paper: the Illinois method, in the paper's order; variance and v in Glicko-2's own unit."""
    start = 2.0 * math.log(volatility)
    square = delta * delta
    a, b = start, start
    if square > variance + v:
        b = math.log(square - variance - v)
    else:
        b = start - tau
        while slope(b, start, variance, v, square, tau) < 0.0:
            b -= tau
    f_a, f_b = slope(a, start, variance, v, square, tau), slope(b, start, variance, v, square, tau)
    while abs(b - a) > CLOSE:
        c = a + (a - b) * f_a / (f_b - f_a)
        f_c = slope(c, start, variance, v, square, tau)
        if f_c * f_b <= 0.0:
            a, f_a = b, f_b
        else:
            f_a *= 0.5
        b, f_b = c, f_c
    return math.exp(0.5 * a)


@kernel
def update(
    h: Columns, m: int, state: Records, params: Glicko2, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Rate every player, or their team's mean, against the average members of all rival teams in one update."""
    first, end = h.team_start[m], h.team_start[m + 1]
    now = h.time[m]
    write_averages(h, m, state, params, scratch, variance_at, UNIT)
    for team in range(first, end):
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            record = state[h.player[slot]]
            grown = variance_at(state, h.player[slot], now, params)
            variance = grown / (UNIT * UNIT)
            rating = compared_rating(record.rating, team - first, scratch, params.by_team)
            information, surprise = glicko_surprise(h, first, end, team, rating, scratch, UNIT, params.advantage)
            earlier = volatility = record.volatility
            if information > LEAST_INFORMATION:
                v = 1.0 / information
                volatility = new_volatility(volatility, variance, v, v * surprise, params.tau)
            after = 1.0 / (1.0 / variance + information)
            record.rating += UNIT * after * surprise
            record.deviation = math.sqrt(max(UNIT * UNIT * after, params.least))
            record.volatility = volatility
            record.games += 1
            record.last_played = now
            if len(factors):
                note = factors[slot]
                note.deviation_before = math.sqrt(grown)
                note.deviation_after = record.deviation
                note.volatility_before = earlier
                note.volatility_after = volatility
                note.surprise = surprise
                note.gain = UNIT * after


def rate_period(
    rating: float,
    deviation: float,
    volatility: float,
    opponents: Sequence[tuple[float, float, float]],
    tau: float = 0.5,
) -> tuple[float, float, float]:
    """A player's rating, deviation and volatility after a whole rating period in one update, as in Glickman's paper.

    opponents  (rating, deviation, score 0..1) of each match of the period; with no match the deviation grows
    """
    variance = (deviation / UNIT) ** 2
    if not opponents:
        return rating, UNIT * math.sqrt(variance + volatility**2), volatility
    information, surprise = period_surprise(rating, opponents, UNIT)
    if information > LEAST_INFORMATION:
        v = 1.0 / information
        volatility = new_volatility(volatility, variance, v, v * surprise, tau)
    after = 1.0 / (1.0 / (variance + volatility**2) + information)
    return rating + UNIT * after * surprise, UNIT * math.sqrt(after), volatility


def _recall(change: Change, p: Glicko2Parameters) -> tuple[object, ...]:
    return (change.before, change.factors["deviation_before"], change.factors["volatility_before"], 0, 0)


def _newcomer(p: Glicko2Parameters) -> tuple[object, ...]:
    return (p.start, p.deviation, p.volatility, 0, 0)


SYSTEM = System(
    name="glicko2",
    title="Glicko that also moves players faster whose results vary",
    source="Glickman 2013, Example of the Glicko-2 system",
    parameters=Glicko2Parameters,
    presets={
        "lichess": {"deviation": 500.0, "volatility": 0.09, "tau": 0.75, "min_deviation": 45.0, "period_days": 4.665}
    },
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=as_shown(_newcomer),
    as_of=in_time(age, _compile),
    columns=fields("deviation", "volatility"),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=2,
    note=lambda change, p: uncertain_note(change, p.deviation / 4, 0.0),
    own_rating=lambda p: p.compared_as == "player",
    recall=_recall,
)
