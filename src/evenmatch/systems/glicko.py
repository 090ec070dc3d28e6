"""Glicko: Elo with a deviation that measures a rating's uncertainty, shrinks with every match and grows with time.

Definition: docs/systems/glicko.md, after Glickman 1995 ("The Glicko system"), match by match in continuous time.
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
from evenmatch.systems.maths import DAY, LOG_10
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

UNIT = 400.0 / LOG_10  # points in one unit of log-odds


@dataclass(frozen=True)
class GlickoParameters(Parameters):
    """Ratings and deviations in points."""

    start: float = number(1500.0, -1e6, 1e6, "rating of a newcomer")
    deviation: float = number(
        350.0, 1, 10_000, "deviation of a newcomer, which no deviation exceeds", search=(10, 1000)
    )
    min_deviation: float = number(30.0, 0, 10_000, "no deviation falls below it", search=(1, 300))
    c: float = number(8.1, 0, 10_000, "deviation that one idle period adds, as a root of variance", search=(0.1, 100))
    period_days: float = number(1.0, 1e-6, 10_000, "days in a period")
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


class Glicko(NamedTuple):
    """Parameters in the form that kernels read: variances in points squared, `growth` per microsecond."""

    most: float
    least: float
    growth: float
    advantage: float
    by_team: bool


def _compile(p: GlickoParameters) -> Glicko:
    return Glicko(
        p.deviation**2, p.min_deviation**2, p.c**2 / (p.period_days * DAY), p.advantage, p.compared_as == "team"
    )


STATE = np.dtype([("rating", "f8"), ("deviation", "f8"), ("games", "i8"), ("last_played", "i8")], align=True)
FACTORS = (
    Factor("deviation_before", "deviation before the match, grown since the player's last one"),
    Factor("deviation_after", "deviation after it"),
    Factor("surprise", "sum over the rivals of result minus expected score; uncertain rivals count less"),
    Factor("gain", "points per unit of surprise"),
)


@kernel
def variance_at(state: Records, player: int, now: int, params: Glicko) -> float:
    """The variance at this time: grown since the last match, at most a newcomer's."""
    deviation = state[player].deviation
    return min(deviation * deviation + params.growth * idle_time(state, player, now), params.most)


@rarely
def age(state: Records, now: int, params: Glicko) -> None:
    """Advance the deviations to this time."""
    grow(state, now, params, variance_at)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Glicko) -> tuple[float, float]:
    """Glicko's expected score between the teams' average members. Draws count half and are not predicted."""
    own, own_variance = average(a, now, state, params, variance_at)
    other, other_variance = average(b, now, state, params, variance_at)
    lead = own - other + (params.advantage if home else 0.0)
    return glicko_expected(lead, own_variance + other_variance, UNIT), 0.0


@kernel
def settle(variance: float, information: float) -> float:
    """The variance after results with this information. Divided by the unit, it is the points per unit of surprise."""
    return 1.0 / (1.0 / variance + information / (UNIT * UNIT))


@kernel
def update(
    h: Columns, m: int, state: Records, params: Glicko, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Rate every player, or their team's mean, against the average members of all rival teams in one update."""
    first, end = h.team_start[m], h.team_start[m + 1]
    now = h.time[m]
    write_averages(h, m, state, params, scratch, variance_at, UNIT)
    for team in range(first, end):
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            record = state[h.player[slot]]
            variance = variance_at(state, h.player[slot], now, params)
            rating = compared_rating(record.rating, team - first, scratch, params.by_team)
            information, surprise = glicko_surprise(h, first, end, team, rating, scratch, UNIT, params.advantage)
            after = settle(variance, information)
            record.rating += after / UNIT * surprise
            record.deviation = math.sqrt(max(after, params.least))
            record.games += 1
            record.last_played = now
            if len(factors):
                note = factors[slot]
                note.deviation_before = math.sqrt(variance)
                note.deviation_after = record.deviation
                note.surprise = surprise
                note.gain = after / UNIT


def rate_period(
    rating: float, deviation: float, opponents: Sequence[tuple[float, float, float]]
) -> tuple[float, float]:
    """A player's rating and deviation after a whole rating period in one update, as in Glickman's paper.

    opponents  (rating, deviation, score 0..1) of each match of the period; deviations at the start of the period
    """
    information, surprise = period_surprise(rating, opponents, UNIT)
    variance = settle(deviation**2, information)
    return rating + variance / UNIT * surprise, math.sqrt(variance)


def _recall(change: Change, p: GlickoParameters) -> tuple[object, ...]:
    return (change.before, change.factors["deviation_before"], 0, 0)


def _newcomer(p: GlickoParameters) -> tuple[object, ...]:
    return (p.start, p.deviation, 0, 0)


SYSTEM = System(
    name="glicko",
    title="Elo that moves new and returning players faster, because it is less sure of them",
    source="Glickman 1995, The Glicko system",
    parameters=GlickoParameters,
    presets={"monthly": {"period_days": 30.0, "c": 34.6}},
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=as_shown(_newcomer),
    as_of=in_time(age, _compile),
    columns=fields("deviation"),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=2,
    note=lambda change, p: uncertain_note(change, p.deviation / 4, 0.0),
    own_rating=lambda p: p.compared_as == "player",
    recall=_recall,
)
