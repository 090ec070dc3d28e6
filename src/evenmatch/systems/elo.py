"""Elo, the yardstick: K is fixed or follows the rules of FIDE or the USCF.

Definition: docs/systems/elo.md, after Elo 1978, FIDE's rating regulations and Glickman & Doyle, "The US Chess Rating
System". A team counts as its mean rating; with several rivals, the mean over them counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.systems.maths import LOG_10, logistic, mean_rating, newton, team_result
from evenmatch.systems.system import (
    Change,
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Reason,
    Records,
    System,
    as_shown,
    choice,
    kernel,
    number,
    rarely,
    wording,
)

RULES = ("fixed", "fide", "uscf")
FIXED, FIDE, USCF = range(3)
MASTER = 2400.0  # FIDE's K stays at 10 after a player has reached this rating
LEARNING = 30  # games with FIDE's K of 40
SPECIAL = 8  # the USCF's special formula applies to players with up to this many games
WIDTH = 400.0  # half the width of the USCF's straight line of expectation
TINY = 1e-12  # score: what rounding may leave of an exact zero
STEPS = 200  # iteration cap of the root search
SAME = 1e-9  # points: line ends closer than this count as the same


@dataclass(frozen=True)
class EloParameters(Parameters):
    """Ratings in points."""

    start: float = number(1500.0, -1e6, 1e6, "rating of a newcomer")
    k: float = number(32.0, 0, 10_000, "most points a match can move, under the rule fixed", search=(1, 1000))
    scale: float = number(400.0, 1, 100_000, "a lead of this many points means odds of ten to one")
    rule: str = choice("fixed", RULES, "how K is chosen: fixed, or by games and rating as FIDE or the USCF do")
    clamp: float | None = number(
        None, 1, 1e6, "largest lead that counts; larger leads are treated as this one; none: no limit", optional=True
    )
    advantage: float = number(0.0, -1e5, 1e5, "points added to the team that is listed first", search=(-100, 200))


class Elo(NamedTuple):
    """Parameters in the form that kernels read; `rate` is log-odds per point."""

    k: float
    rate: float
    rule: int
    clamp: float
    advantage: float


def _compile(p: EloParameters) -> Elo:
    clamp = math.inf if p.clamp is None else p.clamp
    return Elo(p.k, LOG_10 / p.scale, RULES.index(p.rule), clamp, p.advantage)


STATE = np.dtype([("rating", "f8"), ("games", "i8"), ("score", "f8"), ("top", "i8")], align=True)
FACTORS = (
    Factor("k", "most points the match could move"),
    Factor("surprise", "result minus the team's expected score"),
    Factor("special", "whether the USCF's formula for the first games was applied instead of K", flag=True),
    Factor("formula", "the rating that this formula gave; 0 where K was applied"),
)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Elo) -> tuple[float, float]:
    """Elo's logistic curve on the teams' means. Draws count half and are not predicted."""
    lead = mean_rating(a, state) - mean_rating(b, state) + (params.advantage if home else 0.0)
    return logistic(min(max(lead, -params.clamp), params.clamp) * params.rate), 0.0


@kernel
def effective_games(rating: float, games: int) -> float:
    """The USCF's N', the effective number of games."""
    most = 50.0
    if rating <= 2355.0:
        most = 50.0 / math.sqrt(0.662 + 0.00000739 * (2569.0 - rating) ** 2)
    return min(float(games), most)


@rarely
def opponent(h: Columns, first: int, team: int, rival: int, state: Records, params: Elo) -> float:
    """The mean rating of a rival team, adjusted for the first side's advantage."""
    mean = mean_rating(h.player[h.slot_start[rival] : h.slot_start[rival + 1]], state)
    return mean - (params.advantage if team == first else -params.advantage if rival == first else 0.0)


@rarely
def expectation(
    rating: float, h: Columns, m: int, team: int, state: Records, params: Elo, games: float, prior: float
) -> tuple[float, float]:
    """The expected score at this rating, by the USCF's straight lines, and its slope."""
    first, end = h.team_start[m], h.team_start[m + 1]
    expected, slope = 0.0, 0.0
    for rival in range(first, end):
        lead = rating - (prior if rival == team else opponent(h, first, team, rival, state, params))
        weight = games if rival == team else 1.0 / (end - first - 1)
        expected += weight * min(max(0.5 + lead / (2.0 * WIDTH), 0.0), 1.0)
        slope += weight / (2.0 * WIDTH) if -WIDTH < lead < WIDTH else 0.0
    return expected, slope


