"""Glicko: Elo with a deviation that says how sure a rating is, shrinks with every match and grows with time.

Definition: docs/systems/glicko.md, after Glickman 1995 ("The Glicko system"), match by match in continuous time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.systems.maths import LOG_10, glicko_expected, glicko_g, glicko_surprise, logistic
from evenmatch.systems.system import (
    Change,
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Records,
    System,
    any_match,
    as_shown,
    fields,
    in_time,
    kernel,
    number,
    rarely,
)

DAY = 86_400_000_000  # microseconds
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
    advantage: float = number(0.0, -1e5, 1e5, "points that being listed first is worth", search=(-100, 200))

    def conflict(self) -> str:
        """The least deviation must not exceed a newcomer's."""
        if self.min_deviation <= self.deviation:
            return ""
        return f"min_deviation={self.min_deviation:g} is above deviation={self.deviation:g}; expected at most that"


class Glicko(NamedTuple):
    """Parameters as the kernels read them: variances in points squared, `growth` per microsecond."""

    most: float
    least: float
    growth: float
    advantage: float


def _compile(p: GlickoParameters) -> Glicko:
    return Glicko(p.deviation**2, p.min_deviation**2, p.c**2 / (p.period_days * DAY), p.advantage)


STATE = np.dtype([("rating", "f8"), ("deviation", "f8"), ("games", "i8"), ("last_played", "i8")], align=True)
FACTORS = (
    Factor("deviation_before", "deviation before the match, grown since the player's last one"),
    Factor("deviation_after", "deviation after it"),
    Factor("surprise", "result minus expected score against each rival, weighed by g of the rival's deviation, summed"),
    Factor("gain", "points per unit of surprise"),
)
RATING, G = range(2)  # columns of scratch, a row per team


@kernel
def variance_at(state: Records, player: int, now: int, params: Glicko) -> float:
    """The variance at this time: grown since the last match, at most a newcomer's."""
    record = state[player]
    idle = float(now - record.last_played) if record.games > 0 else 0.0
    return min(record.deviation * record.deviation + params.growth * idle, params.most)


@rarely
def age(state: Records, now: int, params: Glicko) -> None:
    """Give every player who has played the deviation that a match at this time would start from."""
    for player in range(len(state)):
        record = state[player]
        if record.games > 0 and record.last_played <= now:
            record.deviation = math.sqrt(variance_at(state, player, now, params))


@kernel
def average(team: Integers, now: int, state: Records, params: Glicko) -> tuple[float, float]:
    """Mean rating and mean variance of a team at this time."""
    rating, variance = 0.0, 0.0
    for i in range(len(team)):
        rating += state[team[i]].rating
        variance += variance_at(state, team[i], now, params)
    return rating / len(team), variance / len(team)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Glicko) -> tuple[float, float]:
    """Glicko's expected score between the teams' average members; a draw counts half and is not foreseen."""
    own, own_variance = average(a, now, state, params)
    other, other_variance = average(b, now, state, params)
    lead = own - other + (params.advantage if home else 0.0)
    return glicko_expected(lead, own_variance + other_variance, UNIT), 0.0


@kernel
def settle(variance: float, information: float) -> float:
    """The variance after results with this information; it divided by the unit is the points per unit of surprise."""
    return 1.0 / (1.0 / variance + information / (UNIT * UNIT))


@kernel
def update(
    h: Columns, m: int, state: Records, params: Glicko, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Every player against the average member of each rival team, all rivals in one update."""
    first, end = h.team_start[m], h.team_start[m + 1]
    now = h.time[m]
    for team in range(first, end):
        rating, variance = average(h.player[h.slot_start[team] : h.slot_start[team + 1]], now, state, params)
        scratch[team - first, RATING] = rating
        scratch[team - first, G] = glicko_g(variance, UNIT)
    for team in range(first, end):
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            record = state[h.player[slot]]
            variance = variance_at(state, h.player[slot], now, params)
            information, surprise = glicko_surprise(h, first, end, team, record.rating, scratch, UNIT, params.advantage)
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

    opponents  (rating, deviation, score 0..1) of each match of the period; deviations as at its beginning
    """
    information = surprise = 0.0
    for opponent, deviation_of_opponent, score in opponents:
        g = glicko_g(deviation_of_opponent**2, UNIT)
        chance = logistic(g * (rating - opponent) / UNIT)
        information += g**2 * chance * (1.0 - chance)
        surprise += g * (score - chance)
    variance = settle(deviation**2, information)
    return rating + variance / UNIT * surprise, math.sqrt(variance)


def _tell(change: Change, parameters: GlickoParameters) -> str:
    f = change.factors
    text = f"scored {change.result:.2f} where {change.expected:.3f} was expected, at {float(f['gain']):.4g} points per"
    text += f" unit of surprise; deviation {float(f['deviation_before']):.1f} → {float(f['deviation_after']):.1f}"
    return text


def _newcomer(p: GlickoParameters) -> tuple[object, ...]:
    return (p.start, p.deviation, 0, 0)


SYSTEM = System(
    name="glicko",
    title="Elo with a deviation that shrinks with every match and grows with time",
    source="Glickman 1995, The Glicko system",
    needs="any matches",
    teams=None,
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
    refuse=any_match,
    tell=_tell,
)
