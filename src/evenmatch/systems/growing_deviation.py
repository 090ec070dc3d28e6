"""Deviations that grow with idle time, the average member of a team, and Glicko's comparison with one.

In team matches a player meets the average member of each rival team: mean rating, root mean square deviation. Each
system defines how a player's variance depends on time: `variance_at(state, player, now, params)`, in points squared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from evenmatch.history import Columns, Floats, Integers
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.maths import logistic, score_of
from evenmatch.systems.system import Records

VarianceAt = Callable[..., float]

RATING, G = range(2)  # columns of scratch, a row per team
COMPARED_AS = ("player", "team")  # what is compared with the rivals


def above_newcomers(min_deviation: float, deviation: float) -> str:
    """For `Parameters.conflict`: a message if the least deviation exceeds a newcomer's, else an empty string."""
    if min_deviation <= deviation:
        return ""
    return f"min_deviation={min_deviation:g} is above deviation={deviation:g}; expected at most that"


@kernel
def idle_time(state: Records, player: int, now: int) -> float:
    """Microseconds since a player's last match; 0 before the first."""
    record = state[player]
    return float(now - record.last_played) if record.games > 0 else 0.0


@rarely
def grow(state: Records, now: int, params: NamedTuple, variance_at: VarianceAt) -> None:
    """Set the deviation of every player who has played to the one that a match at this time would start from."""
    for player in range(len(state)):
        record = state[player]
        if record.games > 0 and record.last_played <= now:
            record.deviation = math.sqrt(variance_at(state, player, now, params))


@kernel
def average(
    team: Integers, now: int, state: Records, params: NamedTuple, variance_at: VarianceAt
) -> tuple[float, float]:
    """Mean rating and mean variance of a team at this time."""
    rating, variance = 0.0, 0.0
    for i in range(len(team)):
        rating += state[team[i]].rating
        variance += variance_at(state, team[i], now, params)
    return rating / len(team), variance / len(team)


@kernel
def glicko_g(variance: float, unit: float) -> float:
    """Glicko's g: how much a lead over a rating with this variance counts.

    Lead and variance are in points, `unit` is the points per unit of log-odds.
    """
    return 1.0 / math.sqrt(1.0 + variance * (3.0 / (math.pi * math.pi * unit * unit)))


@kernel
def glicko_expected(lead: float, variance: float, unit: float) -> float:
    """Glicko's expected score for this lead and the sum of both sides' variances."""
    return logistic(glicko_g(variance, unit) * lead / unit)


@kernel
def write_averages(
    h: Columns, m: int, state: Records, params: NamedTuple, scratch: Floats, variance_at: VarianceAt, unit: float
) -> None:
    """Write mean rating and g of the mean variance of each team of a match into scratch."""
    first = h.team_start[m]
    for team in range(first, h.team_start[m + 1]):
        members = h.player[h.slot_start[team] : h.slot_start[team + 1]]
        rating, variance = average(members, h.time[m], state, params, variance_at)
        scratch[team - first, RATING] = rating
        scratch[team - first, G] = glicko_g(variance, unit)


@kernel
def compared_rating(own: float, row: int, scratch: Floats, by_team: bool) -> float:
    """The rating that is compared with the rivals: the player's own, or that of the team in this row of scratch."""
    return scratch[row, RATING] if by_team else own


@kernel
def glicko_surprise(
    h: Columns, first: int, end: int, team: int, rating: float, scratch: Floats, unit: float, advantage: float
) -> tuple[float, float]:
    """Sums over the rivals of g² E (1 − E) and of g (S − E), for a player of this rating in one of the teams.

    scratch  as `write_averages` writes it
    """
    information, surprise = 0.0, 0.0
    for rival in range(first, end):
        if rival != team:
            lead = rating - scratch[rival - first, RATING]
            lead += advantage if team == first else -advantage if rival == first else 0.0
            g = scratch[rival - first, G]
            chance = logistic(g * lead / unit)
            information += g * g * chance * (1.0 - chance)
            surprise += g * (score_of(h.place[rival] - h.place[team]) - chance)
    return information, surprise


def period_surprise(rating: float, opponents: Sequence[tuple[float, float, float]], unit: float) -> tuple[float, float]:
    """The same sums over a rating period with these opponents: (rating, deviation, score 0..1)."""
    information = surprise = 0.0
    for opponent, deviation, score in opponents:
        g = glicko_g(deviation**2, unit)
        chance = logistic(g * (rating - opponent) / unit)
        information += g**2 * chance * (1.0 - chance)
        surprise += g * (score - chance)
    return information, surprise