@rarely
def special(h: Columns, m: int, team: int, slot: int, state: Records, params: Elo, result: float) -> float:
    """The rating at which the results so far would have been expected; if there are several, the one nearest the prior.

    The expectation is piecewise linear, so Newton's method finds the root in a few steps. If it is flat at the root,
    it is flat between two neighbouring line ends.
    """
    record = state[h.player[slot]]
    games = effective_games(record.rating, record.games)
    prior, target = record.rating, result + 0.5 * games
    if record.games > 0 and record.score == record.games:
        prior, target = record.rating - WIDTH, result + games
    elif record.games > 0 and record.score == 0.0:
        prior, target = record.rating + WIDTH, result
    first, end = h.team_start[m], h.team_start[m + 1]
    low, high = prior - WIDTH, prior + WIDTH  # beyond the outermost line ends
    for rival in range(first, end):
        if rival != team:
            other = opponent(h, first, team, rival, state, params)
            low, high = min(low, other - WIDTH), max(high, other + WIDTH)
    below, above = low - 1.0, high + 1.0
    rating = prior
    for _ in range(STEPS):
        expected, slope = expectation(rating, h, m, team, state, params, games, prior)
        if abs(expected - target) < TINY:
            break
        rating, low, high = newton(rating, target - expected, slope, low, high)
    for rival in range(first, end):
        other = prior if rival == team else opponent(h, first, team, rival, state, params)
        for side in (-WIDTH, WIDTH):
            below = max(below, other + side) if other + side < rating - SAME else below
            above = min(above, other + side) if other + side > rating + SAME else above
    least = most = rating
    if abs(expectation(below, h, m, team, state, params, games, prior)[0] - target) < TINY:
        least = below
    if abs(expectation(above, h, m, team, state, params, games, prior)[0] - target) < TINY:
        most = above
    return min(max(prior, least), most)


@kernel
def update(
    h: Columns, m: int, state: Records, params: Elo, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Move every player by their team's surprise. All new ratings are computed before the first is written."""
    first, end = h.team_start[m], h.team_start[m + 1]
    low = h.slot_start[first]
    if params.rule == USCF:
        for team in range(first, end):
            result = team_result(h, first, end, team)
            for slot in range(h.slot_start[team], h.slot_start[team + 1]):
                if state[h.player[slot]].games <= SPECIAL:
                    scratch[slot - low, 0] = special(h, m, team, slot, state, params, result)
    for team in range(first, end):
        result = team_result(h, first, end, team)
        surprise = result - expected[team]
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            record = state[h.player[slot]]
            k, skilled = params.k, False
            if params.rule == FIDE:
                reached = record.top > 0 or record.rating >= MASTER
                k = 40.0 if record.games < LEARNING else 10.0 if reached else 20.0
            elif params.rule == USCF:
                k = 800.0 / (effective_games(record.rating, record.games) + 1.0)
                skilled = record.games <= SPECIAL
            after = scratch[slot - low, 0] if skilled else record.rating + k * surprise
            if params.rule != FIXED:
                record.top = 1 if record.top > 0 or record.rating >= MASTER or after >= MASTER else 0
                record.games += 1
                record.score += result
            record.rating = after
            if len(factors):
                note = factors[slot]
                note.k = k
                note.surprise = surprise
                note.special = skilled
                note.formula = after if skilled else 0.0


def _because(change: Change, parameters: EloParameters) -> Reason | None:
    return Reason(wording.FIRST_GAMES, {"games": SPECIAL + 1}) if change.factors["special"] else None


def _recall(change: Change, parameters: EloParameters) -> tuple[object, ...] | None:
    """With a number of games and a top rating that lead to the same K."""
    k = float(change.factors["k"])
    if parameters.rule == "fide":
        return (change.before, 0 if k == 40.0 else LEARNING, 0.0, 1 if k == 10.0 else 0)
    if parameters.rule == "uscf":
        return None if change.factors["special"] else (change.before, math.ceil(800.0 / k - 1.0 - TINY), 0.0, 0)
    return (change.before, 0, 0.0, 0)


def _newcomer(p: EloParameters) -> tuple[object, ...]:
    return (p.start, 0, 0.0, 0)


SYSTEM = System(
    name="elo",
    title="as in chess: beating a stronger rival earns more; a team counts as its mean",
    source="Elo 1978; FIDE rating regulations; Glickman & Doyle, The US Chess Rating System",
    parameters=EloParameters,
    presets={"fide": {"rule": "fide", "clamp": 400.0}, "uscf": {"rule": "uscf"}},
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=as_shown(_newcomer),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=1,
    because=_because,
    recall=_recall,
)
